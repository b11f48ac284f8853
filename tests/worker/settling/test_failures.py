"""Failed jobs that are not held until their next attempt."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from disque_tx.client import TooLate
from disque_tx.worker import Context
from tests.worker.memory import NODE, HangingPool, WorkerTestCase


class BackoffTests(WorkerTestCase):
    """A worker with a backoff of ten seconds."""

    def setUp(self) -> None:
        super().setUp()
        self.release: Deferred[None] = Deferred()

    async def later(self, job: Context) -> None:
        """Fail when the test says so."""
        await self.release

    def fail_later(self) -> None:
        """Let the handler fail."""
        self.release.errback(ValueError("no"))
        self.pass_s(0.1)

    def test_held(self) -> None:
        """A failed job is held, as long as nothing speaks against it."""
        job_id = self.client.put("a")
        worker = self.worker({"a": self.later})
        self.fail_later()
        self.assertEqual("active", self.client.state(job_id))
        self.assertEqual([], self.client.times("NACK"))
        self.stop(worker)

    def test_stopping(self) -> None:
        """A job that fails while its worker stops is for the other workers at once, and the worker
        does not wait for it."""
        job_id = self.client.put("a")
        worker = self.worker({"a": self.later})
        stopped = worker.stopService()
        self.fail_later()
        self.successResultOf(stopped)
        self.assertEqual("queued", self.client.state(job_id))

    def test_lease_lost(self) -> None:
        """A job that may be delivered to others meanwhile is given back at once."""
        self.client.put("a", retry_s=1_000)
        refused = TooLate("WORKING", NODE, "TOOLATE", "")
        worker = self.worker({"a": self.later})
        self.client.broken = lambda command: refused if command == "WORKING" else None
        self.pass_s(1)
        self.assertEqual([], self.client.times("NACK"))
        self.fail_later()
        self.assertEqual(1, len(self.client.times("NACK")))
        self.stop(worker)

    def test_many(self) -> None:
        """No more than a thousand jobs are held: of more that fail, the others are tried again at
        once, so that the memory of a worker has a bound."""

        def fail(job: Context) -> None:
            raise ValueError("no")

        for _ in range(1_010):
            self.client.put("a")
        worker = self.worker({"a": fail}, HangingPool, concurrency=1_010)
        self.pools[0].release()
        self.pass_s(1)
        self.assertEqual(10, self.given_back())
        self.stop(worker)
        self.assertEqual(1_010, self.given_back())

    def given_back(self) -> int:
        """How many jobs the worker has given back."""
        return sum(len(ids) for command, _, ids in self.client.calls if command == "NACK")
