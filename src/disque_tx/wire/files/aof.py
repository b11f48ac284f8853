"""The append only file as bytes, and what its records mean (cluster protocol, sections 14.2 and
14.6).

A sequence of RESP arrays, nothing between them: ``LOADJOB <record>`` and ``DELJOB <id>``. When keys
are in use there are two more, which the original cannot read: ``HOLDKEY <entry>`` and
``FREEKEY <key>``. The entry is that of the bus (:mod:`disque_tx.wire.bus.keys`), but its times are
unix milliseconds. Where protocols of listeners note something about jobs there is one more:
``NOTEJOB``, with the ID of the job, the length of the protocol's name in one byte, the name, and
the note. Where jobs came back there is ``COUNTJOB``: the ID of the job, and in two bytes each, in
network order, how often it came back by NACK, and otherwise.
"""

from __future__ import annotations

import re
import struct
from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from disque_tx.errors import LocalError, PeerError
from disque_tx.messages.keys import KEY_BYTES_MAX
from disque_tx.messages.records import (
    JOB_ID_LENGTH,
    NOTE_BYTES_MAX,
    OWNER_BYTES_MAX,
    JobRecord,
    KeyEntry,
    LogSink,
)
from disque_tx.wire.bus.keys import entry_bytes, read_entry
from disque_tx.wire.jobs.codec import decode_stored, encode_stored, stored_length, write_stored

_DELETE: Final = b"*2\r\n$6\r\nDELJOB\r\n$40\r\n"
_LOAD: Final = b"*2\r\n$7\r\nLOADJOB\r\n$%d\r\n"
_LOADS: Final = [_LOAD % n for n in range(1024)]
_END: Final = b"\r\n"
_COUNTERS: Final = struct.Struct(">HH")
_MAX_ARGS: Final = 16
_MAX_ARGUMENT: Final = 600 * 1024 * 1024
_MAX_HEADER: Final = 64


def load_record(job: JobRecord) -> bytes:
    """The record that brings ``job`` back at the next start."""
    return b"".join((_load_header(job), encode_stored(job), _END))


def _load_header(job: JobRecord) -> bytes:
    size = stored_length(job)
    return _LOADS[size] if size < 1024 else _LOAD % size


def key_record(entry: KeyEntry) -> bytes:
    """The record that brings a key back at the next start."""
    data = entry_bytes(entry)
    return b"*2\r\n$7\r\nHOLDKEY\r\n$%d\r\n%s\r\n" % (len(data), data)


def note_record(job_id: bytes, owner: bytes, data: bytes) -> bytes:
    """The record that brings a note about a job back at the next start."""
    size = JOB_ID_LENGTH + 1 + len(owner) + len(data)
    return b"*2\r\n$7\r\nNOTEJOB\r\n$%d\r\n%s%c%s%s\r\n" % (size, job_id, len(owner), owner, data)


def count_record(job_id: bytes, nacks: i64, deliveries: i64) -> bytes:
    """The record that brings the counters of a job back at the next start."""
    data = job_id + _COUNTERS.pack(nacks, deliveries)
    return b"*2\r\n$8\r\nCOUNTJOB\r\n$%d\r\n%s\r\n" % (len(data), data)


class LogEncoder(LogSink):
    """Records of one turn, to be taken and written in one piece. ``size``: bytes collected."""

    __slots__ = ("size", "_writer")

    def __init__(self) -> None:
        self.size: i64 = 0
        self._writer = BytesWriter()

    def load_job(self, job: JobRecord) -> None:
        writer = self._writer
        writer.write(_load_header(job))
        try:
            write_stored(writer, job)
        except LocalError:
            writer.truncate(self.size)
            raise
        writer.write(_END)
        self.size = len(writer)

    def delete_job(self, job_id: bytes) -> None:
        writer = self._writer
        writer.write(_DELETE)
        writer.write(job_id)
        writer.write(_END)
        self.size = len(writer)

    def note_job(self, job_id: bytes, owner: bytes, data: bytes) -> None:
        self._add(note_record(job_id, owner, data))

    def count_job(self, job_id: bytes, nacks: i64, deliveries: i64) -> None:
        self._add(count_record(job_id, nacks, deliveries))

    def hold_key(self, entry: KeyEntry) -> None:
        self._add(key_record(entry))

    def free_key(self, key: bytes) -> None:
        self._add(b"*2\r\n$7\r\nFREEKEY\r\n$%d\r\n%s\r\n" % (len(key), key))

    def _add(self, record: bytes) -> None:
        self._writer.write(record)
        self.size += len(record)

    def take(self) -> bytes:
        """Everything collected, in order; the encoder is empty afterwards."""
        data = self._writer.getvalue()
        self._writer = BytesWriter()
        self.size = 0
        return data


class FreedKey:
    """A record that a key is free."""

    __slots__ = ("key",)

    def __init__(self, key: bytes) -> None:
        self.key: bytes = key


class JobNote:
    """What a protocol of listeners noted about a job."""

    __slots__ = ("data", "job_id", "owner")

    def __init__(self, job_id: bytes, owner: bytes, data: bytes) -> None:
        self.job_id: bytes = job_id
        self.owner: bytes = owner
        self.data: bytes = data


class JobCounters:
    """How often a job came back, by NACK and otherwise."""

    __slots__ = ("deliveries", "job_id", "nacks")

    def __init__(self, job_id: bytes, nacks: i64, deliveries: i64) -> None:
        self.job_id: bytes = job_id
        self.nacks: i64 = nacks
        self.deliveries: i64 = deliveries


class LogDecoder:
    """Records out of a log that is read in pieces.

    ``offset``: position in the file behind the last complete record. Header lines may end in a bare
    LF and the two bytes after an argument are not checked, as the original reads its files.
    """

    def __init__(self) -> None:
        self.offset: i64 = 0
        self._data = b""
        self._pos: i64 = 0

    def feed(self, data: bytes) -> None:
        """Take the next piece of the file."""
        self._data = self._data[self._pos :] + data
        self._pos = 0

    def rest(self) -> int:
        """Bytes behind the last complete record."""
        return len(self._data) - self._pos

    def next(self) -> list[bytes] | None:
        """The words of the next record; ``None`` when the piece holds no complete one.

        Raises ``PeerError`` for what no log contains, at any position.
        """
        header = self._header(self._pos, 42)
        if header is None:
            return None
        argc, pos = header
        if argc < 1 or argc > _MAX_ARGS:
            raise PeerError(f"record of {argc} words at offset {self.offset}")
        words: list[bytes] = []
        while len(words) < argc:
            header = self._header(pos, 36)
            if header is None:
                return None
            length, pos = header
            if length < 0 or length > _MAX_ARGUMENT:
                raise PeerError(f"word of {length} bytes in the record at offset {self.offset}")
            if pos + length + 2 > len(self._data):
                return None
            words.append(self._data[pos : pos + length])
            pos += length + 2
        self.offset += pos - self._pos
        self._pos = pos
        return words

    def _header(self, pos: i64, prefix: i64) -> tuple[i64, i64] | None:
        """The number of a header line at ``pos`` and the position behind the line."""
        data = self._data
        if pos >= len(data):
            return None
        if data[pos] != prefix:
            raise PeerError(
                f"expected {chr(prefix)!r}, found {chr(data[pos])!r}"
                f" in the record at offset {self.offset}"
            )
        end: i64 = data.find(b"\n", pos, pos + _MAX_HEADER)
        if end < 0:
            if len(data) - pos >= _MAX_HEADER:
                raise PeerError(f"header without end in the record at offset {self.offset}")
            return None
        digits = data[pos + 1 : end].rstrip(b"\r")
        if not digits.isdigit() or len(digits) > 15:
            raise PeerError(f"{digits!r} is not a number, in the record at offset {self.offset}")
        return int(digits), end + 1


_RECORD_START: Final = re.compile(
    rb"\n(?=\*2\r\n\$(?:7\r\n(?:LOADJOB|HOLDKEY|FREEKEY|NOTEJOB)|8\r\nCOUNTJOB|6\r\nDELJOB)\r\n)"
)
_COMMANDS: Final = (b"LOADJOB", b"DELJOB", b"HOLDKEY", b"FREEKEY", b"NOTEJOB", b"COUNTJOB")
_JOB_ID: Final = re.compile(rb"D-.{8}-.{24}-.{4}", re.DOTALL)
#: A body may contain what looks like the start of a record: so many are tried, so far each.
_STARTS_TRIED: Final = 100
_PIECE_BYTES: Final = 1024 * 1024


#: What a record of the log says; bytes are the ID of a job that is gone.
Record = JobRecord | KeyEntry | FreedKey | JobNote | JobCounters | bytes


def parse_record(words: list[bytes]) -> Record:
    """The job of a LOADJOB record, the ID in a DELJOB record, the key of a HOLDKEY record, that
    of a FREEKEY record, the note of a NOTEJOB record, or the counters of a COUNTJOB record.

    Raises ``PeerError`` for any other record.
    """
    command = words[0].upper()
    if command not in _COMMANDS:
        raise PeerError(f"unknown command {words[0][:40]!r}")
    if len(words) != 2:
        raise PeerError(f"{command.decode()} with {len(words) - 1} arguments instead of one")
    data = words[1]
    if command == b"LOADJOB":
        return decode_stored(data)
    if command == b"DELJOB":
        return data
    if command == b"FREEKEY":
        if not 1 <= len(data) <= KEY_BYTES_MAX:
            raise PeerError(f"a key of {len(data)} bytes")
        return FreedKey(data)
    if command == b"NOTEJOB":
        return read_note(data)
    if command == b"COUNTJOB":
        return read_counters(data)
    entry = read_entry(data, 0, len(data))
    if entry is None or not entry.key or len(entry_bytes(entry)) != len(data):
        raise PeerError(f"{len(data)} bytes that are no key")
    return entry


def read_note(data: bytes) -> JobNote:
    """The note in a NOTEJOB record; raises ``PeerError`` if it is none."""
    at = JOB_ID_LENGTH + 1
    end = at + data[JOB_ID_LENGTH] if len(data) > at else 0
    if not at < end <= min(len(data), at + OWNER_BYTES_MAX) or len(data) - end > NOTE_BYTES_MAX:
        raise PeerError(f"{len(data)} bytes that are no note about a job")
    return JobNote(data[:JOB_ID_LENGTH], data[at:end], data[end:])


def read_counters(data: bytes) -> JobCounters:
    """The counters in a COUNTJOB record; raises ``PeerError`` if it is none."""
    if len(data) != JOB_ID_LENGTH + _COUNTERS.size:
        raise PeerError(f"{len(data)} bytes that are no counters of a job")
    nacks, deliveries = _COUNTERS.unpack_from(data, JOB_ID_LENGTH)
    return JobCounters(data[:JOB_ID_LENGTH], nacks, deliveries)


def holds_records(tail: bytes) -> bool:
    """Whether complete records follow the start of an incomplete one."""
    for number, match in enumerate(_RECORD_START.finditer(tail)):
        if number == _STARTS_TRIED:
            break
        decoder = LogDecoder()
        decoder.feed(tail[match.end() : match.end() + _PIECE_BYTES])
        try:
            words = decoder.next()
            record = parse_record(words) if words is not None else b""
        except PeerError:
            continue
        if not isinstance(record, bytes) or _JOB_ID.fullmatch(record):
            return True
    return False
