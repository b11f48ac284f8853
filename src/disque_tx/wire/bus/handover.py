"""HANDOVER as bytes (cluster protocol, section 21.12).

The count in the header is the number of jobs. The body begins with the number of the evacuation in
4 bytes; then, with numbers in network order, for each job::

off  size  field
  0    40  job ID
 40     8  what is left of DELAY or of the backoff, in milliseconds
 48     1  what is asked, or answered

A body that is not exactly as long as that says, or names a longer time than any job lives, is
damaged, and the message is ignored.
"""

from __future__ import annotations

import struct
from typing import Final

from mypy_extensions import i64

from disque_tx.messages.handover import ENTRIES_MAX, HandoverEntry, HandoverMessage
from disque_tx.messages.limits import SECONDS_MAX
from disque_tx.messages.records import JOB_ID_LENGTH
from disque_tx.wire.bus.header import sized

_NUMBER: Final = struct.Struct(">I")
_REST: Final = struct.Struct(">QB")
_ENTRY_SIZE: Final = JOB_ID_LENGTH + _REST.size
_LEFT_MS_MAX: Final = SECONDS_MAX * 1_000


def handover_parts(message: HandoverMessage) -> list[bytes]:
    """The body in pieces; ``LocalError`` and ``struct.error`` for what does not fit."""
    parts = [_NUMBER.pack(message.number)]
    for entry in message.entries:
        parts.append(sized(entry.job_id, JOB_ID_LENGTH, "job ID"))
        parts.append(_REST.pack(entry.left_ms, entry.what))
    return parts


def read_handover(count: i64, data: bytes, at: i64, end: i64) -> HandoverMessage | None:
    """The message whose body is ``data`` from ``at`` to ``end``; ``None`` if it is damaged."""
    if count > ENTRIES_MAX or end - at != _NUMBER.size + count * _ENTRY_SIZE:
        return None
    number: i64 = _NUMBER.unpack_from(data, at)[0]
    entries: list[HandoverEntry] = []
    for place in range(count):
        first = at + _NUMBER.size + place * _ENTRY_SIZE
        left_ms, what = _REST.unpack_from(data, first + JOB_ID_LENGTH)
        if left_ms > _LEFT_MS_MAX:
            return None
        entries.append(HandoverEntry(data[first : first + JOB_ID_LENGTH], what, left_ms))
    return HandoverMessage(number, entries)
