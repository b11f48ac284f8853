"""Segments of the event log on disk, until they are converted into lines.

``_open-<node>-<boot>-<first>.events`` is written to, and locked meanwhile; rotated, it is
``_full-…``, and becomes
``dt=YYYY-MM-DD/hour=HH/events-<node>-<boot>-<first>.jsonl.zst`` by
:mod:`disque_tx.services.events.convert`. Readers of the folder skip names that begin with ``_``.
"""

from __future__ import annotations

import os
from typing import Final

import attrs

from disque_tx.engine.interfaces import IFile, IFiles
from disque_tx.engine.ownership import claim
from disque_tx.wire.events.records import HEADER, MAGIC

_OPEN: Final = "_open-"
_FULL: Final = "_full-"
_SUFFIX: Final = ".events"
_HOUR_S: Final = 3600


@attrs.frozen
class Plan:
    """How events are logged. ``bodies``: as in the header of a segment. ``rotate_bytes``,
    ``rotate_s``: when a segment is big or old enough."""

    folder: str
    bodies: int
    rotate_bytes: int
    rotate_s: int


class SegmentWriter:
    """Writes records into segments, one call at a time, in any thread. All times are seconds of
    the time of day.

    Every method returns the paths of the segments that it finished, and raises ``OSError`` when
    the disk refuses; the segment it was at is left then, and the next call begins another one.
    """

    def __init__(self, files: IFiles, node_id: bytes, boot_ms: int) -> None:
        self._files = files
        self._node_id = node_id
        self._boot_ms = boot_ms
        self._file: IFile | None = None
        self._name = ""
        self._plan: Plan | None = None
        self._next = 0
        self._size = 0
        self._begun_s = 0

    def left_behind(self, folder: str) -> list[str]:
        """Segments of this node that are not written to any more, oldest first: rotated ones, which
        may be locked by a converter, and the open one of a process that was killed."""
        os.makedirs(folder, exist_ok=True)
        mine = self._short_id() + "-"
        found = []
        for name in sorted(os.listdir(folder)):
            if not name.endswith(_SUFFIX):
                continue
            path = os.path.join(folder, name)
            if name.startswith(_FULL + mine):
                found.append(path)
            elif name.startswith(_OPEN + mine):
                full = os.path.join(folder, _FULL + name.removeprefix(_OPEN))
                if self._take_over(path, full):
                    found.append(full)
        return found

    def _take_over(self, path: str, full: str) -> bool:
        """Rotate a segment that is not written to; a process that writes to it has it locked."""
        try:
            file = claim(self._files, path, False)
        except (BlockingIOError, FileNotFoundError):
            return False
        try:
            self._files.rename(path, full)
        finally:
            file.close()
        return True

    def write(self, first: int, count: int, data: bytes, plan: Plan, now_s: int) -> list[str]:
        """Write ``count`` records, the first of which has the number ``first``."""
        full = [] if first == self._next and plan == self._plan else self.rotate()
        try:
            if self._file is None:
                self._begin(first, plan, now_s)
            assert self._file is not None
            self._file.append(data)
        except OSError:
            self._abandon()
            raise
        self._size += len(data)
        self._next = first + count
        return full + self.rotate_old(now_s)

    def rotate_old(self, now_s: int) -> list[str]:
        """Finish the segment if it is big or old enough, or of another hour."""
        plan = self._plan
        if self._file is None or plan is None:
            return []
        age_s = now_s - self._begun_s
        another_hour = now_s // _HOUR_S != self._begun_s // _HOUR_S
        due = self._size >= plan.rotate_bytes or age_s >= plan.rotate_s or another_hour
        return self.rotate() if due else []

    def rotate(self) -> list[str]:
        """Finish the segment, if there is one. The segment is not forced to the disk, which would
        take too long; its lines will be."""
        file, plan = self._file, self._plan
        if file is None or plan is None:
            return []
        old = os.path.join(plan.folder, _OPEN + self._name)
        new = os.path.join(plan.folder, _FULL + self._name)
        try:
            self._files.rename(old, new)
        finally:
            self._abandon()
        return [new]

    def _begin(self, first: int, plan: Plan, now_s: int) -> None:
        os.makedirs(plan.folder, exist_ok=True)
        self._name = f"{self._short_id()}-{self._boot_ms}-{first:012d}{_SUFFIX}"
        self._file = self._files.create(os.path.join(plan.folder, _OPEN + self._name))
        self._file.lock()
        self._plan = plan
        header = HEADER.pack(MAGIC, self._node_id, self._boot_ms, first, plan.bodies)
        self._file.append(header)
        self._size = len(header)
        self._begun_s = now_s

    def _abandon(self) -> None:
        """Write nothing more to the segment."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError:
                pass  # it was logged already that the disk refuses

    def _short_id(self) -> str:
        return self._node_id[:8].decode("latin-1")
