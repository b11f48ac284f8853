"""How often the log was synced, and how long that took, as INFO shows it."""

from __future__ import annotations

import errno
from itertools import count

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.engine.aof.writer import as_os_error
from disque_tx.services.machine.memoryfiles import MemoryFiles
from tests.engine.aof.bench import WALL_US, Bench, settings


class SyncTests(SynchronousTestCase):
    """``aof_syncs`` and ``aof_sync_seconds``; each sync takes a quarter of a second."""

    def shown(self, policy: str) -> list[tuple[str, str]]:
        """Both fields, after each of two seconds with a new job in each."""
        clock = count(0, 0.25)
        monotonic = lambda: float(next(clock))  # noqa: E731
        bench = Bench(MemoryFiles(), settings(appendfsync=policy), monotonic)
        self.successResultOf(bench.start())
        found = []
        for _ in range(2):
            bench.turn(bench.add)
            bench.pass_ms(1_000)
            found.append((bench.field("aof_syncs"), bench.field("aof_sync_seconds")))
        bench.aof.reset_statistics()
        return [*found, (bench.field("aof_syncs"), bench.field("aof_sync_seconds"))]

    def test_sum(self) -> None:
        """An operator divides the one by the other to see how slow the disk is: both grow with
        every sync, in a thread or not, and begin anew together."""
        expected = [("1", "0.250000"), ("2", "0.500000"), ("0", "0.000000")]
        for policy in ("always", "everysec"):
            self.assertEqual(expected, self.shown(policy), policy)

    def test_kinds(self) -> None:
        """LATENCY tells slow writes during a sync from others: it is another fault of the disk."""
        clock = count(0, 0.25)
        monotonic = lambda: float(next(clock))  # noqa: E731
        bench = Bench(MemoryFiles(), settings(appendfsync="everysec"), monotonic)
        self.successResultOf(bench.start())
        monitor = bench.aof._environment.latency
        monitor.threshold_ms = 1
        bench.turn(bench.add)
        self.assertEqual({b"aof-write", b"aof-write-alone"}, set(monitor.series))
        bench.threads.held = True
        bench.pass_ms(1_000)
        bench.turn(bench.add)
        bench.pass_ms(2_500)
        bench.turn(bench.add)
        self.assertIn(b"aof-write-pending-fsync", set(monitor.series))
        bench.threads.release()

    def test_samples(self) -> None:
        """LATENCY has the time of each kind of access under ``always``, none while it is off."""
        clock = count(0, 0.25)
        monotonic = lambda: float(next(clock))  # noqa: E731
        bench = Bench(MemoryFiles(), settings(), monotonic)
        self.successResultOf(bench.start())
        monitor = bench.aof._environment.latency
        bench.turn(bench.add)
        self.assertEqual({}, monitor.series)
        monitor.threshold_ms = 1
        bench.turn(bench.add)
        second = WALL_US // 1_000_000
        found = {event: list(samples.samples) for event, samples in monitor.series.items()}
        self.assertEqual(
            {
                b"aof-write": [(second, 250)],
                b"aof-write-alone": [(second, 250)],
                b"aof-fsync-always": [(second, 500)],
            },
            found,
        )

    def test_other_errors(self) -> None:
        """An error in a thread that is none of the system is one of the disk, in its words."""
        error = as_os_error(ValueError("no such thing"))
        self.assertEqual((errno.EIO, "no such thing"), (error.errno, error.strerror))
        full = OSError(errno.ENOSPC, "full")
        self.assertIs(full, as_os_error(full))
