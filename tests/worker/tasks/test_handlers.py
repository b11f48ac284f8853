"""What can do jobs, and how many at once."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.worker import BadHandlers, Context
from disque_tx.worker.tasks.handlers import Command, batch, handler_of, process
from tests.worker.handlers import crash
from tests.worker.memory import WorkerTestCase


@batch(3)
def together(jobs: list[Context]) -> None:
    """Do nothing with three jobs."""


class CommandTests(SynchronousTestCase):
    """Programs that do jobs."""

    def test_words(self) -> None:
        """A command line in one text, or none, is refused when the program starts, and not at each
        of its jobs."""
        wrong: list[Any] = ["convert -", "", [], [3], ["a", None]]
        for argv in wrong:
            error = self.assertRaises(BadHandlers, Command, argv)
            self.assertIn("['true']", str(error))
        self.assertEqual("convert", handler_of(Command(("convert", "-"))).name)

    def test_batches(self) -> None:
        """So is a batch that could never be full, or would wait for hours."""
        for size, wait_s in ((0, 1), (10_001, 1), (2, -1), (2, 3_601)):
            self.assertRaises(BadHandlers, batch, size, wait_s)
        for size, wait_s in ((1, 0), (10_000, 3_600)):
            batch(size, wait_s)

    def test_others(self) -> None:
        """What cannot do a job is refused, and so is a function that no process can import."""
        self.assertRaises(BadHandlers, handler_of, 3)
        self.assertRaises(BadHandlers, process, lambda job: None)


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
