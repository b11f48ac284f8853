"""Fetching jobs of several queues, and keeping those that have arrived."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.worker.fetching import Priority, fetch
from tests.worker.memory import MemoryClient, lost


class HoldingClient(MemoryClient):
    """Requests for jobs of ``b`` stay without an answer, which a test gives."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.held: Deferred[Any] = Deferred()

    def take(self, *queues: str, **options: Any) -> Deferred[Any]:
        return self.held if queues == ("b",) else super().take(*queues, **options)


class FetchTests(SynchronousTestCase):
    """By precedence: a request per queue."""

    def setUp(self) -> None:
        self.client = HoldingClient(Clock())

    def fetching(self) -> Deferred[list[Any]]:
        """A fetch that waits for the second queue."""
        return Deferred.fromCoroutine(fetch(self.client, Priority(["a", "b"]), 3))

    def test_stopped(self) -> None:
        """A stopping worker gives back jobs that were delivered to it, so it must get them."""
        job_id = self.client.put("a")
        fetching = self.fetching()
        fetching.cancel()
        self.assertEqual([job_id], [job.id for job in self.successResultOf(fetching)])

    def test_failed(self) -> None:
        """The same when the second request fails."""
        job_id = self.client.put("a")
        fetching = self.fetching()
        self.client.held.errback(lost("GETJOB"))
        self.assertEqual([job_id], [job.id for job in self.successResultOf(fetching)])

    def test_nothing_yet(self) -> None:
        """Without any job the cancellation is reported as such."""
        fetching = self.fetching()
        fetching.cancel()
        self.failureResultOf(fetching, CancelledError)
        self.client = HoldingClient(Clock())
        fetching = self.fetching()
        self.client.held.errback(lost("GETJOB"))
        self.failureResultOf(fetching, type(lost("GETJOB")))
