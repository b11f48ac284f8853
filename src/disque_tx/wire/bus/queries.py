"""QUERY, REPORT and NEEDMATCH: questions about queues, the answers, and jobs that are wanted
(cluster protocol, sections 21.5 and 21.7).

The body, in network order::

off  size  field
  0     8  number of the question; of NEEDMATCH, how many jobs
  8     4  n, how many words follow
 12        n times: length of the word in 4 bytes, and the word

A body that is not exactly as long as that says is damaged, and the message is ignored.
"""

from __future__ import annotations

import struct
from typing import Final

from mypy_extensions import i64

from disque_tx.messages.bus import QueryMessage

#: Words that are read of one message.
WORDS_MAX: Final = 20_000

_START: Final = struct.Struct(">QI")
_LENGTH: Final = struct.Struct(">I")


def query_parts(message: QueryMessage) -> list[bytes]:
    """The body in pieces."""
    parts = [_START.pack(message.number, len(message.words))]
    for word in message.words:
        parts.append(_LENGTH.pack(len(word)))
        parts.append(word)
    return parts


def read_query(kind: i64, data: bytes, at: i64, end: i64) -> QueryMessage | None:
    """The message whose body is ``data`` from ``at`` to ``end``; ``None`` if it is damaged."""
    if end - at < _START.size:
        return None
    number, count = _START.unpack_from(data, at)
    if count > WORDS_MAX or number >> 63:
        return None
    at += _START.size
    words: list[bytes] = []
    for _ in range(count):
        if end - at < _LENGTH.size:
            return None
        length: i64 = _LENGTH.unpack_from(data, at)[0]
        at += _LENGTH.size
        if length > end - at:
            return None
        words.append(data[at : at + length])
        at += length
    return QueryMessage(kind, number, words) if at == end else None
