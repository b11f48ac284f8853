"""A segment of the event log as lines: one flat JSON object per event (docs/reference/events.md).

Names are those of CloudEvents 1.0, of OpenTelemetry's messaging conventions where these have one,
and our own otherwise. Bytes that are not UTF-8 appear as ``\\xff``.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from librt.strings import BytesWriter, read_i16_le, read_i32_le, read_i64_le
from mypy_extensions import i64

from disque_tx.errors import PeerError
from disque_tx.messages import events
from disque_tx.messages.events import KIND_NAMES, REASON_NAMES
from disque_tx.messages.limits import U16_MAX
from disque_tx.wire.events.jsontext import (
    PADDED,
    SMALL,
    quoted,
    text_of,
    write_number,
    write_quoted,
)
from disque_tx.wire.events.records import (
    BIRTH,
    BODY_HASH,
    HEADER,
    MAGIC,
    PEER,
    PLAIN,
    QUEUED_BIRTH,
    TEXT,
)

_HEAD: Final = 8 + 8 * 2 + 4 * 2
_BIRTH: Final = 8 * 4
_OPERATIONS: Final = {
    events.ADDED: "send",
    events.DELIVERED: "receive",
    events.ACKED: "settle",
    events.FAST_ACKED: "settle",
    events.NACKED: "settle",
}
_SYSTEM: Final = b',"messaging.system":"disque"'
_QUEUE: Final = b',"messaging.destination.name":'
_CLIENT: Final = b',"messaging.client.id":"'
_SIZE: Final = b',"messaging.message.body.size":'
_NEVER_RETURNED: Final = b',"nacks":0,"additional_deliveries":0'
_PAUSES: Final = ("none", "in", "out", "all")
#: Names of queues, and what jobs were added with, that are kept as JSON; a client may name any
#: number.
_KEPT_MAX: Final = 10_000
_MICROSECONDS: Final = 1_000_000


def _subject_heads() -> list[bytes]:
    """What stands before the ID of a job, by kind."""
    return [f',"type":"disque.job.{name}","subject":'.encode() for name in KIND_NAMES]


def _queue_heads() -> list[bytes]:
    """What stands between the ID of a job and the name of its queue, by kind."""
    heads = []
    for kind in range(len(KIND_NAMES)):
        word = _OPERATIONS.get(kind, "")
        operation = f',"messaging.operation.type":"{word}"' if word else ""
        heads.append(_SYSTEM + operation.encode() + _QUEUE)
    return heads


_BEFORE_SUBJECT: Final = _subject_heads()
_BEFORE_QUEUE: Final = _queue_heads()
_REASONS: Final = [f',"reason":"{name}"'.encode() for name in REASON_NAMES]


class Segment:
    """Reads the bytes of one segment. ``node``: the ID of the node that wrote it; ``position``: how
    far it was read; ``count``: events so far; ``begun_us``: the time of day of the first.

    :raises PeerError: the data is not a segment.
    """

    def __init__(self, data: bytes) -> None:
        if len(data) < HEADER.size or data[:8] != MAGIC:
            raise PeerError("this is not a segment of an event log")
        _, node, boot, first, bodies = HEADER.unpack_from(data)
        self.node: str = text_of(node)
        self.position: i64 = HEADER.size
        self.count: i64 = 0
        self.begun_us: i64 = 0
        self._data: bytes = data
        self._first: i64 = first
        self._bodies: i64 = bodies
        self._before_number: bytes = f'{{"specversion":"1.0","id":"{boot}.'.encode()
        #: How many thousands the number of the last event had, and what stands up to them.
        self._thousand: i64 = -1
        self._up_to_thousands: bytes = b""
        self._before_time: bytes = f'","source":"disque:{self.node}","time":"'.encode()
        #: The time of the last event, which those of one turn share.
        self._wall_us: i64 = -1
        self._time: bytes = b""
        self._second: i64 = -1
        self._second_text: str = ""
        self._queues: dict[bytes, bytes] = {}
        self._births: dict[bytes, bytes] = {}
        if len(data) >= self.position + _HEAD:
            self.begun_us = read_i64_le(data, self.position + 8)

    @property
    def torn_bytes(self) -> int:
        """Bytes at the end that are not a whole record, once :meth:`lines` returns nothing more."""
        return len(self._data) - self.position

    def lines(self, limit: i64) -> bytes:
        """The next lines, ``limit`` bytes or some more; nothing at the end or where it is torn."""
        writer = BytesWriter()
        while len(writer) < limit and self._write_next(writer):
            pass
        return writer.getvalue()

    def _write_next(self, writer: BytesWriter) -> bool:
        """Write the lines of the next record; ``False`` if none is complete."""
        data, at = self._data, self.position
        if len(data) - at < _HEAD:
            return False
        kind: i64 = data[at]
        reason: i64 = data[at + 1]
        shape: i64 = data[at + 2]
        if not 0 < kind < len(KIND_NAMES) or reason >= len(_REASONS):
            return False
        id_end = self._end(at + _HEAD)
        queue_end = self._end(id_end) if id_end >= 0 else id_end
        rest_end = self._rest_end(queue_end, shape) if queue_end >= 0 else queue_end
        if rest_end < 0:
            return False
        self.position = rest_end
        self._write_head(writer, at)
        self._write_what(writer, kind, reason, at, id_end, queue_end)
        self._write_more(writer, kind, shape, at, queue_end, rest_end)
        writer.write(b"}\n")
        if shape == QUEUED_BIRTH:
            self._write_head(writer, at)
            self._write_what(writer, events.QUEUED, 0, at, id_end, queue_end)
            writer.write(b"}\n")
        return True

    def _write_head(self, writer: BytesWriter, at: i64) -> None:
        """What every line begins with: the source, the time and the number of the event."""
        wall_us = read_i64_le(self._data, at + 8)
        if wall_us != self._wall_us:
            self._wall_us = wall_us
            self._time = self._time_of(wall_us).encode()
        number = self._first + self.count
        if number // 1_000 != self._thousand:
            self._thousand = number // 1_000
            thousands = str(self._thousand).encode() if self._thousand else b""
            self._up_to_thousands = self._before_number + thousands
        writer.write(self._up_to_thousands)
        writer.write(PADDED[number % 1_000] if self._thousand else SMALL[number])
        writer.write(self._before_time)
        writer.write(self._time)
        self.count += 1

    def _write_what(
        self, writer: BytesWriter, kind: i64, reason: i64, at: i64, id_end: i64, queue_end: i64
    ) -> None:
        """Type, job, queue, counters."""
        data = self._data
        if kind == events.FLUSHED:
            writer.write(f',"type":"disque.node.{KIND_NAMES[kind]}"'.encode() + _SYSTEM)
            return
        queue = self._queue(data[id_end + 4 : queue_end])
        if kind == events.PAUSED:
            writer.write(f',"type":"disque.queue.{KIND_NAMES[kind]}"'.encode() + _SYSTEM + _QUEUE)
            writer.write(queue)
            return
        writer.write(_BEFORE_SUBJECT[kind])
        write_quoted(writer, data[at + _HEAD + 4 : id_end])
        writer.write(_BEFORE_QUEUE[kind])
        writer.write(queue)
        elapsed_ms = i64(read_i32_le(data, at + 24))
        if elapsed_ms >= 0:
            writer.write(b',"wait_ms":' if kind == events.DELIVERED else b',"run_ms":')
            write_number(writer, elapsed_ms)
        if reason:
            writer.write(_REASONS[reason])
        writer.write(_SIZE)
        write_number(writer, i64(read_i32_le(data, at + 28)))
        nacks, deliveries = _count(data, at + 4), _count(data, at + 6)
        if nacks == 0 and deliveries == 0:
            writer.write(_NEVER_RETURNED)
        else:
            writer.write(b',"nacks":')
            write_number(writer, nacks)
            writer.write(b',"additional_deliveries":')
            write_number(writer, deliveries)

    def _write_more(
        self, writer: BytesWriter, kind: i64, shape: i64, record_at: i64, at: i64, end: i64
    ) -> None:
        """The fields of this kind only."""
        number = read_i64_le(self._data, record_at + 16)
        if kind == events.DELIVERED or shape in (BIRTH, QUEUED_BIRTH):
            writer.write(_CLIENT)
            write_number(writer, number)
            writer.write(b'"')
            if kind != events.DELIVERED:
                writer.write(self._birth(self._data[at : at + _BIRTH]))
                if read_i32_le(self._data, at + _BIRTH) >= 0:
                    writer.write(self._body(self._data[at + _BIRTH + 4 : end]))
        elif shape != PLAIN or kind not in (events.ACKED, events.QUEUED):
            writer.write(self._more(kind, shape, number, at, end).encode())

    def _more(self, kind: i64, shape: i64, number: i64, at: i64, end: i64) -> str:
        """The fields of a kind that is rarer."""
        data = self._data
        if kind == events.REPLICATED or kind == events.COPIED:
            return f',"copies":{number}'
        if kind == events.WORKING:
            return f',"retry_s":{number}'
        if kind == events.PAUSED:
            return f',"paused":"{_PAUSES[number & 3]}"'
        if kind == events.FLUSHED:
            return f',"jobs":{number}'
        if shape == PEER:
            return f',"peer":{quoted(data[at + 4 : end])}'
        if kind == events.DELAYED or shape == TEXT:
            return _noted(kind, number, data[at + 4 : end] if shape == TEXT else b"")
        return ""

    def _birth(self, record: bytes) -> bytes:
        """What a job was added with; many are added with the same."""
        known = self._births.get(record)
        if known is None:
            if len(self._births) >= _KEPT_MAX:
                self._births.clear()
            known = self._births[record] = (
                f',"retry_s":{read_i64_le(record, 0)},"ttl_s":{read_i64_le(record, 8)}'
                f',"delay_s":{read_i64_le(record, 16)},"replicate":{read_i64_le(record, 24)}'
            ).encode()
        return known

    def _body(self, body: bytes) -> bytes:
        if self._bodies == BODY_HASH:
            return f',"body_sha256":"{sha256(body).hexdigest()}"'.encode()
        return b',"body":"' + b64encode(body) + b'"'

    # -- the parts of a record ---------------------------------------------------------------

    def _end(self, at: i64) -> i64:
        """Where bytes with their length in front end; -1 if that is not in the data."""
        if len(self._data) - at < 4:
            return -1
        size = i64(read_i32_le(self._data, at))
        end = at + 4 + size
        return end if size >= 0 and end <= len(self._data) else -1

    def _rest_end(self, at: i64, shape: i64) -> i64:
        """Where a record ends whose rest begins here; -1 if that is not in the data."""
        if shape in (PEER, TEXT):
            return self._end(at)
        if shape != BIRTH and shape != QUEUED_BIRTH:
            return at if shape == PLAIN else -1
        if len(self._data) - at < _BIRTH + 4:
            return -1
        if read_i32_le(self._data, at + _BIRTH) == -1:
            return at + _BIRTH + 4
        return self._end(at + _BIRTH)

    def _time_of(self, wall_us: i64) -> str:
        """The time in the format of RFC 3339, and the end of its field."""
        second = wall_us // _MICROSECONDS
        if second != self._second:
            self._second = second
            # A time outside the calendar is a damaged record; it must not fail all others.
            known = max(0, min(second, 253_402_300_799))
            self._second_text = datetime.fromtimestamp(int(known), UTC).strftime(
                "%Y-%m-%dT%H:%M:%S"
            )
        return f'{self._second_text}.{str(wall_us % _MICROSECONDS).zfill(6)}Z"'

    def _queue(self, name: bytes) -> bytes:
        known = self._queues.get(name)
        if known is None:
            if len(self._queues) >= _KEPT_MAX:
                self._queues.clear()
            known = self._queues[name] = quoted(name).encode()
        return known


def _noted(kind: i64, number: i64, text: bytes) -> str:
    """The fields of an event that may have a text."""
    if kind == events.SCHEDULED:
        return f',"schedule":{quoted(text)},"occurrence_s":{number}'
    fields = f',"backoff_ms":{number}' if kind == events.DELAYED else ""
    if text:
        replaced = kind in (events.MOVED, events.DUPLICATE, events.DOUBLED)
        name = "successor" if replaced else "note"
        fields += f',"{name}":{quoted(text)}'
    return fields


def _count(data: bytes, at: i64) -> i64:
    """A number of two bytes, which may be up to 65535."""
    return i64(read_i16_le(data, at)) & U16_MAX
