"""Slots whose handlers cannot be stopped."""

from __future__ import annotations

from twisted.logger import LogEvent, LogLevel, formatEvent

from disque_tx.worker.running import running
from tests.logged import observe
from tests.worker.memory import HangingPool, WorkerTestCase


class LostSlotTests(WorkerTestCase):
    """A worker with functions in threads that hang."""

    def setUp(self) -> None:
        super().setUp()
        self.errors: list[str] = []
        observe(self, self.note_error)

    def note_error(self, event: LogEvent) -> None:
        """Record an error in the log."""
        if event["log_level"] is LogLevel.error and event["log_namespace"] == running.__name__:
            self.errors.append(formatEvent(event))

    def test_reported(self) -> None:
        """An operator finds in the log which job took a slot, why, and how many slots are left,
        long before the worker has none."""
        ids = [self.client.put("a") for _ in range(2)]
        worker = self.worker({"a": self.note}, HangingPool, concurrency=3, time_limit_s=3)
        self.pass_s(2)
        self.assertEqual([], self.errors)
        self.pass_s(2)
        why = "of queue 'a' is given up, its handler cannot be stopped: It took longer than 3 s."
        # Both take too long at the same time: either may be the first.
        self.assertIn(
            self.errors,
            [
                [
                    f"Job {first} {why} 1 of 3 slots are lost",
                    f"Job {last} {why} 2 of 3 slots are lost",
                ]
                for first, last in (ids, ids[::-1])
            ],
        )
        self.pools[0].release()
        self.stop(worker)
