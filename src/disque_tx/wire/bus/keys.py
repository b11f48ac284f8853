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

from typing import Final

from librt.strings import BytesWriter, read_i32_be, read_i64_be, write_i32_be, write_i64_be
from mypy_extensions import i32, i64

from disque_tx.errors import LocalError
from disque_tx.messages.keys import ENTRIES_MAX, KEY_BYTES_MAX, STATES, KeyMessage
from disque_tx.messages.limits import U32_MAX
from disque_tx.messages.records import JOB_ID_LENGTH, KeyEntry
from disque_tx.wire.bus.header import sized

_START_BYTES: Final = 12
#: Of an entry, without its key.
_ENTRY_BYTES: Final = 72
#: Far more than any time in milliseconds, and still far from overflows.
_NUMBER_END: Final = 1 << 53


# -- to bytes ----------------------------------------------------------------------------------


def key_body(message: KeyMessage) -> bytes:
    """The body; ``LocalError`` for what does not fit."""
    if len(message.entries) > ENTRIES_MAX:
        raise LocalError(f"{len(message.entries)} keys in a bus message")
    writer = BytesWriter()
    write_i64_be(writer, _fitting(message.number))
    write_i32_be(writer, i32(_fitting(message.status)))
    for entry in message.entries:
        _write_entry(writer, entry)
    return writer.getvalue()


def entry_bytes(entry: KeyEntry) -> bytes:
    """One entry, in the log."""
    writer = BytesWriter()
    _write_entry(writer, entry)
    return writer.getvalue()


def _write_entry(writer: BytesWriter, entry: KeyEntry) -> None:
    key = entry.key
    write_i32_be(writer, i32(entry.state))
    write_i64_be(writer, _fitting(entry.life_ms))
    write_i64_be(writer, _fitting(entry.keep_ms))
    write_i64_be(writer, _fitting(entry.born_ms))
    writer.write(sized(entry.job_id, JOB_ID_LENGTH, "job ID"))
    write_i32_be(writer, i32(len(key)))
    writer.write(key)


def _fitting(number: i64) -> i64:
    if 0 <= number < _NUMBER_END:
        return number
    raise LocalError(f"the number {number} about a key")


# -- from bytes --------------------------------------------------------------------------------


def read_keys(kind: i64, count: i64, data: bytes, at: i64, end: i64) -> KeyMessage | None:
    """The message whose body is between these positions; ``None`` if it is damaged. ``count``: of
    entries, as the header announces."""
    if count > ENTRIES_MAX or end - at < _START_BYTES:
        return None
    number = read_i64_be(data, at)
    if not 0 <= number < _NUMBER_END:
        return None
    status = i64(read_i32_be(data, at + 8)) & U32_MAX
    at += _START_BYTES
    entries: list[KeyEntry] = []
    while len(entries) < count:
        entry = read_entry(data, at, end)
        if entry is None:
            return None
        entries.append(entry)
        at += _ENTRY_BYTES + len(entry.key)
    return KeyMessage(kind, number, status, entries) if at == end else None


def read_entry(data: bytes, at: i64, end: i64) -> KeyEntry | None:
    """The entry at ``at``; ``None`` if it goes beyond ``end``, or holds what none can."""
    if end - at < _ENTRY_BYTES:
        return None
    state = i64(read_i32_be(data, at))
    life_ms = read_i64_be(data, at + 4)
    keep_ms = read_i64_be(data, at + 12)
    born_ms = read_i64_be(data, at + 20)
    key_bytes = i64(read_i32_be(data, at + 68))
    if not (0 <= state < STATES and 0 <= key_bytes <= KEY_BYTES_MAX):
        return None
    if not (0 <= life_ms < _NUMBER_END and 0 <= keep_ms < _NUMBER_END):
        return None
    if not 0 <= born_ms < _NUMBER_END:
        return None
    job_id = data[at + 28 : at + 68]
    at += _ENTRY_BYTES
    key_end = at + key_bytes
    if key_end > end:
        return None
    return KeyEntry(data[at:key_end], job_id, state, life_ms, keep_ms, born_ms)
