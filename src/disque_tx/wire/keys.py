"""The messages about keys as bytes (cluster protocol, section 21.6).

KEY RESERVE, KEY ANSWER, KEY COPY, KEY CHECK; the count in the header is the number of entries::

off  size  field, in network order
  0     8  number of the question, 0 for none
  8     4  status
 12        the entries

An entry::

off  size  field, in network order
  0     4  state
  4     8  what is left of the life of the job, in milliseconds
 12     8  for how long the key is kept at least, in milliseconds
 20     8  when it was reserved, in unix milliseconds
 28    40  ID of the job
 68     4  k, bytes of the key
 72     k  key

A body that is not exactly as long as that says is damaged, and the message is ignored; so it is
with a number of 2^53 or more, with an unknown state, and with a key that is too
long.
"""

from __future__ import annotations

import struct
from typing import Final

from mypy_extensions import i64

from disque_tx.busmessages import KEY_CHECK, KEY_RESERVE
from disque_tx.errors import LocalError
from disque_tx.keymessages import ENTRIES_MAX, KEY_BYTES_MAX, STATES, KeyMessage
from disque_tx.messages import JOB_ID_LENGTH, KeyEntry
from disque_tx.wire.busheader import sized

_START: Final = struct.Struct(">QI")
_ENTRY: Final = struct.Struct(">IQQQ40sI")
#: Far more than any time in milliseconds, and still far from overflows.
_NUMBER_END: Final = 1 << 53


def is_key_message(kind: i64) -> bool:
    """Whether messages of this type are about keys."""
    return KEY_RESERVE <= kind <= KEY_CHECK


# -- to bytes ----------------------------------------------------------------------------------


def key_parts(message: KeyMessage) -> list[bytes]:
    """The body in pieces; ``LocalError`` and ``struct.error`` for what does not fit."""
    if len(message.entries) > ENTRIES_MAX:
        raise LocalError(f"{len(message.entries)} keys in a bus message")
    return [
        _START.pack(message.number, message.status),
        *[entry_bytes(entry) for entry in message.entries],
    ]


def entry_bytes(entry: KeyEntry) -> bytes:
    """One entry, on the bus or in the log."""
    job_id = sized(entry.job_id, JOB_ID_LENGTH, "job ID")
    times = (int(entry.life_ms), int(entry.keep_ms), int(entry.born_ms))
    return _ENTRY.pack(entry.state, *times, job_id, len(entry.key)) + entry.key


# -- from bytes --------------------------------------------------------------------------------


def read_keys(kind: i64, count: i64, data: bytes, at: i64, end: i64) -> KeyMessage | None:
    """The message whose body is between these positions; ``None`` if it is damaged. ``count``: of
    entries, as the header announces."""
    if count > ENTRIES_MAX or end - at < _START.size:
        return None
    number, status = _START.unpack_from(data, at)
    if int(number) >= _NUMBER_END:
        return None
    at += _START.size
    entries: list[KeyEntry] = []
    while len(entries) < count:
        entry = read_entry(data, at, end)
        if entry is None:
            return None
        entries.append(entry)
        at += _ENTRY.size + len(entry.key)
    return KeyMessage(kind, number, status, entries) if at == end else None


def read_entry(data: bytes, at: i64, end: i64) -> KeyEntry | None:
    """The entry at ``at``; ``None`` if it goes beyond ``end``, or holds what none can."""
    if end - at < _ENTRY.size:
        return None
    state, life_ms, keep_ms, born_ms, job_id, key_bytes = _ENTRY.unpack_from(data, at)
    if int(state) >= STATES or int(key_bytes) > KEY_BYTES_MAX:
        return None
    if int(life_ms) >= _NUMBER_END or int(keep_ms) >= _NUMBER_END or int(born_ms) >= _NUMBER_END:
        return None
    at += _ENTRY.size
    key_end: i64 = at + int(key_bytes)
    if key_end > end:
        return None
    return KeyEntry(data[at:key_end], job_id, state, life_ms, keep_ms, born_ms)
