"""Jobs in the hands of a program that runs on a reactor."""

from __future__ import annotations

from typing import TypeVar

from twisted.internet.defer import Deferred

from disque_tx.client import requests
from disque_tx.client.addresses import Address
from disque_tx.client.delivered import Delivered
from disque_tx.client.requests import Request
from disque_tx.client.tx.session import Session
from disque_tx.client.values import Job, JobDetails

_T = TypeVar("_T")


class TakenJob(Delivered):
    """See :class:`Delivered`."""

    __slots__ = ("_session",)

    def __init__(self, session: Session, address: Address, job: Job) -> None:
        super().__init__(address, job)
        self._session = session

    def ack(self) -> Deferred[bool]:
        """It is done, and not to be delivered any more. Fires with whether the node that was told
        knew it as not done before."""
        return self._session.request_near(self.address, requests.ack_jobs(self.id)).addCallback(
            bool
        )

    def fast_ack(self) -> Deferred[bool]:
        """It is done: delete it, without making sure. Fires with whether the node had it."""
        return self._session.request_near(self.address, requests.fast_ack(self.id)).addCallback(
            bool
        )

    def nack(self) -> Deferred[bool]:
        """It failed: queue it again now. Fires with whether it was."""
        return self._near(requests.nack(self.id)).addCallback(bool)

    def working(self) -> Deferred[int]:
        """It takes longer: put its next delivery off. Fires with for how many seconds from now.

        Fails with :class:`AlreadyAcknowledged` when somebody has acknowledged it, with
        :class:`UnknownJob` when it is not known any more, and with :class:`TooLate` when half of
        its TTL is over.
        """
        return self._near(requests.working(self.id))

    def show(self) -> Deferred[JobDetails | None]:
        """All that the node that delivered it knows of it; ``None`` if nothing."""
        return self._near(requests.show(self.id))

    def _near(self, request: Request[_T]) -> Deferred[_T]:
        return self._session.request_near(self.address, request)
