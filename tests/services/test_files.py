"""One contract for files on disk and in memory, and what only one of them has."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from disque_tx.engine.files import IFile, IFiles
from disque_tx.engine.ownership import IN_USE, claim, claim_empty, claim_name
from disque_tx.services.files import RealFiles
from disque_tx.services.memoryfiles import MemoryFiles

# The contract becomes a test case only together with an implementation.
if TYPE_CHECKING:
    _Base = SynchronousTestCase
else:
    _Base = object


class FilesContract(_Base):
    """What every implementation promises."""

    files: IFiles
    folder: str

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def content(self, name: str) -> bytes:
        file = self.files.open(self.path(name))
        self.addCleanup(file.close)
        return file.read(0, 10_000)

    def test_interfaces(self) -> None:
        """Whatever is given where files are wanted has all their methods."""
        self.assertTrue(verifyObject(IFiles, self.files))
        file = self.files.create(self.path("a"))
        self.addCleanup(file.close)
        self.assertTrue(verifyObject(IFile, file))

    def test_missing(self) -> None:
        """A log that is not there is told from one that cannot be read."""
        self.assertRaises(FileNotFoundError, self.files.open, self.path("a"))

    def test_append_and_read(self) -> None:
        """What is appended comes behind what is there, also after opening the file again."""
        file = self.files.create(self.path("a"))
        file.append(b"12")
        file.append(b"345")
        file.sync()
        file.close()
        file = self.files.open(self.path("a"))
        self.addCleanup(file.close)
        file.append(b"6")
        self.assertEqual(6, file.size())
        self.assertEqual(b"2345", file.read(1, 4))
        self.assertEqual(b"", file.read(6, 4))

    def test_truncate(self) -> None:
        """Behind a cut the file goes on at the new end, without a hole."""
        file = self.files.create(self.path("a"))
        self.addCleanup(file.close)
        file.append(b"12345")
        file.truncate(2)
        file.append(b"6")
        self.assertEqual(b"126", file.read(0, 10))

    def test_create_empties(self) -> None:
        """What a crashed rewrite left behind is not a part of the next one."""
        self.files.replace(self.path("a"), b"old")
        self.files.create(self.path("a")).close()
        self.assertEqual(b"", self.content("a"))

    def test_rename(self) -> None:
        """The new log takes the place of the old one, which whoever has it open still has."""
        self.files.replace(self.path("a"), b"old")
        old = self.files.open(self.path("a"))
        self.addCleanup(old.close)
        self.files.replace(self.path("b"), b"new")
        self.files.rename(self.path("b"), self.path("a"))
        self.files.sync_folder(self.path("a"))
        self.assertEqual(b"new", self.content("a"))
        self.assertEqual(b"old", old.read(0, 10))
        self.assertRaises(FileNotFoundError, self.files.open, self.path("b"))

    def test_rename_missing(self) -> None:
        """A temporary file that somebody removed is an error, not an empty log."""
        self.assertRaises(FileNotFoundError, self.files.rename, self.path("a"), self.path("b"))

    def test_remove(self) -> None:
        """Removing is safe on every way out."""
        self.files.replace(self.path("a"), b"x")
        self.files.remove(self.path("a"))
        self.files.remove(self.path("a"))
        self.assertRaises(FileNotFoundError, self.files.open, self.path("a"))

    def test_replace(self) -> None:
        """The content is exactly the new one, however long the old one was."""
        self.files.replace(self.path("a"), b"a long text")
        self.files.replace(self.path("a"), b"short")
        self.assertEqual(b"short", self.content("a"))

    def test_open_new(self) -> None:
        """A file that may be new is made, and one that is there is left as it is."""
        self.files.open(self.path("a"), True).close()
        self.assertEqual(b"", self.content("a"))
        self.files.replace(self.path("a"), b"old")
        self.files.open(self.path("a"), True).close()
        self.assertEqual(b"old", self.content("a"))

    def test_lock(self) -> None:
        """Of two that have a file open, one has it locked, until it is closed."""
        first = self.files.create(self.path("a"))
        second = self.files.open(self.path("a"))
        self.addCleanup(second.close)
        first.lock()
        first.lock()
        self.assertRaises(BlockingIOError, second.lock)
        first.close()
        second.lock()

    def test_lock_moves_with_the_file(self) -> None:
        """A log that was rewritten under a lock is locked under its new name."""
        self.files.replace(self.path("a"), b"old")
        new = self.files.create(self.path("b"))
        new.lock()
        self.files.rename(self.path("b"), self.path("a"))
        found = self.files.open(self.path("a"))
        self.addCleanup(found.close)
        self.assertRaises(BlockingIOError, found.lock)
        new.close()

    def test_is_at(self) -> None:
        """Whoever has a file open sees that its name was given to another one, or is gone."""
        file = self.files.create(self.path("a"))
        self.addCleanup(file.close)
        self.assertTrue(file.is_at(self.path("a")))
        self.files.rename(self.path("a"), self.path("b"))
        self.assertEqual((False, True), (file.is_at(self.path("a")), file.is_at(self.path("b"))))
        self.files.replace(self.path("b"), b"other")
        self.assertFalse(file.is_at(self.path("b")))

    def test_claim(self) -> None:
        """What one node has claimed, another one is refused, whatever it wants with it."""
        mine = claim(self.files, self.path("a"))
        mine.append(b"1")
        for again in (claim, claim_empty):
            with self.assertRaises(BlockingIOError) as caught:
                again(self.files, self.path("a"))
            self.assertEqual(IN_USE, caught.exception.strerror)
        with self.assertRaises(BlockingIOError):
            claim_name(self.files, self.path("a"), self.path("b"))
        mine.close()
        self.assertEqual(b"1", self.content("a"))
        claim_empty(self.files, self.path("a")).close()
        self.assertEqual(b"", self.content("a"))

    def test_claim_missing(self) -> None:
        """A file that must be there and is not is no file in use."""
        with self.assertRaises(FileNotFoundError):
            claim(self.files, self.path("a"), False)

    def test_claim_name(self) -> None:
        """What is not ours is kept when its name is taken; an empty file is no loss."""
        for _ in range(2):
            claim_name(self.files, self.path("a"), self.path("b")).close()
            self.assertRaises(FileNotFoundError, self.files.open, self.path("b"))
        self.files.replace(self.path("a"), b"other")
        mine = claim_name(self.files, self.path("a"), self.path("b"))
        self.addCleanup(mine.close)
        self.assertTrue(mine.is_at(self.path("a")))
        self.assertEqual((b"", b"other"), (self.content("a"), self.content("b")))

    def test_closed(self) -> None:
        """Nothing is written through a file that was given back."""
        file = self.files.create(self.path("a"))
        file.close()
        self.assertRaises(OSError, file.append, b"x")


class MemoryFilesTests(FilesContract, SynchronousTestCase):
    """The double, and the bad days it can have."""

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
        """A crash may leave any part of what was not synced: the end of a record is torn off."""
        file = self.files.create(self.path("a"))
        self.files.sync_folder(self.path("a"))
        file.append(b"1234")
        self.memory.crash(0.5)
        self.assertEqual(b"12", self.content("a"))

    def test_crash_loses_names(self) -> None:
        """A new or renamed file is only there for sure once its folder was synced."""
        self.files.replace(self.path("a"), b"old")
        self.files.create(self.path("b")).close()
        self.files.rename(self.path("b"), self.path("a"))
        self.memory.crash()
        self.assertEqual([self.path("a")], self.memory.paths())
        self.assertEqual(b"old", self.content("a"))

    def test_full(self) -> None:
        """A full disk takes a part and says so; cutting makes room again."""
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
        """Every operation the log depends on can fail, and then has no effect."""
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
    """The disk of this machine."""

    def setUp(self) -> None:
        self.files = RealFiles()
        self.folder = self.mktemp()
        os.mkdir(self.folder)

    def test_replace_keeps_permissions(self) -> None:
        """A configuration file that only its owner may read stays so when it is rewritten."""
        Path(self.path("a")).write_bytes(b"requirepass secret")
        os.chmod(self.path("a"), 0o600)
        self.files.replace(self.path("a"), b"new")
        self.assertEqual(0o600, os.stat(self.path("a")).st_mode & 0o777)

    def test_replace_follows_links(self) -> None:
        """A configuration file that is a link into another folder stays one."""
        Path(self.path("a")).write_bytes(b"old")
        os.symlink("a", self.path("link"))
        self.files.replace(self.path("link"), b"new")
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertEqual(b"new", self.content("a"))

    def test_replace_cleans_up(self) -> None:
        """A failed replacement leaves nothing behind."""
        os.mkdir(self.path("a"))
        self.assertRaises(OSError, self.files.replace, self.path("a"), b"new")
        self.assertEqual(["a"], os.listdir(self.folder))

    def test_relative_path(self) -> None:
        """A path without a folder is one in the working folder."""
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        self.files.replace("a", b"new")
        self.assertEqual(b"new", Path("a").read_bytes())

    def test_write_error_has_reason(self) -> None:
        """What the operator reads is what the system says, not that a number differs."""
        file = self.files.open("/dev/full")
        self.addCleanup(file.close)
        with self.assertRaises(OSError) as caught:
            file.append(b"x")
        self.assertEqual(errno.ENOSPC, caught.exception.errno)
