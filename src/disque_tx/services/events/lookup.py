"""The events of one job, looked up in the files of the event log."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from glob import glob
from typing import BinaryIO, Final

import zstandard

from disque_tx.errors import PeerError
from disque_tx.messages.records import JOB_ID_LENGTH
from disque_tx.wire.events.lines import Segment
from disque_tx.wire.events.records import HEADER

#: Bytes that are looked at in one step, and in all.
STEP_BYTES: Final = 1 << 18
LOOKUP_BYTES_MAX: Final = 256 << 20
#: Lines that are found in one step of a segment: each costs more than many bytes looked at.
STEP_LINES: Final = 50
#: Of a record, what stands before the job's ID, and of that the last: the length of the ID.
_BEFORE_ID: Final = 36
_ID_LENGTH: Final = struct.pack("<i", JOB_ID_LENGTH)
#: A record is not longer, unless it has a long body.
_RECORD_BYTES: Final = 1 << 16


class Lookup:
    """Looks for a job in folders of event logs, from the newest file to the oldest. Iterating it
    does a bounded step each time, and returns the lines that it found, newline included; often
    none. ``complete``: at the end, whether everything was looked at, and not only
    :data:`LOOKUP_BYTES_MAX`. ``files``: how many were looked at to their end; within a file the
    oldest lines come first. Files that vanish or are damaged meanwhile are passed over."""

    def __init__(self, folders: Iterable[str], job_id: bytes) -> None:
        self.complete = True
        self.files = 0
        self._folders = list(folders)
        self._job_id = job_id
        self._left = LOOKUP_BYTES_MAX

    def __iter__(self) -> Iterator[list[bytes]]:
        segments = self._paths("_open-*.events") + self._paths("_full-*.events")
        files = self._paths("dt=*/hour=*/events-*.jsonl.zst")
        segments.sort(key=_begun, reverse=True)
        files.sort(reverse=True)
        places = [(self._in_segment, folder, name) for name, folder in segments]
        places += [(self._in_lines, folder, name) for name, folder in files]
        for look, folder, name in places:
            if self._left <= 0:
                self.complete = False
                return
            try:
                with open(os.path.join(folder, name), "rb") as file:
                    yield from look(file)
            except (OSError, ValueError, PeerError, zstandard.ZstdError):
                pass
            self.files += 1

    def _paths(self, pattern: str) -> list[tuple[str, str]]:
        """Names that match, each with its folder."""
        return [
            (name, folder) for folder in self._folders for name in glob(pattern, root_dir=folder)
        ]

    def _in_segment(self, file: BinaryIO) -> Iterator[list[bytes]]:
        """A segment that is not converted yet, and may be written to. It is read a part at a time,
        since what is mapped counts as memory of the node."""
        header = file.read(HEADER.size)
        at = HEADER.size
        while self._left > 0:
            # With as much before and after as a record takes whose job ID begins in this part.
            data = os.pread(file.fileno(), _BEFORE_ID + STEP_BYTES + _RECORD_BYTES, at - _BEFORE_ID)
            if len(data) <= _BEFORE_ID:
                return
            found = []
            here = _BEFORE_ID
            end = here + STEP_BYTES + JOB_ID_LENGTH - 1
            while (here := data.find(self._job_id, here, end)) >= 0:
                found += self._recorded(header, data, here - _BEFORE_ID)
                here += JOB_ID_LENGTH
                if len(found) >= STEP_LINES:
                    yield found
                    found = []
            at += STEP_BYTES
            self._left -= STEP_BYTES
            yield found

    def _recorded(self, header: bytes, data: bytes, start: int) -> list[bytes]:
        """The lines of the record that begins there, if one does."""
        if data[start + _BEFORE_ID - len(_ID_LENGTH) : start + _BEFORE_ID] != _ID_LENGTH:
            return []
        segment = Segment(header + data[start : start + _RECORD_BYTES])
        return segment.lines(1).splitlines(keepends=True)

    def _in_lines(self, file: BinaryIO) -> Iterator[list[bytes]]:
        rest = b""
        with zstandard.ZstdDecompressor().stream_reader(file) as stream:
            while self._left > 0 and (chunk := stream.read(STEP_BYTES)):
                self._left -= len(chunk)
                whole, newline, rest = (rest + chunk).rpartition(b"\n")
                found = []
                if self._job_id in whole:
                    lines = (whole + newline).splitlines(keepends=True)
                    found = [line for line in lines if self._job_id in line]
                yield found


def _begun(place: tuple[str, str]) -> str:
    """Names end with the node, when it began to log, and the number of the first event; those that
    are written to come before those that wait."""
    return place[0].partition("-")[2]
