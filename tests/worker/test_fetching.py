"""Fetching jobs from several queues, and keeping those that were delivered."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.worker.fetching import Priority, fetch
from tests.worker.memory import MemoryClient, lost


class HoldingClient(MemoryClient):
    """Requests for jobs of ``b`` have no reply until the test gives one."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.held: Deferred[Any] = Deferred()

    def take(self, *queues: str, **options: Any) -> Deferred[Any]:
        return self.held if queues == ("b",) else super().take(*queues, **options)


class FetchTests(SynchronousTestCase):
    """With priorities, each queue has a request of its own."""

    def setUp(self) -> None:
        self.client = HoldingClient(Clock())

    def fetching(self) -> Deferred[list[Any]]:
        """A fetch that waits for the second queue."""
        return Deferred.fromCoroutine(fetch(self.client, Priority(["a", "b"]), 3))

    def test_stopped(self) -> None:
        """A worker that stops must return delivered jobs to their queue, so it has to receive
        them."""
        job_id = self.client.put("a")
        fetching = self.fetching()
        fetching.cancel()
        self.assertEqual([job_id], [job.id for job in self.successResultOf(fetching)])

    def test_failed(self) -> None:
        """Delivered jobs are also received when the second request fails."""
        job_id = self.client.put("a")
        fetching = self.fetching()
        self.client.held.errback(lost("GETJOB"))
        self.assertEqual([job_id], [job.id for job in self.successResultOf(fetching)])

    def test_nothing_yet(self) -> None:
        """Without delivered jobs, the cancellation or the error is raised."""
        fetching = self.fetching()
        fetching.cancel()
        self.failureResultOf(fetching, CancelledError)
        self.client = HoldingClient(Clock())
        fetching = self.fetching()
        self.client.held.errback(lost("GETJOB"))
        self.failureResultOf(fetching, type(lost("GETJOB")))
