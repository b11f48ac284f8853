"""Tests for :mod:`disque_tx.sim.world.disk`."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.sim.world.disk import Disk, PowerLostError
from disque_tx.sim.world.world import World


def disk_of(seed: int) -> Disk:
    return Disk(World(seed), "a")


class CrashTests(SynchronousTestCase):
    """What is left after a power failure."""

    def crashed(self, seed: int) -> bytes:
        """A file of ten synced and ten unsynced bytes, after the failure."""
        disk = disk_of(seed)
        disk.create("log")
        disk.sync_folder()
        disk.append("log", b"0123456789")
        disk.sync("log")
        disk.append("log", b"abcdefghij")
        disk.crash()
        return disk.read("log")

    def test_synced(self) -> None:
        """Synced data is always there; for the rest every possible outcome occurs."""
        contents = [self.crashed(seed) for seed in range(200)]
        for content in contents:
            self.assertEqual(b"0123456789", content[:10])
            self.assertLessEqual(len(content), 20)
        whole = b"0123456789abcdefghij"
        self.assertIn(whole, contents)
        self.assertIn(whole[:10], contents)
        torn = [c for c in contents if 10 < len(c) < 20 and whole.startswith(c)]
        garbage = [c for c in contents if not whole.startswith(c)]
        self.assertTrue(torn and garbage)

    def test_overwritten(self) -> None:
        """After overwriting, each sector of the file is either old or new."""
        seen: set[bytes] = set()
        for seed in range(60):
            disk = disk_of(seed)
            disk.create("nodes")
            disk.sync_folder()
            disk.overwrite("nodes", b"old old")
            disk.sync("nodes")
            disk.overwrite("nodes", b"new")
            disk.crash()
            seen.add(disk.read("nodes"))
        self.assertEqual(
            {b"old old", b"new"}, {content.replace(b"new old", b"new") for content in seen}
        )

    def test_names(self) -> None:
        """An unsynced rename may be undone, but the name always refers to one of its files."""
        seen: set[bytes] = set()
        for seed in range(60):
            disk = disk_of(seed)
            for name in ("log", "new"):
                disk.create(name)
                disk.append(name, name.encode())
                disk.sync(name)
            disk.sync_folder()
            disk.rename("new", "log")
            disk.crash()
            seen.add(disk.read("log"))
        self.assertEqual({b"log", b"new"}, seen)

    def test_unsynced_name(self) -> None:
        """A new file whose folder was not synced may be missing."""
        seen: set[bool] = set()
        for seed in range(60):
            disk = disk_of(seed)
            disk.create("log")
            disk.crash()
            seen.add(disk.exists("log"))
        self.assertEqual({True, False}, seen)

    def test_failed_sync(self) -> None:
        """After a failed sync, no later one makes the data durable."""
        lost = 0
        for seed in range(40):
            disk = disk_of(seed)
            disk.create("log")
            disk.sync_folder()
            disk.append("log", b"data")
            disk.sync_fails = True
            with self.assertRaises(OSError) as caught:
                disk.sync("log")
            self.assertEqual(errno.EIO, caught.exception.errno)
            disk.sync_fails = False
            disk.sync("log")
            disk.crash()
            lost += disk.read("log") != b"data"
        self.assertGreater(lost, 0)

    def test_settled(self) -> None:
        """What a new process reads after a failed sync is durable."""
        disk = disk_of(4)
        disk.create("log")
        disk.sync_folder()
        disk.append("log", b"data")
        disk.sync_fails = True
        self.assertRaises(OSError, disk.sync, "log")
        disk.start_process()
        found = disk.read("log")
        disk.crash()
        self.assertEqual(found, disk.read("log"))

    def test_power_at_work(self) -> None:
        """The power can fail between a write and the sync after it."""
        disk = disk_of(1)
        disk.create("log")
        calls: list[str] = []
        disk.lose_power_in(1, lambda: calls.append("now"))
        disk.append("log", b"data")
        self.assertRaises(PowerLostError, disk.sync, "log")
        self.assertEqual(["now"], calls)


class FaultTests(SynchronousTestCase):
    """Failing writes, and replaced disks."""

    def test_full(self) -> None:
        """A full disk writes a part and reports it; existing data can still be overwritten."""
        disk = disk_of(1)
        disk.create("log")
        disk.append("log", b"0123")
        disk.full = True
        with self.assertRaises(OSError) as caught:
            disk.append("log", b"456789")
        self.assertEqual(errno.ENOSPC, caught.exception.errno)
        self.assertTrue(b"0123456789".startswith(disk.read("log")))
        disk.truncate("log", 4)
        disk.overwrite("log", b"abcd")
        self.assertEqual(b"abcd", disk.read("log"))

    def test_short(self) -> None:
        """Short writes affect some writes, not all."""
        disk = disk_of(1)
        disk.create("log")
        disk.short_writes = True
        failures = 0
        for _ in range(50):
            try:
                disk.append("log", b"0123456789")
            except OSError:
                failures += 1
        self.assertTrue(0 < failures < 50)

    def test_missing(self) -> None:
        """A missing file raises the usual error."""
        self.assertRaises(FileNotFoundError, disk_of(1).read, "log")

    def test_stale(self) -> None:
        """An old disk has its old contents, whatever happened to the files since."""
        disk = disk_of(1)
        disk.create("log")
        disk.append("log", b"old")
        files = disk.snapshot()
        disk.append("log", b" and new")
        disk.restore(files)
        self.assertEqual(b"old", disk.read("log"))
        disk.wipe()
        self.assertEqual([], disk.names())
