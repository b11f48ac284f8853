"""What the log and INFO tell the operator of rewrites: why they begin, and how they end."""

from __future__ import annotations

import errno
import os
from functools import partial

from tests.engine.aof.bench import PATH, vector
from tests.engine.aof.test_reports import BROKEN, ReportCase


class RewriteTests(ReportCase):
    """Rewrites, and why they begin."""

    def test_grown(self) -> None:
        """A log that grew says so, and how large it is afterwards."""
        self.files.put(PATH, vector("aof/node0.aof"))
        bench = self.node(auto_aof_rewrite_min_size=3703)
        bench.turn(lambda: bench.add(body=b"x" * 3703))
        bench.pass_ms(100)
        bench.settle()
        size = len(self.files.content(PATH))
        self.assertEqual(
            [
                "notice: Starting a rewrite of the append only file: it grew",
                f"notice: The append only file was rewritten: {size} bytes",
            ],
            self.said(bench),
        )

    def test_growth_is_exact(self) -> None:
        """The log is rewritten when it has grown by the percentage exactly, and is larger than the
        least size."""
        for body, least, rewritten in ((1_800, 0, "1"), (1_700, 0, "0"), (1_800, 99_999, "0")):
            self.files.put(PATH, vector("aof/node0.aof"))
            bench = self.node(auto_aof_rewrite_min_size=least)
            bench.turn(partial(bench.add, body=b"x" * body))
            grown = len(self.files.content(PATH)) - 3703
            bench.settings.auto_aof_rewrite_percentage = grown * 100 // 3703 + (rewritten == "0")
            bench.pass_ms(100)
            self.assertEqual(rewritten, bench.field("aof_rewrite_in_progress"), body)
            bench.aof.stopService()
        self.files.put(PATH, vector("aof/node0.aof"))
        bench = self.node(auto_aof_rewrite_percentage=1)
        bench.turn(lambda: bench.add(body=b"x" * 3703))
        bench.settings.auto_aof_rewrite_min_size = len(self.files.content(PATH))
        bench.pass_ms(100)
        self.assertEqual("0", bench.field("aof_rewrite_in_progress"))
        bench.settings.auto_aof_rewrite_min_size -= 1
        bench.pass_ms(100)
        self.assertEqual("1", bench.field("aof_rewrite_in_progress"))

    def test_failed(self) -> None:
        """A rewrite that a client asked for, or none did, fails with the reason."""
        bench = self.node()
        bench.aof.rewrite()
        self.files.rename_error = errno.EACCES
        bench.settle()
        failed = "warning: Rewriting the append only file failed: Permission denied"
        self.assertEqual([failed], self.said(bench))
        self.files.rename_error = 0
        self.files.remove(PATH)
        self.files.write_error = errno.EIO
        bench.pass_ms(11_000)
        self.assertEqual(
            f"warning: Rewriting the append only file failed: {BROKEN}", self.said(bench)[-1]
        )
        self.assertEqual("err", bench.field("aof_last_bgrewrite_status"))

    def test_failed_once(self) -> None:
        """A rewrite that could not write is over: that is said once, nothing more is done for it,
        and the log goes on."""
        bench = self.node()
        bench.turn(bench.add)
        bench.aof.rewrite()
        self.files.write_error = errno.EIO
        bench.clock.turn()
        self.files.write_error = 0
        failed = f"warning: Rewriting the append only file failed: {BROKEN}"
        self.assertEqual([failed], self.said(bench))
        self.assertEqual([], bench.clock.getDelayedCalls())
        bench.pass_ms(1_000)
        self.assertEqual([], self.said(bench))
        self.assertEqual("0", bench.field("aof_rewrite_in_progress"))
        self.assertEqual([PATH], sorted(self.files.paths()))

    def test_interrupted(self) -> None:
        """A rewrite that DEBUG LOADAOF interrupted begins again, and says why."""
        bench = self.node("always")
        bench.turn(bench.add)
        bench.aof.rewrite()
        bench.turn(bench.aof.reload)
        self.said(bench)
        bench.pass_ms(100)
        self.assertEqual(
            ["notice: Starting a rewrite of the append only file: it was interrupted"],
            self.said(bench),
        )
        self.assertEqual("0", bench.field("aof_rewrite_scheduled"))

    def test_turned_off(self) -> None:
        """A log that is turned off is not written anew by an earlier interruption."""
        bench = self.node("always")
        bench.turn(bench.add)
        bench.aof.rewrite()
        bench.turn(bench.aof.reload)
        bench.aof.disable()
        self.said(bench)
        self.assertEqual("0", bench.field("aof_rewrite_scheduled"))
        bench.pass_ms(11_000)
        bench.settle()
        self.assertEqual([], self.said(bench))
        self.assertEqual("0", bench.field("aof_rewrite_in_progress"))

    def test_first(self) -> None:
        """The first log that could not be written is begun again, and says why."""
        bench = self.node(appendonly=False)
        bench.aof.enable()
        self.files.rename_error = errno.EACCES
        bench.settle()
        self.files.rename_error = 0
        bench.pass_ms(11_000)
        bench.settle()
        self.assertEqual(
            [
                "warning: Rewriting the append only file failed: Permission denied",
                "notice: Starting a rewrite of the append only file: the first one is not written"
                " yet",
                "notice: The append only file was rewritten: 0 bytes",
            ],
            self.said(bench),
        )

    def test_name_not_durable(self) -> None:
        """A dump whose name may be lost by a crash is said; a log with such a name is distrusted,
        as one with a failed sync."""
        for appendonly, expected in (
            (False, f"warning: The new log may be lost by a crash: {BROKEN}"),
            (
                True,
                f"warning: Syncing the append only file failed: {BROKEN}. Jobs are refused until"
                " the file has been rewritten; check the disk.",
            ),
        ):
            self.setUp()
            bench = self.node(appendonly=appendonly)
            bench.aof.rewrite()
            with_name = self.patch(self.files, "sync_folder", self.broken)
            bench.settle()
            with_name.restore()
            self.assertEqual(
                ["notice: The append only file was rewritten: 0 bytes", expected], self.said(bench)
            )
            self.assertEqual(BROKEN if appendonly else "", bench.aof.write_error)

    def test_not_removed(self) -> None:
        """The rest of a rewrite that could not be removed is named, and the rewrite is over all the
        same."""
        bench = self.node()
        bench.aof.rewrite()
        temporary = f"/data/temp-rewriteaof-{os.getpid()}.aof"
        self.patch(self.files, "remove", self.broken)
        bench.aof.rewrite_now()
        lines = self.said(bench)
        self.assertEqual(
            f"warning: {temporary} could not be removed: [Errno 5] {BROKEN}: '{temporary}'",
            lines[0],
        )
        self.assertEqual("0", bench.field("aof_rewrite_in_progress"))

    def test_times(self) -> None:
        """INFO shows how long a rewrite takes, and how long the last one took, in whole seconds of
        its own."""
        bench = self.node()
        bench.pass_ms(5_000)
        for seconds in (3, 1):
            bench.threads.held = True
            bench.aof.rewrite()
            bench.settle()
            bench.pass_ms(seconds * 1_000 + 900)
            self.assertEqual(str(seconds), bench.field("aof_current_rewrite_time_sec"))
            bench.threads.held = False
            bench.threads.release()
            bench.settle()
            self.assertEqual("-1", bench.field("aof_current_rewrite_time_sec"))
            self.assertEqual(str(seconds), bench.field("aof_last_rewrite_time_sec"))
