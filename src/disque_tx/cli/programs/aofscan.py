"""Scanning an append only file for damage (cluster protocol, sections 5, 14.2 and 14.8).

The file is read in pieces: whatever the lengths in its records, memory use stays bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from struct import Struct
from typing import BinaryIO, Final

from disque_tx.errors import PeerError
from disque_tx.messages.keys import KEY_BYTES_MAX
from disque_tx.wire.bus.keys import read_entry
from disque_tx.wire.files.aof import read_counters, read_note

_LINE_LIMIT: Final = 127
_NUMBER: Final = re.compile(rb"[+-]?[0-9]+")
_RECORD_START: Final = re.compile(
    rb"\*2\r\n\$(?:7\r\n(?:LOADJOB|HOLDKEY|FREEKEY|NOTEJOB)|8\r\nCOUNTJOB|6\r\nDELJOB)\r\n"
)
_RECORD_START_LENGTH: Final = 18
_CHUNK: Final = 1024 * 1024
_PROGRESS_STEP: Final = 4 * 1024 * 1024

_LE32: Final = Struct("<I")
#: Offset of the queue's length in a stored job; the fixed part is before it.
_QUEUE_LENGTH_AT: Final = 72
_JOB_SIZE_MIN: Final = 84
_ID_LENGTH: Final = 40
_NAME_LENGTH_MAX: Final = len(b"COUNTJOB")
_ENTRY_BYTES_MAX: Final = 1_024


class Broken(Exception):
    """The framing of a record is not valid; ``problem`` is empty at the end of the file."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


class LogRecord:
    """One record: its ``offset``, the number of its arguments, and the spans of the first two as
    (offset, length)."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.argc = 0
        self.spans: list[tuple[int, int]] = []


class ScanReport:
    """The result of a scan.

    ``ok_up_to``: end of the last record with correct framing. ``problem``: the error in the framing
    there, in the words of the original. ``own``: number of records that only servers of disque-tx
    can load. ``damaged``: number of well-framed records that cannot be
    loaded; ``damage`` describes the first, ``damage_at`` is its offset. ``foreign``: number of
    records with commands that no server writes.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.ok_up_to = 0
        self.problem = ""
        self.damage = ""
        self.damage_at = size
        self.damaged = 0
        self.foreign = 0
        self.own = 0

    @property
    def cut_at(self) -> int:
        """Where the good part of the file ends; ``size`` if there is no damage."""
        return min(self.ok_up_to, self.damage_at)


class Source:
    """A file of ``size`` bytes and the position ``pos`` of the next record in it."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file = file
        self.size = size
        self.pos = 0

    def at(self, offset: int, length: int) -> bytes:
        """Up to ``length`` bytes from ``offset``."""
        self.file.seek(offset)
        return self.file.read(length)

    def record(self) -> LogRecord:
        """Read the record at ``pos``, and move ``pos`` behind it. Raises ``Broken``."""
        record = LogRecord(self.pos)
        record.argc = self._number(b"*")
        for _ in range(record.argc):
            span = self._argument()
            if len(record.spans) < 2:
                record.spans.append(span)
        return record

    def _number(self, prefix: bytes) -> int:
        line = self._line()
        if line[:1] != prefix:
            # The original names the two the wrong way round; tools may compare its words.
            got, expected = prefix.decode(), _printable(line[0])
            raise self._broken(f"Expected prefix '{expected}', got: '{got}'")
        match = _NUMBER.match(line, 1)
        end = match.end() if match else 1
        self._line_end(line[end : end + 2])
        self.pos += len(line)
        return int(match[0]) if match else 0

    def _line(self) -> bytes:
        self.file.seek(self.pos)
        line = self.file.readline(_LINE_LIMIT)
        if not line:
            raise Broken("")
        return line

    def _argument(self) -> tuple[int, int]:
        length = self._number(b"$")
        if length < 0:
            raise self._broken(f"Expected a length, got: {length}")
        start, wanted = self.pos, length + 2
        present = max(0, min(wanted, self.size - start))
        if present != wanted:
            raise self._broken(f"Expected to read {wanted} bytes, got {present} bytes")
        self._line_end(self.at(start + length, 2))
        self.pos += wanted
        return start, length

    def _line_end(self, found: bytes) -> None:
        if found != b"\r\n":
            raise self._broken(f"Expected \\r\\n, got: {found.ljust(2, bytes(1)).hex()}")

    def _broken(self, problem: str) -> Broken:
        return Broken(f"0x{self.pos:16x}: {problem}")


def _printable(byte: int) -> str:
    return chr(byte) if 32 <= byte < 127 or byte == 10 else f"\\x{byte:02x}"


def scan(file: BinaryIO, size: int, progress: Callable[[int], None]) -> ScanReport:
    """Check the whole file. ``progress``: called from time to time with how many bytes are done."""
    report = ScanReport(size)
    source = Source(file, size)
    reported = 0
    try:
        while True:
            _judge(source, source.record(), report)
            report.ok_up_to = source.pos
            if source.pos - reported >= _PROGRESS_STEP:
                reported = source.pos
                progress(reported)
    except Broken as broken:
        report.problem = broken.problem
    return report


def _judge(source: Source, record: LogRecord, report: ScanReport) -> None:
    command = _command(source, record)
    if command in OWN_COMMANDS:
        report.own += 1
    check = _CHECKS.get(command)
    if check is None:
        report.foreign += 1
        return
    problem = check(source, record)
    if problem:
        report.damaged += 1
        if report.damaged == 1:
            report.damage = problem
            report.damage_at = record.offset


def _command(source: Source, record: LogRecord) -> bytes:
    offset, length = record.spans[0] if record.spans else (0, 0)
    return source.at(offset, length).upper() if length <= _NAME_LENGTH_MAX else b""


def _check_delete(source: Source, record: LogRecord) -> str:
    return "" if record.argc == 2 else f"DELJOB has {record.argc - 1} arguments instead of one"


def _check_load(source: Source, record: LogRecord) -> str:
    if record.argc != 2:
        return f"LOADJOB has {record.argc - 1} arguments instead of one"
    start, length = record.spans[1]
    if length < _JOB_SIZE_MIN:
        return f"the job has {length} bytes, fewer than the smallest job ({_JOB_SIZE_MIN})"
    end = _LE32.size + _u32(source, start)
    if end > length:
        return f"the job says it has {end} bytes, but the record holds {length}"
    used = _job_length(source, start, end)
    if used is None:
        return "the lengths of queue, body or nodes list reach beyond the end of the job"
    if used != end:
        return f"the job says it has {end} bytes, but its parts make {used}"
    return ""


def _check_hold(source: Source, record: LogRecord) -> str:
    if record.argc != 2:
        return f"HOLDKEY has {record.argc - 1} arguments instead of one"
    start, length = record.spans[1]
    if length > _ENTRY_BYTES_MAX or read_entry(source.at(start, length), 0, length) is None:
        return f"{length} bytes that are no key"
    return ""


def _check_free(source: Source, record: LogRecord) -> str:
    if record.argc != 2:
        return f"FREEKEY has {record.argc - 1} arguments instead of one"
    length = record.spans[1][1]
    return "" if 1 <= length <= KEY_BYTES_MAX else f"a key of {length} bytes"


def _check_note(source: Source, record: LogRecord) -> str:
    if record.argc != 2:
        return f"NOTEJOB has {record.argc - 1} arguments instead of one"
    start, length = record.spans[1]
    try:
        read_note(source.at(start, min(length, _ENTRY_BYTES_MAX)))
    except PeerError:
        return f"{length} bytes that are no note about a job"
    return ""


def _check_counters(source: Source, record: LogRecord) -> str:
    if record.argc != 2:
        return f"COUNTJOB has {record.argc - 1} arguments instead of one"
    start, length = record.spans[1]
    try:
        read_counters(source.at(start, min(length, _ENTRY_BYTES_MAX)))
    except PeerError as error:
        return str(error)
    return ""


#: Commands that originals refuse.
OWN_COMMANDS: Final = (b"HOLDKEY", b"FREEKEY", b"NOTEJOB", b"COUNTJOB")
_CHECKS: Final[dict[bytes, Callable[[Source, LogRecord], str]]] = {
    b"LOADJOB": _check_load,
    b"DELJOB": _check_delete,
    b"HOLDKEY": _check_hold,
    b"FREEKEY": _check_free,
    b"NOTEJOB": _check_note,
    b"COUNTJOB": _check_counters,
}


def _job_length(source: Source, start: int, end: int) -> int | None:
    """The length of the job at ``start`` by its parts; ``None`` when a part exceeds ``end``."""
    used = _QUEUE_LENGTH_AT
    for item_length in (1, 1, _ID_LENGTH):
        if used + _LE32.size > end:
            return None
        used += _LE32.size + _u32(source, start + used) * item_length
    return used


def _u32(source: Source, offset: int) -> int:
    return int(_LE32.unpack(source.at(offset, _LE32.size))[0])


def pieces_for_original(file: BinaryIO, size: int) -> Iterator[bytes]:
    """A file without damage, but for the records that only servers of disque-tx can load."""
    source = Source(file, size)
    while source.pos < size:
        record = source.record()
        if _command(source, record) in OWN_COMMANDS:
            continue
        for at in range(record.offset, source.pos, _CHUNK):
            yield source.at(at, min(_CHUNK, source.pos - at))


def next_good_record(file: BinaryIO, size: int, start: int) -> int | None:
    """The offset of the first record at or after ``start`` that could be loaded, or ``None``."""
    source = Source(file, size)
    base, tail = start, b""
    while base < size:
        chunk = tail + source.at(base, _CHUNK)
        first = base - len(tail)
        for match in _RECORD_START.finditer(chunk):
            if _is_good(source, first + match.start()):
                return first + match.start()
        base += _CHUNK
        tail = chunk[1 - _RECORD_START_LENGTH :]
    return None


def _is_good(source: Source, offset: int) -> bool:
    source.pos = offset
    report = ScanReport(source.size)
    try:
        _judge(source, source.record(), report)
    except Broken:
        return False
    return not report.damaged
