"""The common contract of files on a real disk, in memory, and on a simulated disk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from disque_tx.engine.interfaces import IFile, IFiles
from disque_tx.engine.ownership import IN_USE, claim, claim_empty, claim_name

# The contract is a test case only when combined with an implementation.
if TYPE_CHECKING:
    _Base = SynchronousTestCase
else:
    _Base = object


class FilesContract(_Base):
    """What every implementation guarantees."""

    files: IFiles
    folder: str

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def content(self, name: str) -> bytes:
        file = self.files.open(self.path(name))
        self.addCleanup(file.close)
        return file.read(0, 10_000)

    def test_interfaces(self) -> None:
        """Every implementation has all methods of the interfaces."""
        self.assertTrue(verifyObject(IFiles, self.files))
        file = self.files.create(self.path("a"))
        self.addCleanup(file.close)
        self.assertTrue(verifyObject(IFile, file))

    def test_missing(self) -> None:
        """A missing log is distinguished from one that cannot be read."""
        self.assertRaises(FileNotFoundError, self.files.open, self.path("a"))

    def test_append_and_read(self) -> None:
        """Data is appended after existing data, also after the file was opened again."""
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
        """After a truncation the file continues at the new end, without a hole."""
        file = self.files.create(self.path("a"))
        self.addCleanup(file.close)
        file.append(b"12345")
        file.truncate(2)
        file.append(b"6")
        self.assertEqual(b"126", file.read(0, 10))

    def test_create_empties(self) -> None:
        """The remains of a crashed rewrite are not part of the next one."""
        self.files.replace(self.path("a"), b"old")
        self.files.create(self.path("a")).close()
        self.assertEqual(b"", self.content("a"))

    def test_rename(self) -> None:
        """The new log replaces the old one, which stays readable where it is open."""
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
        """A temporary file that was removed is an error, not an empty log."""
        self.assertRaises(FileNotFoundError, self.files.rename, self.path("a"), self.path("b"))

    def test_remove(self) -> None:
        """Removing is safe in every error path."""
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
        """A file that may be new is created, and an existing one is left unchanged."""
        self.files.open(self.path("a"), True).close()
        self.assertEqual(b"", self.content("a"))
        self.files.replace(self.path("a"), b"old")
        self.files.open(self.path("a"), True).close()
        self.assertEqual(b"old", self.content("a"))

    def test_lock(self) -> None:
        """When a file is opened twice, only one of the two can lock it, until it is closed."""
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
        """An open file shows whether its name was removed or belongs to another file now."""
        file = self.files.create(self.path("a"))
        self.addCleanup(file.close)
        self.assertTrue(file.is_at(self.path("a")))
        self.files.rename(self.path("a"), self.path("b"))
        self.assertEqual((False, True), (file.is_at(self.path("a")), file.is_at(self.path("b"))))
        self.files.replace(self.path("b"), b"other")
        self.assertFalse(file.is_at(self.path("b")))

    def test_claim(self) -> None:
        """A file that one node has claimed is refused to another, whatever its purpose."""
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
        """A required file that is missing is not reported as in use."""
        with self.assertRaises(FileNotFoundError):
            claim(self.files, self.path("a"), False)

    def test_claim_name(self) -> None:
        """A foreign file is kept when its name is claimed; an empty file is not worth keeping."""
        for _ in range(2):
            claim_name(self.files, self.path("a"), self.path("b")).close()
            self.assertRaises(FileNotFoundError, self.files.open, self.path("b"))
        self.files.replace(self.path("a"), b"other")
        mine = claim_name(self.files, self.path("a"), self.path("b"))
        self.addCleanup(mine.close)
        self.assertTrue(mine.is_at(self.path("a")))
        self.assertEqual((b"", b"other"), (self.content("a"), self.content("b")))

    def test_closed(self) -> None:
        """A closed file cannot be written."""
        file = self.files.create(self.path("a"))
        file.close()
        self.assertRaises(OSError, file.append, b"x")
