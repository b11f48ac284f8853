"""What the log tells the operator, line by line: what failed, what follows from it, and when it is
over."""

from __future__ import annotations

import errno
import os

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import CommandError, LocalError
from disque_tx.services.machine.memoryfiles import MemoryFile, MemoryFiles
from tests.engine.aof.bench import PATH, Bench, settings

FULL = "No space left on device"
BROKEN = "Input/output error"


class ReportCase(SynchronousTestCase):
    """A node whose lines are read."""

    def setUp(self) -> None:
        self.files = MemoryFiles()

    def node(self, policy: str = "everysec", **values: object) -> Bench:
        """A node that has started; its lines so far are forgotten."""
        bench = Bench(self.files, settings(appendfsync=policy, **values))
        self.successResultOf(bench.start())
        bench.log.lines.clear()
        return bench

    def said(self, bench: Bench) -> list[str]:
        """The lines since the last look."""
        lines, bench.log.lines = bench.log.lines, []
        return lines

    def broken(self, path: str = "") -> None:
        """A call that the disk refuses."""
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)


class WriteTests(ReportCase):
    """Writes and syncs of the log in use."""

    def test_full(self) -> None:
        """A full disk is said once, however often the write is tried again; another reason is said
        too, and so is the end of it."""
        bench = self.node()
        refused = "Jobs are refused until it works; it is tried again every second."
        self.files.room_bytes = 0
        bench.turn(bench.add)
        bench.pass_ms(5_000)
        self.assertEqual(
            [f"warning: Writing to the append only file failed: {FULL}. {refused}"],
            self.said(bench),
        )
        self.files.write_error = errno.EIO
        bench.pass_ms(5_000)
        self.assertEqual(
            [f"warning: Writing to the append only file failed: {BROKEN}. {refused}"],
            self.said(bench),
        )
        self.files.room_bytes, self.files.write_error = -1, 0
        bench.pass_ms(5_000)
        self.assertEqual(
            ["warning: Writing to the append only file works again."], self.said(bench)
        )

    def test_pace(self) -> None:
        """A write is tried again after a second, a sync is due a second after the last one, and a
        rewrite is begun again ten seconds after it failed, each at that moment."""
        bench = self.node()
        self.files.room_bytes = 0
        bench.turn(bench.add)
        self.files.room_bytes = -1
        bench.pass_ms(900)
        self.assertEqual(FULL, bench.aof.write_error)
        bench.pass_ms(100)
        self.assertEqual("", bench.aof.write_error)
        bench.pass_ms(2_000)
        syncs = self.files.syncs
        bench.turn(bench.add)
        bench.pass_ms(100)
        self.assertEqual(syncs + 1, self.files.syncs)
        bench.turn(bench.add)
        bench.pass_ms(900)
        self.assertEqual(syncs + 1, self.files.syncs)
        bench.pass_ms(100)
        self.assertEqual(syncs + 2, self.files.syncs)
        self.files.sync_error = errno.EIO
        bench.turn(bench.add)
        bench.pass_ms(1_000)
        bench.settle()
        self.files.sync_error = 0
        begun = [self.begun_after(bench, duration_ms) for duration_ms in (9_900, 100)]
        self.assertEqual(["0", "1"], begun)

    def begun_after(self, bench: Bench, duration_ms: int) -> str:
        """Whether a rewrite is under way after this time."""
        bench.pass_ms(duration_ms)
        return bench.field("aof_rewrite_in_progress")

    def test_incomplete_record(self) -> None:
        """A record that could neither be written nor taken back is said before what follows from
        it."""
        bench = self.node()
        self.files.room_bytes, self.files.truncate_error = 10, errno.EIO
        bench.turn(bench.add)
        first, second = self.said(bench)
        self.assertEqual(
            f"warning: The append only file ends in an incomplete record: {BROKEN}", first
        )
        self.assertIn(f"Writing to the append only file failed: {FULL}.", second)

    def test_fatal(self) -> None:
        """With ``always`` the process ends with one reason, which is that of every later call, and
        no line besides it."""
        for broken, what in (("write_error", "Writing to"), ("sync_error", "Syncing")):
            self.setUp()
            bench = self.node("always")
            setattr(self.files, broken, errno.EIO)
            error = self.assertRaises(LocalError, bench.turn, bench.add)
            why = (
                f"{what} the append only file failed: {BROKEN}. With 'appendfsync always' the node"
                " stops here: what it answered until now is on the disk. Check the disk, then"
                " start again."
            )
            setattr(self.files, broken, 0)
            again = self.assertRaises(OSError, bench.aof.flush_and_sync)
            self.assertEqual(
                ([why], why, why, errno.EIO),
                (bench.died, str(error), again.strerror, again.errno),
            )
            self.assertEqual(why, bench.aof.write_error)
            bench.pass_ms(0)
            bench.aof.tick()
            self.assertEqual([], self.said(bench))

    def test_slow(self) -> None:
        """A sync of more than two seconds is said each time that a write did not wait for it any
        longer, not before."""
        bench = self.node()
        bench.turn(bench.add)
        bench.threads.held = True
        bench.pass_ms(1_000)
        bench.turn(bench.add)
        bench.pass_ms(1_900)
        self.assertEqual([], self.said(bench))
        bench.pass_ms(100)
        slow = (
            "notice: The disk is slow: a sync of the append only file takes longer than two"
            " seconds, so records are written without waiting for it. This may slow down clients."
        )
        self.assertEqual([slow], self.said(bench))
        bench.turn(bench.add)
        bench.pass_ms(1_900)
        self.assertEqual([], self.said(bench))
        bench.pass_ms(100)
        self.assertEqual([slow], self.said(bench))
        self.assertEqual("2", bench.field("aof_delayed_fsync"))

    def test_sync_failed(self) -> None:
        """A failed sync, and the rewrite that mends it, are said in order, each once."""
        bench = self.node()
        bench.turn(bench.add)
        self.files.sync_error = errno.EIO
        bench.pass_ms(1_000)
        self.files.sync_error = 0
        bench.settle()
        size = len(self.files.content(PATH))
        bench.pass_ms(11_000)
        self.assertEqual(
            [
                f"warning: Syncing the append only file failed: {BROKEN}. Jobs are refused until"
                " the file has been rewritten; check the disk.",
                "notice: Starting a rewrite of the append only file: a sync failed",
                f"notice: The append only file was rewritten: {size} bytes",
            ],
            self.said(bench),
        )
        self.assertGreater(size, 0)

    def test_name_lost(self) -> None:
        """A log that is gone is said once, with its name, until it is back."""
        bench = self.node()
        self.files.remove(PATH)
        bench.threads.held = True
        bench.pass_ms(5_000)
        self.assertEqual(
            [
                f"warning: The append only file was removed, moved or replaced: {PATH} is not the"
                " file that this node has open. Jobs are refused until the log has been rewritten"
                " there, which begins now. Whatever else uses the folder, give it another one.",
                "notice: Starting a rewrite of the append only file: its name is that of another"
                " file, or of none",
            ],
            self.said(bench),
        )

    def test_name_unknown(self) -> None:
        """A folder that cannot be looked at for a moment is no reason to refuse jobs, and the next
        look is a second later."""
        bench = self.node()
        looks: list[str] = []

        def unknown(file: MemoryFile, path: str) -> bool:
            looks.append(path)
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

        self.patch(MemoryFile, "is_at", unknown)
        bench.pass_ms(2_100)
        self.assertEqual(([PATH] * 3, "", []), (looks, bench.aof.write_error, self.said(bench)))

    def test_closing(self) -> None:
        """An old log that cannot be closed is named."""
        bench = self.node()
        self.patch(MemoryFile, "close", lambda _file: self.broken())
        bench.aof.disable()
        self.assertEqual(
            [f"warning: Closing the old append only file failed: [Errno 5] {BROKEN}: ''"],
            self.said(bench),
        )


class StopTests(ReportCase):
    """What could not be written at the end."""

    def test_stop(self) -> None:
        """A stop that lost records says so with the reason, and lets go of the file."""
        bench = self.node()
        self.files.room_bytes = 0
        bench.turn(bench.add)
        self.said(bench)
        bench.aof.stopService()
        self.assertEqual(
            [f"warning: The log could not be written at shutdown: {FULL}"], self.said(bench)
        )
        self.assertEqual((0, []), (self.files.open_files, bench.clock.getDelayedCalls()))

    def test_reload(self) -> None:
        """A log that lacks records is not loaded again: those would be lost."""
        bench = self.node()
        self.files.room_bytes = 0
        bench.turn(bench.add)
        error = self.assertRaises(CommandError, bench.aof.reload)
        self.assertEqual(
            f"ERR The last records are missing in the log: {FULL}".encode(), error.reply()
        )
        self.assertEqual(1, len(bench.ids()))
