"""The short forms' view of jobs: what a worker does with one, and a queue as an iterable."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from disque_tx.client import requests
from disque_tx.client.addresses import Address
from disque_tx.client.session import Session
from disque_tx.client.values import Job


class TakenJob:
    """A job that this program is to do. It is delivered again, here or elsewhere, when its RETRY
    is over and it was not acknowledged.

    Requests about it go to the node that delivered it, or to another one if that is gone.
    """

    __slots__ = ("_node", "_session", "job")

    def __init__(self, session: Session, node: Address, job: Job) -> None:
        self._session = session
        self._node = node
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

    def ack(self) -> bool:
        """It is done, and not to be delivered any more. Returns whether the node that was told
        knew it as not done before."""
        return self._session.call_near(self._node, requests.ack_jobs(self.id)) > 0

    def nack(self) -> bool:
        """It failed: queue it again now. Returns whether it was."""
        return self._session.call_near(self._node, requests.nack(self.id)) > 0

    def working(self) -> int:
        """It takes longer: put its next delivery off. Returns for how many seconds from now.

        :raises AlreadyAcknowledged: somebody has acknowledged it.
        :raises UnknownJob: it is not known any more.
        :raises TooLate: half of its TTL is over.
        """
        return self._session.call_near(self._node, requests.working(self.id))


class Queue:
    """A queue to iterate over: each step takes a job. What the program does not acknowledge is
    delivered again.

    ``take``: returns the next job, ``None`` when none came in time and the iteration ends.
    """

    def __init__(self, name: str | bytes, take: Callable[[], TakenJob | None]) -> None:
        self.name = name
        self._take = take

    def __iter__(self) -> Iterator[TakenJob]:
        while (job := self._take()) is not None:
            yield job
