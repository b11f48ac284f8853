"""The short forms' view of jobs: what a worker does with one, and a queue as an iterable."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from disque_tx.client import requests
from disque_tx.client.addresses import Address
from disque_tx.client.blocking.session import Session
from disque_tx.client.delivered import Delivered
from disque_tx.client.values import Job


class TakenJob(Delivered):
    """See :class:`Delivered`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session, address: Address, job: Job) -> None:
        super().__init__(address, job)
        self._session = session

    def ack(self) -> bool:
        """It is done, and not to be delivered any more. Returns whether the node that was told
        knew it as not done before."""
        return self._session.call_near(self.address, requests.ack_jobs(self.id)) > 0

    def nack(self) -> bool:
        """It failed: queue it again now. Returns whether it was."""
        return self._session.call_near(self.address, requests.nack(self.id)) > 0

    def working(self) -> int:
        """It takes longer: put its next delivery off. Returns for how many seconds from now.

        :raises AlreadyAcknowledged: somebody has acknowledged it.
        :raises UnknownJob: it is not known any more.
        :raises TooLate: half of its TTL is over.
        """
        return self._session.call_near(self.address, requests.working(self.id))


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
