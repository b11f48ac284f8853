"""The files of a simulated process: the interface of real ones, on a simulated disk."""

from __future__ import annotations

import errno

from zope.interface import implementer

from disque_tx.engine.interfaces import IFile, IFiles
from disque_tx.sim.world.disk import Disk, StoredFile


@implementer(IFile)
class SimFile:
    """An open file of a disk."""

    def __init__(self, disk: Disk, file: StoredFile) -> None:
        self._disk = disk
        self._open: StoredFile | None = file
        self._locked = False

    @property
    def _file(self) -> StoredFile:
        if self._open is None:
            raise OSError(errno.EBADF, "closed")
        return self._open

    def size(self) -> int:
        """Bytes in the file."""
        return self._disk.size(self._file)

    def read(self, offset: int, length: int) -> bytes:
        """Up to ``length`` bytes from ``offset``."""
        return self._disk.read(self._file)[offset : offset + length]

    def append(self, data: bytes) -> None:
        """Write behind the end."""
        self._disk.append(self._file, data)

    def truncate(self, size: int) -> None:
        """Cut off what is behind ``size`` bytes."""
        self._disk.truncate(self._file, size)

    def sync(self) -> None:
        """What the file holds is on the disk afterwards."""
        self._disk.sync(self._file)

    def lock(self) -> None:
        """Lock the file until it is closed."""
        if self._locked:
            return
        if self._file.locked:
            raise BlockingIOError(errno.EWOULDBLOCK, "locked", self._file.name)
        self._file.locked = self._locked = True

    def is_at(self, path: str) -> bool:
        """Whether the name is this file's."""
        return self._disk.exists(path) and self._disk.find(path) is self._file

    def close(self) -> None:
        """Unlock it."""
        if self._locked:
            self._file.locked = self._locked = False
        self._open = None


@implementer(IFiles)
class SimFiles:
    """The files of one disk."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def open(self, path: str, may_be_new: bool = False) -> SimFile:
        """The file, for reading and appending."""
        if may_be_new and not self._disk.exists(path):
            self._disk.create(path)
        return SimFile(self._disk, self._disk.find(path))

    def create(self, path: str) -> SimFile:
        """A new and empty file."""
        self._disk.create(path)
        return SimFile(self._disk, self._disk.find(path))

    def rename(self, old: str, new: str) -> None:
        """Give a file another name."""
        self._disk.rename(old, new)

    def remove(self, path: str) -> None:
        """Remove the file, if it is there."""
        self._disk.remove(path)

    def sync_folder(self, path: str) -> None:
        """The names are on the disk."""
        self._disk.sync_folder()

    def replace(self, path: str, data: bytes) -> None:
        """Write a new file and rename it over the old one."""
        temporary = f"{path}.tmp"
        self._disk.create(temporary)
        try:
            self._disk.append(temporary, data)
            self._disk.sync(temporary)
            self._disk.rename(temporary, path)
        except OSError:
            self._disk.remove(temporary)
            raise
        self._disk.sync_folder()
