"""The files of a node on a real disk."""

from __future__ import annotations

import errno
import fcntl
import os
from typing import Final

from zope.interface import implementer

from disque_tx.engine.interfaces import IFile, IFiles

_MODE: Final = 0o644
_MODE_BITS: Final = 0o7777


@implementer(IFile)
class RealFile:
    """An open file descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def size(self) -> int:
        """Bytes in the file."""
        return os.fstat(self._fd).st_size

    def read(self, offset: int, length: int) -> bytes:
        """Up to ``length`` bytes from ``offset``."""
        return os.pread(self._fd, length, offset)

    def append(self, data: bytes) -> None:
        """Write until everything is written, so that a full disk raises its error."""
        written = os.write(self._fd, data)
        if written == len(data):
            return
        rest = memoryview(data)[written:]
        while rest:
            written = os.write(self._fd, rest)
            if written == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            rest = rest[written:]

    def truncate(self, size: int) -> None:
        """Cut off what is behind ``size`` bytes."""
        os.ftruncate(self._fd, size)

    def sync(self) -> None:
        """Data and length are on the disk."""
        os.fdatasync(self._fd)

    def lock(self) -> None:
        """Lock the file until it is closed."""
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def is_at(self, path: str) -> bool:
        """Whether the name is this file's."""
        try:
            there = os.stat(path)
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(self._fd))

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._fd)


@implementer(IFiles)
class RealFiles:
    """The file system of the machine."""

    def open(self, path: str, may_be_new: bool = False) -> RealFile:
        """The file, for reading and appending."""
        create = os.O_CREAT if may_be_new else 0
        return RealFile(os.open(path, os.O_RDWR | os.O_APPEND | create, _MODE))

    def create(self, path: str) -> RealFile:
        """A new and empty file."""
        return RealFile(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC, _MODE))

    def rename(self, old: str, new: str) -> None:
        """Give a file another name."""
        os.rename(old, new)

    def remove(self, path: str) -> None:
        """Remove the file, if it is there."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass

    def sync_folder(self, path: str) -> None:
        """The names in the folder of ``path`` are on the disk."""
        fd = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def replace(self, path: str, data: bytes) -> None:
        """Write a new file and rename it over the old one, whose permissions it takes.

        A symbolic link stays one: what it points to is replaced.
        """
        target = os.path.realpath(path)
        temporary = f"{target}.tmp-{os.getpid()}"
        try:
            self._write(temporary, data, _mode(target))
            self.rename(temporary, target)
        except OSError:
            self.remove(temporary)
            raise
        self.sync_folder(target)

    def _write(self, path: str, data: bytes, mode: int | None) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, _MODE)
        try:
            if mode is not None:
                os.fchmod(fd, mode)
            RealFile(fd).append(data)
            os.fsync(fd)
        finally:
            os.close(fd)


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode & _MODE_BITS
    except FileNotFoundError:
        return None
