"""How many jobs a handler takes."""

from __future__ import annotations

from typing import Any

from disque_tx.worker import Context
from disque_tx.worker.tasks.handlers import Command, batch, process
from tests.worker.handlers import crash
from tests.worker.memory import WorkerTestCase


@batch(3)
def together(jobs: list[Context]) -> None:
    """Do nothing with three jobs."""


class SizeTests(WorkerTestCase):
    """A worker with free slots."""

    def requested(self, handler: Any) -> int:
        """How many jobs a worker with four slots asks for."""
        self.setUp()
        worker = self.worker({"a": handler}, concurrency=4)
        self.pass_s(1)
        self.stop(worker)
        return self.client.most_requested

    def test_one(self) -> None:
        """Functions, programs and functions in processes take one job each: what a worker fetched
        beyond its free slots would wait here while other workers have nothing to do."""
        for handler in (self.note, Command(["true"]), process(crash)):
            self.assertEqual(4, self.requested(handler))

    def test_batch(self) -> None:
        """A batch in each slot needs so many more."""
        self.assertEqual(12, self.requested(together))
