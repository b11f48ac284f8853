"""The log of a running node: when data is on disk, and what happens when the disk fails."""

from __future__ import annotations

import errno

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.errors import CommandError, LocalError
from disque_tx.services.machine.memoryfiles import MemoryFiles
from tests.engine.aof.bench import PATH, Bench, loaded, settings, vector

FULL = "No space left on device"
BROKEN = "Input/output error"


class LogCase(SynchronousTestCase):
    """A node whose log is enabled."""

    policy = "always"

    def setUp(self) -> None:
        self.files = MemoryFiles()
        self.bench = self.restarted()

    def restarted(self) -> Bench:
        """A node that starts with what is on disk."""
        bench = Bench(self.files, settings(appendfsync=self.policy))
        self.successResultOf(bench.start())
        return bench

    def survivors(self, kept: float = 0.0) -> list[bytes]:
        """The jobs that survive a power failure."""
        self.files.crash(kept)
        return self.restarted().ids()


class AlwaysTests(LogCase):
    """``appendfsync always``: nothing is lost after its reply was sent."""

    def test_turn_is_durable(self) -> None:
        """The records of a turn are on disk at its end, after one sync for the whole turn."""
        before = self.files.syncs
        self.bench.turn(*[self.bench.add] * 100)
        self.assertEqual(1, self.files.syncs - before)
        self.assertEqual(self.bench.ids(), self.survivors())

    def test_removal_is_durable(self) -> None:
        """An acknowledged job is not restored."""
        bench = self.bench
        bench.turn(bench.add, bench.add)
        gone = bench.ids()[0]
        bench.remove([gone])
        self.assertEqual(bench.ids(), self.survivors())

    def test_behind(self) -> None:
        """Only what a turn recorded, and has not written and synced, holds back what leaves."""
        bench = self.bench
        self.assertFalse(bench.aof.is_behind())
        bench.begin()
        bench.add()
        self.assertTrue(bench.aof.is_behind())
        bench.aof.commit()
        self.assertFalse(bench.aof.is_behind())

    def test_quiet_turn(self) -> None:
        """A turn without changes causes no sync."""
        before = self.files.syncs
        self.bench.turn()
        self.bench.pass_ms(2000)
        self.assertEqual(before, self.files.syncs)

    def test_torn_record(self) -> None:
        """A crash in the middle of a write loses only the turn for which no reply was sent."""
        bench = self.bench
        bench.turn(bench.add)
        answered = bench.ids()
        self.files.sync_error = errno.EIO
        self.assertRaises(LocalError, bench.turn, bench.add)
        self.files.sync_error = 0
        self.assertEqual(answered, self.survivors(kept=0.5))

    def test_write_error_is_fatal(self) -> None:
        """When the disk is full the process ends with a reason, sends no further replies, and
        leaves a file that ends with its last complete record."""
        bench = self.bench
        bench.turn(bench.add)
        whole = self.files.content(PATH)
        self.files.room_bytes = 10
        self.assertRaises(LocalError, bench.turn, bench.add)
        self.assertEqual(1, len(bench.died))
        self.assertIn(f"Writing to the append only file failed: {FULL}.", bench.died[0])
        self.assertEqual(whole, self.files.content(PATH))
        self.files.room_bytes = -1
        self.assertRaises(LocalError, bench.turn)
        self.assertRaises(OSError, bench.aof.flush_and_sync)
        self.assertEqual(1, len(bench.died))

    def test_sync_error_is_fatal(self) -> None:
        """A failed sync is never retried: its success could hide lost data."""
        self.files.sync_error = errno.EIO
        self.assertRaises(LocalError, self.bench.turn, self.bench.add)
        self.files.sync_error = 0
        before = self.files.syncs
        self.assertRaises(LocalError, self.bench.turn)
        self.bench.aof.tick()
        self.assertEqual(before, self.files.syncs)
        self.assertIn(f"Syncing the append only file failed: {BROKEN}.", self.bench.died[0])

    def test_policy_changes_at_once(self) -> None:
        """``CONFIG SET appendfsync`` takes effect in the next turn."""
        bench = self.bench
        bench.settings.appendfsync = "no"
        bench.turn(bench.add)
        bench.settings.appendfsync = "always"
        bench.turn(bench.add)
        self.assertEqual(bench.ids(), self.survivors())


class EverySecondTests(LogCase):
    """``appendfsync everysec``: at most two seconds are lost, and no client waits for a sync."""

    policy = "everysec"

    def test_written_at_once(self) -> None:
        """Killing the process loses nothing, only a power failure does."""
        self.bench.turn(self.bench.add)
        self.assertEqual(self.bench.ids(), loaded(self.files.content(PATH)).ids())
        self.assertEqual([], self.survivors())

    def test_synced_within_a_second(self) -> None:
        """Data is on disk after little more than a second; an idle log is not synced again."""
        self.bench.turn(self.bench.add)
        self.bench.pass_ms(1100)
        syncs = self.files.syncs
        self.bench.pass_ms(3000)
        self.assertEqual(syncs, self.files.syncs)
        self.assertEqual(self.bench.ids(), self.survivors())

    def test_one_sync_per_second(self) -> None:
        """A busy log is synced once a second, however many turns there are."""
        before = self.files.syncs
        for _ in range(50):
            self.bench.turn(self.bench.add)
            self.bench.pass_ms(100)
        self.assertEqual(5, self.files.syncs - before)

    def test_postponed(self) -> None:
        """While a sync runs, writes are postponed for up to two seconds; then one is counted as
        delayed, and CONFIG RESETSTAT resets the count."""
        bench = self.bench
        bench.turn(bench.add)
        bench.threads.held = True
        bench.pass_ms(1000)
        self.assertEqual(("1", "0"), self.sync_fields())
        size = len(self.files.content(PATH))
        bench.turn(bench.add)
        self.assertNotEqual("0", bench.field("aof_buffer_length"))
        bench.pass_ms(1900)
        self.assertEqual(size, len(self.files.content(PATH)))
        bench.pass_ms(200)
        self.assertEqual(2 * size, len(self.files.content(PATH)))
        self.assertEqual(("1", "1"), self.sync_fields())
        bench.threads.release()
        self.assertEqual("0", bench.field("aof_pending_bio_fsync"))
        bench.aof.reset_statistics()
        self.assertEqual("0", bench.field("aof_delayed_fsync"))

    def sync_fields(self) -> tuple[str, str]:
        """Whether a sync is running, and how many were too slow."""
        field = self.bench.field
        return field("aof_pending_bio_fsync"), field("aof_delayed_fsync")

    def test_postponed_until_sync_ends(self) -> None:
        """Postponed records are written as soon as the sync ends."""
        bench = self.bench
        bench.turn(bench.add)
        bench.threads.held = True
        bench.pass_ms(1000)
        bench.turn(bench.add)
        bench.threads.release()
        bench.turn()
        self.assertEqual(bench.ids(), loaded(self.files.content(PATH)).ids())

    def test_full_disk(self) -> None:
        """On a full disk clients get an error with the reason, until a write succeeds again; no
        record is lost or torn meanwhile."""
        bench = self.bench
        bench.turn(bench.add)
        whole = self.files.content(PATH)
        self.files.room_bytes = 10
        bench.turn(bench.add)
        self.assertEqual(FULL, bench.aof.write_error)
        self.assertEqual("err", bench.field("aof_last_write_status"))
        self.assertEqual(whole, self.files.content(PATH))
        bench.turn(bench.add)
        self.files.room_bytes = -1
        bench.pass_ms(900)
        self.assertEqual(whole, self.files.content(PATH))
        bench.pass_ms(200)
        self.assertEqual("", bench.aof.write_error)
        self.assertEqual(bench.ids(), loaded(self.files.content(PATH)).ids())
        self.assertEqual([], bench.died)

    def test_only_torn_ends_are_cut(self) -> None:
        """A log that was never torn is only appended to: a disk that cannot cut files off is good
        enough for it."""
        self.files.truncate_error = errno.EIO
        for _ in range(3):
            self.bench.turn(self.bench.add)
            self.assertEqual("", self.bench.aof.write_error)
        self.assertEqual(self.bench.ids(), loaded(self.files.content(PATH)).ids())

    def test_torn_end_is_cut_later(self) -> None:
        """If even the truncation fails, nothing is written after the torn record until it
        succeeds."""
        bench = self.bench
        bench.turn(bench.add)
        self.files.room_bytes = 10
        self.files.truncate_error = errno.EIO
        bench.turn(bench.add)
        self.files.room_bytes = -1
        bench.pass_ms(1500)
        self.assertEqual(BROKEN, bench.aof.write_error)
        self.files.truncate_error = 0
        bench.pass_ms(1500)
        self.assertEqual(bench.ids(), loaded(self.files.content(PATH)).ids())

    def test_failed_sync_is_repaired(self) -> None:
        """After a failed sync the file's contents are unknown: clients get errors until a rewrite
        has created a new file."""
        bench = self.bench
        bench.turn(bench.add)
        self.files.sync_error = errno.EIO
        bench.pass_ms(1000)
        self.assertEqual(BROKEN, bench.aof.write_error)
        bench.settle()
        self.assertEqual("err", bench.field("aof_last_bgrewrite_status"))
        self.files.sync_error = 0
        bench.pass_ms(9000)
        self.assertEqual(BROKEN, bench.aof.write_error)
        bench.pass_ms(2000)
        bench.settle()
        self.assertEqual("", bench.aof.write_error)
        self.assertEqual([], bench.died)
        self.assertEqual(bench.ids(), self.survivors())


class NeverTests(LogCase):
    """``appendfsync no``."""

    policy = "no"

    def test_system_decides(self) -> None:
        """The log never syncs, except when the process ends."""
        before = self.files.syncs
        self.bench.turn(self.bench.add)
        self.bench.pass_ms(5000)
        self.assertEqual(before, self.files.syncs)
        self.bench.aof.stopService()
        self.assertEqual(self.bench.ids(), self.survivors())


class StopTests(LogCase):
    """An orderly stop loses nothing."""

    policy = "everysec"

    def test_postponed_write(self) -> None:
        """Records that wait for a running sync are written and synced before the process ends."""
        bench = self.bench
        bench.turn(bench.add)
        bench.threads.held = True
        bench.pass_ms(1000)
        bench.turn(bench.add)
        bench.aof.flush_and_sync()
        self.assertEqual(bench.ids(), self.survivors())

    def test_same_turn(self) -> None:
        """A job that came with the SHUTDOWN in one write is not lost."""
        self.bench.begin()
        self.bench.add()
        self.bench.aof.flush_and_sync()
        self.assertEqual(self.bench.ids(), self.survivors())

    def test_failed_write_is_reported(self) -> None:
        """If the last records cannot be written, the caller of the stop gets the error."""
        self.files.room_bytes = 0
        self.bench.turn(self.bench.add)
        error = self.assertRaises(OSError, self.bench.aof.flush_and_sync)
        self.assertIn(FULL, str(error))

    def test_lets_go(self) -> None:
        """After the stop no file is open and nothing is scheduled, even with a sync and a rewrite
        under way."""
        bench = self.bench
        bench.turn(bench.add)
        bench.aof.rewrite()
        bench.threads.held = True
        bench.pass_ms(1000)
        bench.aof.stopService()
        bench.threads.release()
        bench.threads.release()
        self.assertEqual([], bench.clock.getDelayedCalls())
        self.assertEqual(0, self.files.open_files)
        self.assertEqual([PATH], self.files.paths())


class SwitchTests(SynchronousTestCase):
    """``CONFIG SET appendonly``."""

    def setUp(self) -> None:
        self.files = MemoryFiles()
        self.bench = Bench(self.files, settings(appendonly=False))
        self.successResultOf(self.bench.start())

    def survivors(self) -> list[bytes]:
        self.files.crash()
        again = Bench(self.files, settings())
        self.successResultOf(again.start())
        return again.ids()

    def test_on(self) -> None:
        """The log begins with the existing jobs and includes those that are added meanwhile."""
        bench = self.bench
        bench.turn(bench.add, bench.add)
        bench.aof.enable()
        self.assertEqual("wait-rewrite", bench.field("aof_state"))
        self.assertEqual("0", bench.field("aof_current_size"))
        bench.turn(bench.add)
        bench.settle()
        self.assertEqual("on", bench.field("aof_state"))
        bench.turn(bench.add)
        self.assertEqual(4, len(bench.ids()))
        self.assertEqual(bench.ids(), self.survivors())

    def test_on_during_dump(self) -> None:
        """A dump that is under way becomes the log."""
        bench = self.bench
        bench.turn(bench.add)
        bench.aof.rewrite()
        bench.aof.enable()
        bench.settle()
        self.assertEqual("on", bench.field("aof_state"))
        self.assertEqual(bench.ids(), self.survivors())

    def test_on_impossible(self) -> None:
        """If the file cannot be created the caller gets an error, and the log stays disabled."""
        self.files.write_error = errno.EROFS
        self.assertRaises(OSError, self.bench.aof.enable)
        self.assertEqual("off", self.bench.field("aof_state"))
        self.assertIsNone(self.bench.node.outbox.log)

    def test_first_log_is_tried_again(self) -> None:
        """If the first rewrite fails, it is tried again."""
        bench = self.bench
        bench.turn(bench.add)
        self.files.room_bytes = 10
        bench.aof.enable()
        bench.settle()
        self.assertEqual("wait-rewrite", bench.field("aof_state"))
        self.files.room_bytes = -1
        bench.pass_ms(11_000)
        bench.settle()
        self.assertEqual("on", bench.field("aof_state"))
        self.assertEqual(bench.ids(), self.survivors())

    def test_stop_before_first_log(self) -> None:
        """An orderly stop completes the first log before the process ends."""
        self.bench.turn(self.bench.add)
        self.bench.aof.enable()
        self.bench.aof.stopService()
        self.assertEqual(self.bench.ids(), self.survivors())

    def test_off(self) -> None:
        """Once disabled, the file holds everything until then and is not changed any more."""
        bench = self.bench
        bench.settings.appendfsync = "no"
        bench.aof.enable()
        bench.settle()
        bench.turn(bench.add)
        there = bench.ids()
        bench.aof.disable()
        bench.turn(bench.add)
        self.assertEqual("off", bench.field("aof_state"))
        self.assertIsNone(bench.node.outbox.log)
        self.assertEqual((0, 0), (self.files.open_files, bench.aof.size))
        self.assertEqual(there, self.survivors())

    def test_off_during_rewrite(self) -> None:
        """Disabling the log aborts a rewrite, and nothing of it is left."""
        self.bench.aof.enable()
        self.bench.aof.disable()
        self.assertEqual([], self.files.paths())
        self.assertEqual([], self.bench.clock.getDelayedCalls())
        self.assertEqual("0", self.bench.field("aof_rewrite_in_progress"))

    def test_off_on_broken_disk(self) -> None:
        """An operator disables the log when the disk is broken, so this must work then."""
        bench = self.bench
        bench.settings.appendfsync = "everysec"
        bench.aof.enable()
        bench.settle()
        self.files.write_error = errno.EIO
        bench.turn(bench.add)
        bench.aof.disable()
        self.assertEqual("", bench.aof.write_error)
        self.assertIn(
            "warning: The append only file is turned off, but the last records are missing:"
            f" {BROKEN}",
            bench.log.lines,
        )


class ReloadTests(LogCase):
    """DEBUG LOADAOF."""

    def test_same_jobs(self) -> None:
        """The jobs are those of the file, which is not changed."""
        bench = self.bench
        bench.turn(bench.add, bench.add)
        before, content = bench.ids(), self.files.content(PATH)
        bench.turn(bench.aof.reload)
        self.assertEqual(before, bench.ids())
        self.assertEqual(content, self.files.content(PATH))
        bench.turn(bench.add)
        self.assertEqual(bench.ids(), self.survivors())

    def test_same_turn(self) -> None:
        """Changes made earlier in the turn are already in the file."""
        self.bench.settings.appendfsync = "no"
        self.bench.turn(self.bench.add, self.bench.aof.reload)
        self.assertEqual(1, len(self.bench.ids()))

    def test_missing(self) -> None:
        """Without a file the command is refused, and no job is lost."""
        bench = self.bench
        bench.turn(bench.add)
        self.files.remove(PATH)
        error = self.assertRaises(CommandError, bench.turn, bench.aof.reload)
        self.assertEqual(
            b"ERR Can't load /data/disque.aof: No such file or directory", error.reply()
        )
        self.assertEqual(1, len(bench.ids()))

    def test_empty(self) -> None:
        """An empty file is refused as by the original."""
        error = self.assertRaises(CommandError, self.bench.aof.reload)
        self.assertEqual(b"ERR", error.reply())

    def test_damaged(self) -> None:
        """A damaged file is refused before any job is forgotten."""
        files = MemoryFiles()
        bench = Bench(files, settings(appendonly=False))
        files.put(PATH, vector("aof/node0.aof") + b"\n")
        bench.turn(bench.add)
        error = self.assertRaises(CommandError, bench.aof.reload)
        self.assertIn(b"damaged at offset 3703", error.reply())
        self.assertEqual(1, len(bench.ids()))

    def test_during_rewrite(self) -> None:
        """A rewrite under way starts again, so that it cannot mix old and new contents."""
        bench = self.bench
        bench.turn(bench.add, bench.add)
        bench.aof.rewrite()
        bench.turn(bench.aof.reload)
        self.assertEqual("1", bench.field("aof_rewrite_scheduled"))
        bench.pass_ms(100)
        bench.settle()
        self.assertEqual(("0", "ok"), self.rewrite_fields())
        self.assertEqual(bench.ids(), self.survivors())

    def rewrite_fields(self) -> tuple[str, str]:
        """Whether a rewrite is scheduled, and how the last one ended."""
        field = self.bench.field
        return field("aof_rewrite_scheduled"), field("aof_last_bgrewrite_status")


class InfoTests(LogCase):
    """INFO Persistence."""

    def test_off(self) -> None:
        """Without a log the section is that of the original."""
        bench = Bench(MemoryFiles(), settings(appendonly=False))
        text = "".join(f"{name}:{value}\r\n" for name, value in bench.aof.info())
        self.assertEqual(
            "loading:0\r\naof_enabled:0\r\naof_state:off\r\naof_rewrite_in_progress:0\r\n"
            "aof_rewrite_scheduled:0\r\naof_last_rewrite_time_sec:-1\r\n"
            "aof_current_rewrite_time_sec:-1\r\naof_last_bgrewrite_status:ok\r\n"
            "aof_last_write_status:ok\r\n",
            text,
        )

    def test_on(self) -> None:
        """With a log its sizes follow, in the order of the original."""
        self.bench.turn(self.bench.add)
        size = str(len(self.files.content(PATH)))
        self.assertEqual(
            [
                ("aof_current_size", size),
                ("aof_base_size", "0"),
                ("aof_pending_rewrite", "0"),
                ("aof_buffer_length", "0"),
                ("aof_rewrite_buffer_length", "0"),
                ("aof_pending_bio_fsync", "0"),
                ("aof_delayed_fsync", "0"),
                ("aof_syncs", "1"),
                ("aof_sync_seconds", "0.000000"),
            ],
            self.bench.aof.info()[9:],
        )

    def test_new(self) -> None:
        """A log to which nothing was written yet is empty, and nothing waits for it."""
        shown = [value for _, value in self.bench.aof.info()[9:]]
        self.assertEqual([*["0"] * 8, "0.000000"], shown)

    def test_first_log(self) -> None:
        """Before the first log has its file all of its fields are there, with nothing in them but
        what waits for the new file."""
        files = MemoryFiles()
        bench = Bench(files, settings(appendonly=False))
        bench.aof.enable()
        names = [name for name, _ in self.bench.aof.info()]
        self.assertEqual(names, [name for name, _ in bench.aof.info()])
        shown = dict(bench.aof.info())
        self.assertEqual(["0"] * 8 + ["0.000000"], [shown[name] for name in names[9:]])
        self.assertEqual(("1", "wait-rewrite"), (shown["aof_enabled"], shown["aof_state"]))
        bench.turn(bench.add)
        self.assertNotEqual("0", bench.field("aof_rewrite_buffer_length"))
        bench.settle()
        self.assertEqual((str(len(files.content(PATH))), "0"), self.sizes(bench))

    def sizes(self, bench: Bench) -> tuple[str, str]:
        """How much is in the file, and how much waits for a new one."""
        return bench.field("aof_current_size"), bench.field("aof_rewrite_buffer_length")


STEPS = st.lists(
    st.sampled_from(["add", "add", "add", "remove", "get", "rewrite", "reactor", "tick", "crash"]),
    max_size=60,
)


class DurabilityTests(SynchronousTestCase):
    """The promise of ``always``, for any sequence of events."""

    @hypothesis_settings(max_examples=150, deadline=None)
    @given(STEPS, st.sampled_from([0.0, 0.3, 1.0]))
    def test_committed_jobs_survive(self, steps: list[str], kept: float) -> None:
        """After a crash exactly those jobs exist that were confirmed to clients and not removed."""
        files = MemoryFiles()
        bench = Bench(files, settings())
        bench.start()
        for number, step in enumerate([*steps, "crash"]):
            bench.begin()
            ids = bench.ids()
            if step == "add":
                bench.turn(bench.add)
            elif step == "remove" and ids:
                bench.remove(ids[: 1 + len(ids) // 3])
            elif step == "get":
                bench.turn(bench.get)
            elif step == "rewrite" and bench.field("aof_rewrite_in_progress") == "0":
                bench.aof.rewrite()
                bench.threads.held = True
            elif step == "reactor":
                bench.clock.turn()
                bench.threads.release()
            elif step == "tick":
                bench.pass_ms(100)
            elif step == "crash":
                files.crash(kept)
                bench = Bench(files, settings(), seed=number + 2)
                self.successResultOf(bench.start())
                self.assertEqual(ids, bench.ids())
