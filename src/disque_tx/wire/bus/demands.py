"""DEMAND as bytes (cluster protocol, section 21.8).

The count in the header is the number of entries; message flag 1 ends all earlier demand. An entry::

off  size  field, in network order
  0     4  credit
  4     4  clients that wait
  8     4  for how long the first of them has waited, in milliseconds
 12     2  n, how many words follow
 14        n times: length of the word in 2 bytes, and the word

A body that is not exactly as long as that says is damaged, and the message is ignored.
"""

from __future__ import annotations

import struct
from typing import Final

from mypy_extensions import i64

from disque_tx.messages.demands import ENTRIES_MAX, DemandEntry, DemandMessage

#: Words that are read of one entry: 100 patterns, as many exceptions, and queues left out.
WORDS_MAX: Final = 400

_ENTRY: Final = struct.Struct(">IIIH")
_LENGTH: Final = struct.Struct(">H")


def demand_parts(message: DemandMessage) -> list[bytes]:
    """The body in pieces; ``struct.error`` for what does not fit into its field."""
    parts: list[bytes] = []
    for entry in message.entries:
        words = entry.words
        parts.append(_ENTRY.pack(entry.credit, entry.waiting, entry.age_ms, len(words)))
        for word in words:
            parts.append(_LENGTH.pack(len(word)))
            parts.append(word)
    return parts


def read_demand(count: i64, data: bytes, at: i64, end: i64) -> DemandMessage | None:
    """The message whose body is ``data`` from ``at`` to ``end``; ``None`` if it is damaged."""
    if count > ENTRIES_MAX:
        return None
    entries: list[DemandEntry] = []
    while count > 0:
        count -= 1
        if end - at < _ENTRY.size:
            return None
        credit, waiting, age_ms, number = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        if number > WORDS_MAX:
            return None
        words: list[bytes] = []
        for _ in range(number):
            if end - at < _LENGTH.size:
                return None
            length: i64 = _LENGTH.unpack_from(data, at)[0]
            at += _LENGTH.size
            if length > end - at:
                return None
            words.append(data[at : at + length])
            at += length
        entries.append(DemandEntry(words, credit, waiting, age_ms))
    return DemandMessage(entries) if at == end else None
