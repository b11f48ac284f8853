"""A job in the hands of a program, as both clients have it."""

from __future__ import annotations

from disque_tx.client.addresses import Address
from disque_tx.client.values import Job


class Delivered:
    """A job that this program is to do. It is delivered again, here or elsewhere, when its RETRY
    is over and it was not acknowledged.

    ``address``: of the node that delivered it. Requests about it go there, or to another node if
    that is gone.
    """

    __slots__ = ("address", "job")

    def __init__(self, address: Address, job: Job) -> None:
        self.address = address
        self.job = job

    def __repr__(self) -> str:
        return f"<TakenJob {self.id} of queue {self.queue!r}>"

    @property
    def data(self) -> bytes:
        """What was given to ``enqueue``; text as UTF-8."""
        return self.job.body

    @property
    def id(self) -> str:
        """The job's ID."""
        return self.job.id

    @property
    def queue(self) -> str:
        """The queue it came from."""
        return self.job.queue
