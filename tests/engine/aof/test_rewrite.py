"""Rewriting the log while the node keeps working."""

from __future__ import annotations

import errno
import os

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.engine.aof import rewrite
from disque_tx.errors import CommandError, LocalError
from disque_tx.messages.records import QUEUED
from disque_tx.services.machine.files import RealFiles
from disque_tx.services.machine.memoryfiles import MemoryFiles
from tests.engine.aof.bench import PATH, Bench, loaded, settings, vector
from tests.engine.aof.test_loader import SteppingTime

TEMPORARY = f"/data/temp-rewriteaof-{os.getpid()}.aof"


class RewriteCase(SynchronousTestCase):
    """A node with a log that can be shortened."""

    def setUp(self) -> None:
        self.files = MemoryFiles()
        # Every reading of the clock ends a slice.
        self.bench = Bench(self.files, settings(), SteppingTime(rewrite.SLICE_S))
        self.successResultOf(self.bench.start())

    def fill(self, jobs: int) -> None:
        """Add jobs, and as many that are removed again."""
        bench = self.bench
        bench.turn(*[bench.add] * (2 * jobs))
        bench.remove(bench.ids()[::2])

    def survivors(self) -> list[bytes]:
        """The jobs that survive a power failure."""
        self.files.crash()
        return loaded(self.files.content(PATH)).ids()


class BackgroundTests(RewriteCase):
    """BGREWRITEAOF."""

    def test_shorter(self) -> None:
        """The file durably contains the existing jobs and nothing else; INFO reports it."""
        bench = self.bench
        self.fill(200)
        before = len(self.files.content(PATH))
        bench.aof.rewrite()
        self.assertEqual("1", bench.field("aof_rewrite_in_progress"))
        bench.now_ms += 1_500
        bench.turn()
        self.assertEqual("1", bench.field("aof_current_rewrite_time_sec"))
        bench.settle()
        size = len(self.files.content(PATH))
        self.assertLess(size, before // 2)
        self.assertEqual(str(size), bench.field("aof_current_size"))
        self.assertEqual(str(size), bench.field("aof_base_size"))
        self.assertEqual("1", bench.field("aof_last_rewrite_time_sec"))
        self.assertEqual(0, self.files.content(PATH).count(b"DELJOB"))
        self.assertEqual([PATH], self.files.paths())
        self.assertEqual(1, self.files.open_files)
        self.assertEqual(bench.ids(), self.survivors())

    def test_slices(self) -> None:
        """Clients are served between slices, and their changes are in the new file."""
        bench = self.bench
        self.fill(500)
        bench.aof.rewrite()
        turns = 0
        while bench.clock.turn():
            turns += 1
            bench.turn(bench.add, lambda: bench.node.delete(bench.ids()[:2]))
        self.assertGreater(turns, 5)
        self.assertEqual("ok", bench.field("aof_last_bgrewrite_status"))
        self.assertEqual(bench.ids(), self.survivors())

    def test_states(self) -> None:
        """Only jobs that can be delivered are written, with their current flags and counters."""
        bench = self.bench
        bench.turn(lambda: bench.add(retry_s=0), lambda: bench.add(b"other", delay_s=9))
        bench.turn(bench.get)
        wanted = sorted(
            (job.id, job.state, job.flags, job.nacks) for job in bench.node.jobs.table.values()
        )
        bench.aof.rewrite()
        bench.settle()
        self.assertNotIn(QUEUED, [state for _, state, _, _ in wanted])
        again = loaded(self.files.content(PATH))
        back = sorted(
            (job.id, job.state, job.flags, job.nacks) for job in again.node.jobs.table.values()
        )
        self.assertEqual(wanted, back)

    def test_refused_while_running(self) -> None:
        """Only one rewrite runs at a time."""
        self.bench.aof.rewrite()
        error = self.assertRaises(CommandError, self.bench.aof.rewrite)
        self.assertEqual(
            b"ERR Background append only file rewriting already in progress", error.reply()
        )

    def test_dump(self) -> None:
        """With the log disabled it is a single dump; afterwards nothing is logged or open."""
        files = MemoryFiles()
        bench = Bench(files, settings(appendonly=False))
        bench.turn(bench.add)
        bench.aof.rewrite()
        bench.turn(bench.add)
        bench.settle()
        self.assertEqual(bench.ids(), loaded(files.content(PATH)).ids())
        self.assertIsNone(bench.node.outbox.log)
        self.assertEqual(0, files.open_files)
        self.assertEqual("off", bench.field("aof_state"))

    def test_old_log_stays_safe(self) -> None:
        """Until the new file has its name a crash loses nothing: the old one is still written."""
        bench = self.bench
        self.fill(10)
        bench.aof.rewrite()
        bench.clock.turn()
        bench.turn(bench.add)
        self.assertEqual(bench.ids(), self.survivors())

    def test_real_disk(self) -> None:
        """The same on a real disk."""
        folder = self.mktemp()
        os.mkdir(folder)
        bench = Bench(RealFiles(), settings(dir=folder))
        self.successResultOf(bench.start())
        bench.turn(bench.add, bench.add)
        bench.remove(bench.ids()[:1])
        bench.aof.rewrite()
        bench.turn(bench.add)
        bench.settle()
        bench.turn(bench.add)
        bench.aof.stopService()
        again = Bench(RealFiles(), settings(dir=folder))
        self.successResultOf(again.start())
        self.addCleanup(again.aof.stopService)
        self.assertEqual(bench.ids(), again.ids())
        self.assertEqual(["disque.aof"], os.listdir(folder))


class FailureTests(RewriteCase):
    """A rewrite that fails changes nothing."""

    def assert_failed(self) -> None:
        """The old log is still in use, and nothing of the new one is left."""
        bench = self.bench
        self.assertEqual("err", bench.field("aof_last_bgrewrite_status"))
        self.assertEqual("0", bench.field("aof_rewrite_in_progress"))
        self.assertEqual([PATH], self.files.paths())
        self.assertEqual(1, self.files.open_files)
        bench.turn(bench.add)
        self.assertEqual(bench.ids(), self.survivors())

    def test_full(self) -> None:
        """There is no room for a second file."""
        self.fill(5)
        self.bench.aof.rewrite()
        self.files.room_bytes = 100
        self.bench.settle()
        self.files.room_bytes = -1
        self.assert_failed()

    def test_sync(self) -> None:
        """A new file that did not reach the disk does not replace one that did."""
        self.fill(5)
        self.bench.aof.rewrite()
        self.files.sync_error = errno.EIO
        self.bench.settle()
        self.files.sync_error = 0
        self.assert_failed()

    def test_rename(self) -> None:
        """The new file cannot be renamed."""
        self.fill(5)
        self.bench.aof.rewrite()
        self.files.rename_error = errno.EACCES
        self.bench.settle()
        self.assert_failed()

    def test_cannot_begin(self) -> None:
        """The client's error says why no rewrite was started."""
        self.files.write_error = errno.EROFS
        error = self.assertRaises(CommandError, self.bench.aof.rewrite)
        self.assertEqual(
            b"ERR Can't write the append only file: Read-only file system", error.reply()
        )

    def test_dump_cannot_begin(self) -> None:
        """A failed dump leaves nothing open, and keeps no other node off the name."""
        files = MemoryFiles()
        bench = Bench(files, settings(appendonly=False))
        files.truncate_error = errno.EIO
        self.assertRaises(CommandError, bench.aof.rewrite)
        self.assertEqual(0, files.open_files)

    def test_name_not_durable(self) -> None:
        """If the folder cannot be synced after the rename, ``always`` ends the process."""
        bench = self.bench
        bench.turn(bench.add)
        bench.aof.rewrite()
        bench.threads.held = True
        bench.settle()
        self.files.sync_folder = self._broken  # type: ignore[method-assign]
        bench.threads.release()
        self.assertEqual(1, len(bench.died))
        self.assertRaises(LocalError, bench.turn, bench.add)

    def _broken(self, path: str) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)


class SyncTests(SynchronousTestCase):
    """How the new file is synced without blocking the node."""

    def setUp(self) -> None:
        self.patch(rewrite, "SYNC_BYTES", 2_000)
        self.patch(rewrite, "_LEFT_BYTES_MAX", 300)
        self.files = MemoryFiles()
        self.bench = Bench(self.files, settings(appendonly=False), SteppingTime(rewrite.SLICE_S))
        self.bench.turn(*[self.bench.add] * 300)
        self.bench.threads.held = True
        self.bench.aof.rewrite()

    def test_incremental(self) -> None:
        """Written data is synced periodically in a thread; meanwhile nothing is written and records
        are buffered."""
        bench = self.bench
        bench.settle()
        self.assertEqual(1, bench.threads.waiting)
        size = len(self.files.content(TEMPORARY))
        self.assertTrue(2_000 <= size < 3_000, size)
        bench.turn(bench.add)
        bench.settle()
        self.assertEqual(size, len(self.files.content(TEMPORARY)))
        while bench.threads.waiting:
            bench.threads.release()
            bench.settle()
        self.assertEqual(bench.ids(), loaded(self.files.content(PATH)).ids())

    def test_not_incremental(self) -> None:
        """With ``aof-rewrite-incremental-fsync no`` there is one sync, at the end."""
        self.bench.settings.aof_rewrite_incremental_fsync = False
        self.bench.settle()
        self.bench.threads.release()
        self.assertEqual(1, self.files.syncs)
        self.assertEqual([PATH], self.files.paths())

    def test_much_at_the_end(self) -> None:
        """If much was added during the last sync, another one runs in a thread instead of blocking
        the node."""
        bench = self.bench
        bench.settings.aof_rewrite_incremental_fsync = False
        bench.settle()
        bench.turn(*[bench.add] * 10)
        bench.threads.release()
        self.assertEqual([PATH, TEMPORARY], self.files.paths())
        self.assertEqual(b"", self.files.content(PATH))
        bench.turn(bench.add)
        bench.threads.release()
        self.assertEqual([PATH], self.files.paths())
        self.files.crash()
        self.assertEqual(bench.ids(), loaded(self.files.content(PATH)).ids())

    def test_stopped_while_syncing(self) -> None:
        """A file is closed only when no thread uses it any more."""
        self.bench.settle()
        self.bench.aof.stopService()
        self.assertEqual(2, self.files.open_files)  # and the one with the name
        self.bench.threads.release()
        self.bench.threads.release()
        self.assertEqual(0, self.files.open_files)
        self.assertEqual([], self.files.paths())

    def test_closed_once(self) -> None:
        """A file that is closed twice could be another one by then."""
        self.bench.settle()
        self.bench.aof.stopService()
        self.bench.threads.release()
        self.bench.threads.release()
        self.assertEqual([], [line for line in self.bench.log.lines if "Closing" in line])

    def test_much_for_ever(self) -> None:
        """A rewrite ends even if more is written all the time than is left to write at its end."""
        bench = self.bench
        bench.settings.aof_rewrite_incremental_fsync = False
        bench.settle()
        for _ in range(20):
            bench.turn(lambda: bench.add(body=b"x" * 400))
            bench.threads.release()
            bench.settle()
        self.assertEqual("0", bench.field("aof_rewrite_in_progress"))

    def test_suspended(self) -> None:
        """With ``no-appendfsync-on-rewrite`` the log is not synced during a rewrite; afterwards it
        is."""
        self.bench.aof.disable()
        files = MemoryFiles()
        bench = Bench(files, settings(no_appendfsync_on_rewrite=True))
        self.successResultOf(bench.start())
        bench.aof.rewrite()
        bench.turn(bench.add)
        self.assertEqual(0, files.syncs)
        files.rename_error = errno.EACCES
        bench.settle()
        bench.pass_ms(100)
        files.crash()
        self.assertEqual(bench.ids(), loaded(files.content(PATH)).ids())


class FailingFiles(MemoryFiles):
    """The power fails right after a file got another name, which the disk keeps. ``left``: what is
    in the file then."""

    left = b""

    def rename(self, old: str, new: str) -> None:
        super().rename(old, new)
        self.sync_folder(new)
        self.crash()
        self.left = self.content(new)


class OrderTests(SynchronousTestCase):
    """A new log takes the place of the old one when all of it is on the disk, not before."""

    def setUp(self) -> None:
        self.files = FailingFiles()
        self.bench = Bench(self.files, settings(appendfsync="no"))
        self.successResultOf(self.bench.start())
        self.bench.turn(self.bench.add, self.bench.add)

    def test_in_background(self) -> None:
        """Jobs that came while the new log was synced are in it."""
        bench = self.bench
        bench.threads.held = True
        bench.aof.rewrite()
        bench.settle()
        bench.turn(bench.add)
        bench.threads.release()
        self.assertEqual(bench.ids(), loaded(self.files.left).ids())

    def test_at_once(self) -> None:
        """The same at a stop with SHUTDOWN REWRITE-AOF."""
        self.bench.aof.rewrite_now()
        self.assertEqual(self.bench.ids(), loaded(self.files.left).ids())


class AutomaticTests(SynchronousTestCase):
    """When the log is rewritten without a command."""

    def grown(self, **values: int) -> Bench:
        """A log that was 3703 bytes at the start and is a little more than twice as large now."""
        files = MemoryFiles()
        files.put(PATH, vector("aof/node0.aof"))
        wanted = {"auto_aof_rewrite_min_size": 5000, **values}
        bench = Bench(files, settings(**wanted))
        self.successResultOf(bench.start())
        bench.turn(lambda: bench.add(body=b"x" * 3703))
        bench.pass_ms(100)
        return bench

    def test_doubled(self) -> None:
        """By default a rewrite starts when the size has doubled, and only once."""
        bench = self.grown()
        self.assertEqual("1", bench.field("aof_rewrite_in_progress"))
        bench.settle()
        bench.pass_ms(1000)
        self.assertEqual("0", bench.field("aof_rewrite_in_progress"))
        self.assertEqual(13, len(bench.ids()))

    def test_not_enough(self) -> None:
        """No rewrite starts below the configured size or growth, or with percentage 0."""
        for values in (
            {"auto_aof_rewrite_min_size": 8000},
            {"auto_aof_rewrite_percentage": 150},
            {"auto_aof_rewrite_percentage": 0},
        ):
            bench = self.grown(**values)
            self.assertEqual("0", bench.field("aof_rewrite_in_progress"), values)

    def test_pause_after_failure(self) -> None:
        """To spare a failing disk, the next attempt is ten seconds later."""
        bench = self.grown()
        assert isinstance(bench.files, MemoryFiles)
        bench.files.rename_error = errno.EACCES
        bench.settle()
        bench.pass_ms(9_900)
        self.assertEqual("0", bench.field("aof_rewrite_in_progress"))
        bench.pass_ms(200)
        self.assertEqual("1", bench.field("aof_rewrite_in_progress"))
        bench.settle()
        bench.pass_ms(9_900)
        self.assertEqual("0", bench.field("aof_rewrite_in_progress"))


class NowTests(SynchronousTestCase):
    """SHUTDOWN REWRITE-AOF."""

    def test_log_off(self) -> None:
        """The upgrade procedure works without a log: stop with a dump, start with it."""
        files = MemoryFiles()
        bench = Bench(files, settings(appendonly=False))
        bench.turn(*[bench.add] * 100)
        bench.aof.rewrite_now()
        bench.aof.stopService()
        files.crash()
        again = Bench(files, settings(appendonly=False, aof_enqueue_jobs_once=True))
        self.successResultOf(again.start())
        self.assertEqual(bench.ids(), again.ids())
        states = {job.state for job in again.node.jobs.table.values()}
        self.assertEqual({QUEUED}, states)
        self.assertEqual(0, files.open_files)

    def test_log_on(self) -> None:
        """If the node keeps running, it uses the new file; a rewrite under way is aborted."""
        files = MemoryFiles()
        bench = Bench(files, settings())
        self.successResultOf(bench.start())
        bench.turn(bench.add)
        bench.aof.rewrite()
        bench.aof.rewrite_now()
        bench.turn(bench.add)
        self.assertEqual([], bench.clock.getDelayedCalls())
        files.crash()
        self.assertEqual([PATH], files.paths())
        self.assertEqual(bench.ids(), loaded(files.content(PATH)).ids())

    def test_fails(self) -> None:
        """If it fails the caller gets an error, and the old log stays in use."""
        files = MemoryFiles()
        bench = Bench(files, settings())
        self.successResultOf(bench.start())
        bench.turn(bench.add)
        files.room_bytes = 20
        self.assertRaises(OSError, bench.aof.rewrite_now)
        files.room_bytes = -1
        self.assertEqual(([PATH], 1), (files.paths(), files.open_files))
        bench.turn(bench.add)
        files.crash()
        self.assertEqual([PATH], files.paths())
        self.assertEqual(bench.ids(), loaded(files.content(PATH)).ids())

    def test_dump_fails(self) -> None:
        """Without a log, a dump that fails leaves no file, and no other node is kept off the name
        after that; a dump that is there stays."""
        files = MemoryFiles()
        bench = Bench(files, settings(appendonly=False))
        bench.turn(bench.add)
        for there in ([], [PATH]):
            files.room_bytes = 20
            self.assertRaises(OSError, bench.aof.rewrite_now)
            files.room_bytes = -1
            self.assertEqual((there, 0), (files.paths(), files.open_files))
            bench.aof.rewrite_now()
            self.assertEqual(([PATH], 0), (files.paths(), files.open_files))
        self.assertEqual(bench.ids(), loaded(files.content(PATH)).ids())

    def test_large(self) -> None:
        """Bodies of any size are written in pieces, and none is lost."""
        files = MemoryFiles()
        bench = Bench(files, settings(appendonly=False))
        bench.turn(*[lambda: bench.add(body=b"x" * 60_000)] * 100)
        bench.aof.rewrite_now()
        self.assertEqual(bench.ids(), loaded(files.content(PATH)).ids())


class ConsistencyTests(SynchronousTestCase):
    """A rewrite is consistent although memory changes meanwhile."""

    @hypothesis_settings(max_examples=60, deadline=None)
    @given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=40))
    def test_any_interleaving(self, turns: list[tuple[int, int]]) -> None:
        """However many jobs come and go between two slices, the new file contains exactly those
        that exist at its end."""
        files = MemoryFiles()
        bench = Bench(files, settings(), SteppingTime(rewrite.SLICE_S))
        bench.start()
        bench.turn(*[bench.add] * 300)
        bench.aof.rewrite()
        for added, removed in turns:
            bench.turn(*[bench.add] * added)
            bench.remove(bench.ids()[::3][:removed])
            bench.clock.turn()
        bench.settle()
        self.assertEqual([PATH], files.paths())
        self.assertEqual(bench.ids(), loaded(files.content(PATH)).ids())
