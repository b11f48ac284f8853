"""A simulated disk: files in memory, and everything that can go wrong with them.

1. What was not synced is kept, lost, torn or replaced by garbage when the power fails, per file.
2. Names that were not synced (by :meth:`Disk.sync_folder`) may be as they were before.
3. A sync that failed has synced nothing, and no later sync of the same data helps: the system took
   the data for written. At the next start of the process it is there or gone, for good.
4. A write that fails, for want of room or for no reason, has written a part. Writing over what is
   there needs no room.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Final

from disque_tx.sim.world.world import World

#: What becomes of data that was not synced.
KEPT, LOST, TORN, GARBAGE = "kept", "lost", "torn", "garbage"
_FATES: Final = (KEPT, LOST, TORN, GARBAGE)
_ERRORS: Final = {errno.ENOSPC: "No space left on device", errno.EIO: "Input/output error"}
#: What a disk writes at once or not at all, when it writes over something.
_SECTOR_BYTES: Final = 512


class PowerLostError(BaseException):
    """The power failed while the disk was at work: the process stops at once, so a program must not
    catch this exception."""


class StoredFile:
    """``name``: the last one that it had. ``data``: as programs see it. ``synced``: the number of
    bytes, from its beginning, that are on the disk. ``before``: what is on the disk instead, if
    that is not a beginning of ``data``. ``doubtful``: a sync failed. ``locked``: a program has
    locked it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.locked = False
        self.data = bytearray()
        self.synced = 0
        self.before: bytes | None = None
        self.doubtful = False

    def durable(self) -> bytes:
        return bytes(self.data[: self.synced]) if self.before is None else self.before

    def touch(self, size: int) -> None:
        """What is behind the first ``size`` bytes is about to change."""
        if self.before is None and size < self.synced:
            self.before = self.durable()

    def restore(self, data: bytes) -> None:
        """This, and nothing else, is on the disk."""
        self.data = bytearray(data)
        self.synced = len(data)
        self.before = None
        self.doubtful = False

    def copy(self) -> StoredFile:
        twin = StoredFile(self.name)
        twin.restore(bytes(self.data))
        return twin


class Disk:
    """The files of one machine, in one folder. A file is named by its path, or, once open, passed
    as an object.

    ``replaced``: how often it became another one, or an old state of itself.
    ``full``: there is no room. ``sync_fails``: every sync does. ``short_writes``: some writes stop
    halfway. All raise ``OSError``; a missing file raises ``FileNotFoundError``.
    """

    def __init__(self, world: World, name: str) -> None:
        self.replaced = 0
        self.full = False
        self.sync_fails = False
        self.short_writes = False
        self._world = world
        self._name = name
        self._random = world.random(f"disk {name}")
        self._files: dict[str, StoredFile] = {}
        self._works_left = -1
        self._before_loss: Callable[[], None] | None = None
        #: The folder as it is on the disk, and after every change since.
        self._folders: list[dict[str, StoredFile]] = [{}]

    # -- what programs do --------------------------------------------------------------------

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        return name in self._files

    def names(self) -> list[str]:
        """All files, sorted."""
        return sorted(self._files)

    def size(self, file: str | StoredFile) -> int:
        """Bytes in the file."""
        return len(self.find(file).data)

    def read(self, file: str | StoredFile) -> bytes:
        """What the file holds."""
        return bytes(self.find(file).data)

    def create(self, name: str) -> None:
        """A new file, or an emptied one."""
        file = self._files.get(name)
        if file is not None:
            file.touch(0)
            file.data = bytearray()
            return
        self._work()
        if self.full:
            raise self._error(errno.ENOSPC, name)
        self._files[name] = StoredFile(name)
        self._folders.append(dict(self._files))

    def append(self, file: str | StoredFile, data: bytes) -> None:
        """Write behind the end."""
        file = self.find(file)
        fitting = self._fitting(data)
        file.data += fitting
        self._work()
        if len(fitting) < len(data):
            raise self._error(errno.ENOSPC, file.name)

    def overwrite(self, file: str | StoredFile, data: bytes) -> None:
        """Replace what the file holds, in place."""
        file = self.find(file)
        size = len(file.data)
        more = self._fitting(data[size:])
        file.touch(0)
        file.data[:] = data[:size] + more
        self._work()
        if size + len(more) < len(data):
            raise self._error(errno.ENOSPC, file.name)

    def truncate(self, file: str | StoredFile, size: int) -> None:
        """Cut off what is behind ``size`` bytes."""
        file = self.find(file)
        file.touch(size)
        del file.data[size:]

    def rename(self, old: str, new: str) -> None:
        """Give the file another name, atomically."""
        file = self.find(old)
        self._work()
        del self._files[old]
        self._files[new] = file
        file.name = new
        self._folders.append(dict(self._files))

    def remove(self, name: str) -> None:
        """Remove the file, if it is there."""
        if self._files.pop(name, None) is not None:
            self._folders.append(dict(self._files))

    def sync(self, file: str | StoredFile) -> None:
        """What the file holds is on the disk afterwards."""
        file = self.find(file)
        self._work()
        if self.sync_fails:
            file.doubtful = True
            self._world.count_fault("sync_failed", self._name, file.name)
            raise self._error(errno.EIO, file.name)
        if not file.doubtful:
            file.synced = len(file.data)
            file.before = None

    def sync_folder(self) -> None:
        """The names are on the disk afterwards."""
        self._work()
        if self.sync_fails:
            self._world.count_fault("sync_failed", self._name, "folder")
            raise self._error(errno.EIO, "folder")
        self._folders = [dict(self._files)]

    def find(self, file: str | StoredFile) -> StoredFile:
        """The file of this name; ``FileNotFoundError`` when there is none."""
        found = self._files.get(file) if isinstance(file, str) else file
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", file)
        return found

    def _fitting(self, data: bytes) -> bytes:
        """The beginning of the data that fits on the disk."""
        if self.full:
            self._world.count_fault("no_room", self._name)
        elif self.short_writes and self._random.random() < 0.5:
            self._world.count_fault("short_write", self._name)
        else:
            return data
        return data[: self._random.randrange(len(data))] if data else data

    def _work(self) -> None:
        """The disk begins to sync or to rename, or has written but not synced."""
        if self._works_left > 0:
            self._works_left -= 1
        elif self._works_left == 0 and self._before_loss is not None:
            self._before_loss()
            raise PowerLostError(self._name)

    @staticmethod
    def _error(code: int, name: str) -> OSError:
        return OSError(code, _ERRORS[code], name)

    # -- what happens to them ----------------------------------------------------------------

    def lose_power_in(self, works: int, before_loss: Callable[[], None]) -> None:
        """The power will fail during the operation that comes after this number of others:
        ``PowerLostError``, after ``before_loss`` was called. Negative: it will not."""
        self._works_left = works
        self._before_loss = before_loss

    def start_process(self) -> None:
        """A new process starts: data whose sync failed is there for good or gone for good, and no
        file is locked."""
        for name in self.names():
            file = self._files[name]
            file.locked = False
            if file.doubtful:
                kept = self._random.random() < 0.5
                self._world.trace("disk", self._name, name, "kept" if kept else "dropped")
                file.restore(bytes(file.data) if kept else file.durable())

    def crash(self) -> None:
        """The power fails."""
        self._works_left = -1
        folder = self._folders[self._random.randrange(len(self._folders))]
        if len(self._folders) > 1:
            self._world.count_fault("unsynced_names", self._name)
        self._files = dict(folder)
        self._folders = [folder]
        for name in self.names():
            file = self._files[name]
            if file.before is not None or file.synced < len(file.data):
                self._lose(name, file)

    def _lose(self, name: str, file: StoredFile) -> None:
        fate = self._random.choice(_FATES if file.before is None else _FATES[:-1])
        self._world.count_fault(f"unsynced_{fate}", self._name, name)
        durable, data = file.durable(), bytes(file.data)
        if fate == KEPT:
            file.restore(data)
        elif fate == LOST:
            file.restore(durable)
        else:
            file.restore(self._part(durable, data, fate, file.before is not None))

    def _part(self, durable: bytes, data: bytes, fate: str, rewritten: bool) -> bytes:
        """A part of what was not synced; where something was written over, old follows on new."""
        if rewritten:
            place = _SECTOR_BYTES * self._random.randint(0, len(data) // _SECTOR_BYTES + 1)
            return data[:place] + durable[place:]
        place = self._random.randint(len(durable), len(data))
        if fate == TORN:
            return data[:place]
        return data[:place] + self._random.randbytes(self._random.randint(0, len(data) - place))

    def wipe(self) -> None:
        """Replace the disk by an empty one."""
        self.replaced += 1
        self._files = {}
        self._folders = [{}]

    def snapshot(self) -> dict[str, StoredFile]:
        """The files as they are now, for :meth:`restore`."""
        return {name: self._files[name].copy() for name in self.names()}

    def restore(self, files: dict[str, StoredFile]) -> None:
        """The disk as it was once."""
        self.replaced += 1
        self._files = {name: file.copy() for name, file in files.items()}
        self._folders = [dict(self._files)]
