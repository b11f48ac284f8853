"""A segment of the event log as lines: one flat JSON object per event (docs/reference/events.md).

Names are those of CloudEvents 1.0, of OpenTelemetry's messaging conventions where these have one,
and our own otherwise. Bytes that are not UTF-8 appear as ``\\xff``.
"""

from __future__ import annotations

import json
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
_PAUSES: Final = ("none", "in", "out", "all")
#: Names of queues kept as JSON; a client may name any number.
_NAMES_MAX: Final = 10_000
#: Besides letters and digits, what job IDs and names of queues mostly consist of.
_HARMLESS: Final = b"-+/_.:"
_MICROSECONDS: Final = 1_000_000


class Segment:
    """Reads the bytes of one segment. ``node``: the ID of the node that wrote it; ``position``: how
    far it was read; ``count``: events so far; ``begun_us``: the time of day of the first.

    :raises PeerError: the data is not a segment.
    """

    def __init__(self, data: bytes) -> None:
        if len(data) < HEADER.size or data[:8] != MAGIC:
            raise PeerError("this is not a segment of an event log")
        _, node, boot, first, bodies = HEADER.unpack_from(data)
        self.node: str = _text(node)
        self.position: i64 = HEADER.size
        self.count: i64 = 0
        self.begun_us: i64 = 0
        self._data: bytes = data
        self._first: i64 = first
        self._boot: str = str(boot)
        self._bodies: i64 = bodies
        self._second: i64 = -1
        self._second_text: str = ""
        self._queues: dict[bytes, str] = {}
        if len(data) >= self.position + _HEAD:
            self.begun_us = read_i64_le(data, self.position + 8)

    @property
    def torn_bytes(self) -> int:
        """Bytes at the end that are not a whole record, once :meth:`lines` returns nothing more."""
        return len(self._data) - self.position

    def lines(self, limit: i64) -> bytes:
        """The next lines, ``limit`` bytes or some more; nothing at the end or where it is torn."""
        writer = BytesWriter()
        while len(writer) < limit:
            line = self._line()
            if line == "":
                break
            writer.write(line.encode())
        return writer.getvalue()

    def _line(self) -> str:
        """The lines of the next record; empty if none is complete."""
        data, at = self._data, self.position
        if len(data) - at < _HEAD:
            return ""
        kind: i64 = data[at]
        reason: i64 = data[at + 1]
        shape: i64 = data[at + 2]
        if not 0 < kind < len(KIND_NAMES) or reason >= len(REASON_NAMES):
            return ""
        id_end = self._end(at + _HEAD)
        queue_end = self._end(id_end) if id_end >= 0 else id_end
        rest_end = self._rest_end(queue_end, shape) if queue_end >= 0 else queue_end
        if rest_end < 0:
            return ""
        self.position = rest_end
        more = self._more(kind, shape, read_i64_le(data, at + 16), queue_end, rest_end)
        line = self._head(at) + self._what(kind, reason, at, id_end, queue_end) + more + "}\n"
        if shape == QUEUED_BIRTH:
            what = self._what(events.QUEUED, 0, at, id_end, queue_end)
            line += self._head(at) + what + "}\n"
        return line

    def _head(self, at: i64) -> str:
        """What every line begins with: the source, the time and the number of the event."""
        number = self._first + self.count
        self.count += 1
        return (
            f'{{"specversion":"1.0","id":"{self._boot}.{number}","source":"disque:{self.node}"'
            f',"time":"{self._time(read_i64_le(self._data, at + 8))}"'
        )

    def _what(self, kind: i64, reason: i64, at: i64, id_end: i64, queue_end: i64) -> str:
        """Type, job, queue, counters."""
        data = self._data
        name = KIND_NAMES[kind]
        system = ',"messaging.system":"disque"'
        if kind == events.FLUSHED:
            return f',"type":"disque.node.{name}"{system}'
        queue = f',"messaging.destination.name":{self._queue(data[id_end + 4 : queue_end])}'
        if kind == events.PAUSED:
            return f',"type":"disque.queue.{name}"{system}{queue}'
        operation = _OPERATIONS.get(kind, "")
        if operation:
            system += f',"messaging.operation.type":"{operation}"'
        elapsed_ms = read_i32_le(data, at + 24)
        if elapsed_ms >= 0:
            word = "wait_ms" if kind == events.DELIVERED else "run_ms"
            queue += f',"{word}":{elapsed_ms}'
        if reason:
            queue += f',"reason":"{REASON_NAMES[reason]}"'
        return (
            f',"type":"disque.job.{name}","subject":{_quoted(data[at + _HEAD + 4 : id_end])}'
            f'{system}{queue},"messaging.message.body.size":{read_i32_le(data, at + 28)}'
            f',"nacks":{_count(data, at + 4)},"additional_deliveries":{_count(data, at + 6)}'
        )

    def _more(self, kind: i64, shape: i64, number: i64, at: i64, end: i64) -> str:
        """The fields of this kind only."""
        data = self._data
        if kind == events.DELIVERED:
            return f',"messaging.client.id":"{number}"'
        if kind == events.REPLICATED or kind == events.COPIED:
            return f',"copies":{number}'
        if kind == events.WORKING:
            return f',"retry_s":{number}'
        if kind == events.PAUSED:
            return f',"paused":"{_PAUSES[number & 3]}"'
        if kind == events.FLUSHED:
            return f',"jobs":{number}'
        if shape == PEER:
            return f',"peer":{_quoted(data[at + 4 : end])}'
        if kind == events.DELAYED or shape == TEXT:
            return _noted(kind, number, data[at + 4 : end] if shape == TEXT else b"")
        if shape != BIRTH and shape != QUEUED_BIRTH:
            return ""
        return (
            f',"messaging.client.id":"{number}"'
            f',"retry_s":{read_i64_le(data, at)},"ttl_s":{read_i64_le(data, at + 8)}'
            f',"delay_s":{read_i64_le(data, at + 16)},"replicate":{read_i64_le(data, at + 24)}'
            + self._body(data[at + _BIRTH + 4 : end], read_i32_le(data, at + _BIRTH) >= 0)
        )

    def _body(self, body: bytes, recorded: bool) -> str:
        if not recorded:
            return ""
        if self._bodies == BODY_HASH:
            return f',"body_sha256":"{sha256(body).hexdigest()}"'
        return f',"body":"{b64encode(body).decode()}"'

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

    def _time(self, wall_us: i64) -> str:
        """The time in the format of RFC 3339."""
        second = wall_us // _MICROSECONDS
        if second != self._second:
            self._second = second
            # A time outside the calendar is a damaged record; it must not fail all others.
            known = max(0, min(second, 253_402_300_799))
            self._second_text = datetime.fromtimestamp(int(known), UTC).strftime(
                "%Y-%m-%dT%H:%M:%S"
            )
        return f"{self._second_text}.{str(wall_us % _MICROSECONDS).zfill(6)}Z"

    def _queue(self, name: bytes) -> str:
        known = self._queues.get(name)
        if known is None:
            if len(self._queues) >= _NAMES_MAX:
                self._queues.clear()
            known = self._queues[name] = _quoted(name)
        return known


def _noted(kind: i64, number: i64, text: bytes) -> str:
    """The fields of an event that may have a text."""
    if kind == events.SCHEDULED:
        return f',"schedule":{_quoted(text)},"occurrence_s":{number}'
    fields = f',"backoff_ms":{number}' if kind == events.DELAYED else ""
    if text:
        replaced = kind in (events.MOVED, events.DUPLICATE, events.DOUBLED)
        name = "successor" if replaced else "note"
        fields += f',"{name}":{_quoted(text)}'
    return fields


def _count(data: bytes, at: i64) -> i64:
    """A number of two bytes, which may be up to 65535."""
    return i64(read_i16_le(data, at)) & U16_MAX


def _quoted(data: bytes) -> str:
    """Any bytes as a JSON string."""
    if data.translate(None, _HARMLESS).isalnum():
        return f'"{data.decode()}"'
    return json.dumps(_text(data))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
