"""A worker that is told nothing but its handlers."""

from __future__ import annotations

from random import Random
from typing import Any

from twisted.internet.defer import Deferred

from disque_tx.worker import Context
from disque_tx.worker.service import Worker
from tests.worker.memory import HangingPool, InlinePool, WorkerTestCase


class DefaultTests(WorkerTestCase):
    """What the pages promise of a worker without options."""

    def plain(self, handlers: Any, pool: type[InlinePool] = InlinePool) -> Worker:
        """Start a worker without options."""
        worker = Worker(
            self.client,
            handlers,
            self.clock,
            pool=pool,
            random=Random(1),
            wall_s=self.clock.seconds,
            environ={},
        )
        worker.startService()
        self.pass_s(0)
        return worker

    async def slow(self, job: Context) -> None:
        """A handler that does not return by itself."""
        await Deferred()

    def test_attempts(self) -> None:
        """A job that always fails is tried six times, and is a dead letter then: its owner counts
        on both."""

        def fail(job: Context) -> None:
            self.note(job)
            raise ValueError("no")

        job_id = self.client.put("a", b"x")
        worker = self.plain({"a": fail})
        self.pass_s(60)
        self.assertEqual(6 * [b"x"], self.done)
        (letter,) = self.client.letters("a")
        self.assertEqual((5, "acked"), (letter.nacks, self.client.state(job_id)))
        self.stop(worker)

    def test_slots(self) -> None:
        """Eight jobs run at a time, and the others stay where other workers find them."""
        for _ in range(20):
            self.client.put("a")
        worker = self.plain({"a": self.note}, HangingPool)
        self.pass_s(1)
        self.assertEqual(12, len(self.client.queued("a")))
        self.stop(worker)

    def test_order(self) -> None:
        """No queue waits until another one is empty."""
        for queue in "ab":
            for _ in range(20):
                self.client.put(queue, queue.encode())
        worker = self.plain({"a": self.note, "b": self.note}, HangingPool)
        self.pass_s(1)
        self.assertEqual([16, 16], [len(self.client.queued(queue)) for queue in "ab"])
        self.stop(worker)

    def test_grace(self) -> None:
        """Who stops a worker knows when it ends at the latest, and that handlers may finish until
        then."""
        job_id = self.client.put("a")
        worker = self.plain({"a": self.slow})
        stopped = worker.stopService()
        self.pass_s(29.5)
        self.assertNoResult(stopped)
        self.assertEqual("active", self.client.state(job_id))
        self.pass_s(1.5)
        self.successResultOf(stopped)
        self.assertEqual("queued", self.client.state(job_id))

    def test_time_limit(self) -> None:
        """A handler has an hour, and no more: one that hangs does not keep its slot forever."""
        self.client.put("a", retry_s=0)
        worker = self.plain({"a": self.slow})
        self.pass_s(3_598, step_s=1)
        self.assertEqual([], self.client.letters("a"))
        self.pass_s(4, step_s=1)
        self.assertIn("TimeLimitPassed", self.client.letters("a")[0].reason)
        self.stop(worker)
