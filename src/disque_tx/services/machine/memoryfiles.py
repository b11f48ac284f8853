"""Files in memory, for tests and the simulator, with everything that can go wrong on a disk.

A power failure (:meth:`MemoryFiles.crash`) keeps of a file what was synced, and of the rest as
much as the caller wants; of a folder the names that were synced. So a program that forgets a sync
loses data here, as it would on a bad day.
"""

from __future__ import annotations

import errno
import os

from zope.interface import implementer

from disque_tx.engine.interfaces import IFile, IFiles


class _Content:
    """``data``: as the program sees it; ``durable``: as the disk has it.
    ``locked_by``: the open file that holds the lock."""

    def __init__(self) -> None:
        self.data = b""
        self.durable = b""
        self.locked_by: MemoryFile | None = None

    def lose(self, kept: float) -> None:
        """Go on with what the disk has, and the part ``kept`` of what it was still to get."""
        if self.data.startswith(self.durable):
            unsynced = len(self.data) - len(self.durable)
            self.durable = self.data[: len(self.durable) + int(unsynced * kept)]
        elif kept >= 1:
            self.durable = self.data
        self.data = self.durable


@implementer(IFile)
class MemoryFile:
    """An open file of :class:`MemoryFiles`."""

    def __init__(self, files: MemoryFiles, content: _Content) -> None:
        self._files = files
        self._content = content
        self._closed = False

    def _check(self, error: int = 0) -> None:
        if self._closed or error:
            code = error or errno.EBADF
            raise OSError(code, os.strerror(code))

    def size(self) -> int:
        """Bytes in the file."""
        self._check()
        return len(self._content.data)

    def read(self, offset: int, length: int) -> bytes:
        """Up to ``length`` bytes from ``offset``."""
        self._check()
        return self._content.data[offset : offset + length]

    def append(self, data: bytes) -> None:
        """Take as much as there is room for."""
        self._check(self._files.write_error)
        room = self._files.room_bytes
        fitting = data if room < 0 else data[:room]
        self._content.data += fitting
        if room >= 0:
            self._files.room_bytes = room - len(fitting)
        if len(fitting) < len(data):
            self._check(errno.ENOSPC)

    def truncate(self, size: int) -> None:
        """Cut off what is behind ``size`` bytes, which makes room."""
        self._check(self._files.truncate_error)
        if self._files.room_bytes >= 0:
            self._files.room_bytes += max(0, len(self._content.data) - size)
        self._content.data = self._content.data[:size]

    def sync(self) -> None:
        """What was appended is durable."""
        self._check(self._files.sync_error)
        self._files.syncs += 1
        self._content.durable = self._content.data

    def lock(self) -> None:
        """Lock the content until this is closed."""
        self._check()
        if self._content.locked_by not in (None, self):
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK))
        self._content.locked_by = self

    def is_at(self, path: str) -> bool:
        """Whether the name is this file's."""
        self._check()
        return self._files.is_named(path, self._content)

    def close(self) -> None:
        """Close the file; further use raises an error."""
        self._check()
        if self._content.locked_by is self:
            self._content.locked_by = None
        self._closed = True
        self._files.open_files -= 1


@implementer(IFiles)
class MemoryFiles:
    """Files by path.

    What goes wrong: ``room_bytes``: how much can still be written, -1 for no limit;
    ``write_error``, ``sync_error``, ``truncate_error``, ``rename_error``: error number of every
    such call, 0 for none. ``syncs``: file syncs so far. ``open_files``: not closed yet.
    """

    def __init__(self) -> None:
        self.room_bytes = -1
        self.write_error = 0
        self.sync_error = 0
        self.truncate_error = 0
        self.rename_error = 0
        self.syncs = 0
        self.open_files = 0
        self._names: dict[str, _Content] = {}
        self._durable_names: dict[str, _Content] = {}

    def paths(self) -> list[str]:
        """Every file, sorted."""
        return sorted(self._names)

    def content(self, path: str) -> bytes:
        """What a file holds."""
        return self._find(path).data

    def put(self, path: str, data: bytes) -> None:
        """A file that is there, durably, before the program starts."""
        content = self._names[path] = self._durable_names[path] = _Content()
        content.data = content.durable = data

    def crash(self, kept: float = 0.0) -> None:
        """The power fails; open files must not be used afterwards.

        ``kept``: how much of what was not synced reached the disk all the same, 0 to 1.
        """
        for content in {*self._names.values(), *self._durable_names.values()}:
            content.lose(kept)
            content.locked_by = None
        self._names = dict(self._durable_names)
        self.open_files = 0

    def _find(self, path: str) -> _Content:
        content = self._names.get(path)
        if content is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return content

    def _opened(self, content: _Content) -> MemoryFile:
        self.open_files += 1
        return MemoryFile(self, content)

    def is_named(self, path: str, content: _Content) -> bool:
        """Whether the name is that of this content."""
        return self._names.get(path) is content

    def open(self, path: str, may_be_new: bool = False) -> MemoryFile:
        """The file as it is."""
        if may_be_new and path not in self._names:
            return self.create(path)
        return self._opened(self._find(path))

    def create(self, path: str) -> MemoryFile:
        """A new and empty file."""
        if self.write_error:
            raise OSError(self.write_error, os.strerror(self.write_error), path)
        content = self._names.setdefault(path, _Content())
        content.data = b""
        return self._opened(content)

    def rename(self, old: str, new: str) -> None:
        """Give a file another name."""
        content = self._find(old)
        if self.rename_error:
            raise OSError(self.rename_error, os.strerror(self.rename_error), old)
        del self._names[old]
        self._names[new] = content

    def remove(self, path: str) -> None:
        """Remove the file, if it is there."""
        self._names.pop(path, None)

    def sync_folder(self, path: str) -> None:
        """The names in the folder of ``path`` are durable."""
        if self.sync_error:
            raise OSError(self.sync_error, os.strerror(self.sync_error), path)
        folder = os.path.dirname(path)
        for names in (self._durable_names, self._names):
            for name in [name for name in names if os.path.dirname(name) == folder]:
                if name in self._names:
                    self._durable_names[name] = self._names[name]
                else:
                    del self._durable_names[name]

    def replace(self, path: str, data: bytes) -> None:
        """The file holds ``data``, durably."""
        temporary = f"{path}.tmp"
        try:
            file = self.create(temporary)
            try:
                file.append(data)
                file.sync()
            finally:
                file.close()
            self.rename(temporary, path)
        except OSError:
            self.remove(temporary)
            raise
        self.sync_folder(path)
