"""Features that only the files on disk, or only those in memory, have."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.services.machine.files import RealFiles
from disque_tx.services.machine.memoryfiles import MemoryFiles
from tests.engine.filescontract import FilesContract


class MemoryFilesTests(FilesContract, SynchronousTestCase):
    """The in-memory double and the failures it simulates."""

    def setUp(self) -> None:
        self.files = self.memory = MemoryFiles()
        self.folder = "/folder"

    def test_crash_loses_unsynced(self) -> None:
        """A program that does not sync loses data in tests, too; synced data is never lost."""
        file = self.files.create(self.path("a"))
        self.files.sync_folder(self.path("a"))
        file.append(b"123")
        file.sync()
        file.append(b"4567")
        self.memory.crash()
        self.assertEqual(b"123", self.content("a"))

    def test_crash_keeps_some(self) -> None:
        """A crash may keep any part of the unsynced data: the end of a record may be missing."""
        file = self.files.create(self.path("a"))
        self.files.sync_folder(self.path("a"))
        file.append(b"1234")
        self.memory.crash(0.5)
        self.assertEqual(b"12", self.content("a"))

    def test_crash_loses_names(self) -> None:
        """A new or renamed file is durable only after a sync of its folder."""
        self.files.replace(self.path("a"), b"old")
        self.files.create(self.path("b")).close()
        self.files.rename(self.path("b"), self.path("a"))
        self.memory.crash()
        self.assertEqual([self.path("a")], self.memory.paths())
        self.assertEqual(b"old", self.content("a"))

    def test_full(self) -> None:
        """A full disk writes a part and reports it; truncating makes room again."""
        self.memory.room_bytes = 4
        file = self.files.create(self.path("a"))
        with self.assertRaises(OSError) as caught:
            file.append(b"123456")
        self.assertEqual(errno.ENOSPC, caught.exception.errno)
        self.assertEqual(4, file.size())
        file.truncate(0)
        file.append(b"1234")
        self.assertEqual(4, file.size())

    def test_broken(self) -> None:
        """Every operation that the log uses can fail without an effect."""
        file = self.files.create(self.path("a"))
        self.files.sync_folder(self.path("a"))
        file.append(b"1")
        self.memory.write_error = self.memory.sync_error = errno.EIO
        self.memory.truncate_error = self.memory.rename_error = errno.EIO
        self.assertRaises(OSError, file.append, b"2")
        self.assertRaises(OSError, file.truncate, 0)
        self.assertRaises(OSError, file.sync)
        self.assertRaises(OSError, self.files.rename, self.path("a"), self.path("b"))
        self.assertRaises(OSError, self.files.replace, self.path("a"), b"x")
        self.assertEqual(b"1", self.content("a"))
        self.memory.crash()
        self.assertEqual(b"", self.content("a"))


class RealFilesTests(FilesContract, SynchronousTestCase):
    """Files on a real disk."""

    def setUp(self) -> None:
        self.files = RealFiles()
        self.folder = self.mktemp()
        os.mkdir(self.folder)

    def test_replace_keeps_permissions(self) -> None:
        """A configuration file that is readable only by its owner stays so after a rewrite."""
        Path(self.path("a")).write_bytes(b"requirepass secret")
        os.chmod(self.path("a"), 0o600)
        self.files.replace(self.path("a"), b"new")
        self.assertEqual(0o600, os.stat(self.path("a")).st_mode & 0o777)

    def test_replace_follows_links(self) -> None:
        """A configuration file that is a symbolic link stays one."""
        Path(self.path("a")).write_bytes(b"old")
        os.symlink("a", self.path("link"))
        self.files.replace(self.path("link"), b"new")
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertEqual(b"new", self.content("a"))

    def test_replace_cleans_up(self) -> None:
        """A failed replacement leaves no files."""
        os.mkdir(self.path("a"))
        self.assertRaises(OSError, self.files.replace, self.path("a"), b"new")
        self.assertEqual(["a"], os.listdir(self.folder))

    def test_relative_path(self) -> None:
        """A path without a folder is in the working directory."""
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        self.files.replace("a", b"new")
        self.assertEqual(b"new", Path("a").read_bytes())

    def test_write_error_has_reason(self) -> None:
        """The error contains the system's reason, not just a byte count."""
        file = self.files.open("/dev/full")
        self.addCleanup(file.close)
        with self.assertRaises(OSError) as caught:
            file.append(b"x")
        self.assertEqual(errno.ENOSPC, caught.exception.errno)
