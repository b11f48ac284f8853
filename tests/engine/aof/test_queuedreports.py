"""What the log tells the operator of the list of jobs that were queued at a stop."""

from __future__ import annotations

import errno

from disque_tx.services.machine.memoryfiles import MemoryFile
from tests.engine.aof.bench import PATH, WALL_US, Bench, settings
from tests.engine.aof.test_reports import BROKEN, FULL, ReportCase


class QueuedTests(ReportCase):
    """The list of what was queued at a stop."""

    lost = (
        " Jobs that were queued wait for their RETRY after the start, and those with RETRY 0 stay"
        " out of their queues."
    )
    path = f"{PATH}.queued"

    def stopped(self) -> None:
        """A stop with three queued jobs."""
        bench = self.node("always")
        bench.turn(*[bench.add] * 3)
        bench.aof.flush_and_sync()
        bench.aof.stopService()
        bench.aof.queued.save()
        self.assertEqual([], self.said(bench))

    def started(self) -> Bench:
        """The next start, before it serves; its lines are kept."""
        bench = Bench(self.files, settings(), seed=2)
        self.successResultOf(bench.start())
        bench.log.lines.pop(0)
        return bench

    def test_resumed(self) -> None:
        """A start says how many of the listed jobs are queued again, once."""
        self.stopped()
        bench = self.started()
        bench.remove(bench.ids()[:1])
        for _ in range(2):
            self.assertFalse(bench.aof.queued.resume())
        self.assertEqual(
            ["notice: Queued again: 2 of 3 jobs that waited when the node stopped"],
            self.said(bench),
        )

    def test_set_aside(self) -> None:
        """A list of no use is named, with the reason and where it is kept, or why it is not."""
        for error, where in (
            (0, f"{self.path}.unused-{WALL_US // 1_000_000}"),
            (errno.EACCES, f"{self.path}, for it can't be renamed: Permission denied"),
        ):
            self.setUp()
            self.stopped()
            self.files.replace(self.path, b"x" * 40)
            self.files.rename_error = error
            (line,) = self.said(self.started())
            start = f"warning: The list of queued jobs {self.path} can't be used: it is damaged: "
            self.assertEqual(start, line[: len(start)])
            self.assertTrue(line.endswith(f" It is kept as {where}.{self.lost}"), line)

    def test_unreadable(self) -> None:
        """A list that cannot be read stays where it is, and queues nothing."""
        self.stopped()
        opened = self.files.open

        def refusing(path: str, may_be_new: bool = False) -> MemoryFile:
            if path == self.path:
                self.broken(path)
            return opened(path, may_be_new)

        self.patch(self.files, "open", refusing)
        bench = self.started()
        self.assertFalse(bench.aof.queued.resume())
        self.assertEqual(
            [f"warning: {self.path} can't be read: {BROKEN}.{self.lost}"], self.said(bench)
        )
        self.assertIn(self.path, self.files.paths())

    def test_not_removed(self) -> None:
        """A list that may stay on the disk queues nothing, and the line says why."""
        self.stopped()
        bench = self.started()
        self.files.sync_error = errno.EIO
        self.assertFalse(bench.aof.queued.resume())
        self.files.sync_error = 0
        self.assertFalse(bench.aof.queued.resume())
        self.assertEqual(
            [
                f"warning: {self.path} can't be removed: {BROKEN}. Its jobs are not queued, for"
                f" they might be delivered twice.{self.lost}"
            ],
            self.said(bench),
        )

    def test_not_written(self) -> None:
        """A stop that could not write its list says so, and closes the log it looked at."""
        bench = self.node("always")
        bench.turn(bench.add)
        bench.aof.flush_and_sync()
        bench.aof.stopService()
        self.files.room_bytes = 0
        bench.aof.queued.save()
        self.assertEqual(
            [f"warning: {self.path} can't be written at shutdown: {FULL}.{self.lost}"],
            self.said(bench),
        )
        self.assertEqual(([PATH], 0), (self.files.paths(), self.files.open_files))
