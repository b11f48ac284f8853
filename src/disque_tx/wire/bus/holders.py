"""HOLDERS as bytes (cluster protocol, section 21.11).

The count in the header is the number of holders. The body, with numbers in network order::

off  size  field
  0    40  job ID
 40     4  what is left of DELAY, in milliseconds
 44     4  priority
 48        the node ID of each holder, 40 bytes

A body that is not exactly as long as that says is damaged, and the message is ignored.
"""

from __future__ import annotations

import struct
from typing import Final

from mypy_extensions import i64

from disque_tx.messages.holders import HOLDERS_MAX, HoldersMessage
from disque_tx.messages.limits import U32_MAX
from disque_tx.messages.records import JOB_ID_LENGTH, NODE_ID_LENGTH
from disque_tx.wire.bus.header import sized

_NUMBERS: Final = struct.Struct(">II")
_HOLDERS_AT: Final = JOB_ID_LENGTH + _NUMBERS.size


def holders_parts(message: HoldersMessage) -> list[bytes]:
    """The body in pieces; ``LocalError`` and ``struct.error`` for what does not fit."""
    parts = [
        sized(message.job_id, JOB_ID_LENGTH, "job ID"),
        _NUMBERS.pack(min(message.delay_ms, U32_MAX), message.priority),
    ]
    parts.extend([sized(node, NODE_ID_LENGTH, "node ID") for node in message.holders])
    return parts


def read_holders(count: i64, data: bytes, at: i64, end: i64) -> HoldersMessage | None:
    """The message whose body is ``data`` from ``at`` to ``end``; ``None`` if it is damaged."""
    if count > HOLDERS_MAX or end - at != _HOLDERS_AT + count * NODE_ID_LENGTH:
        return None
    delay_ms, priority = _NUMBERS.unpack_from(data, at + JOB_ID_LENGTH)
    first = at + _HOLDERS_AT
    holders = [
        data[first + place * NODE_ID_LENGTH : first + (place + 1) * NODE_ID_LENGTH]
        for place in range(count)
    ]
    return HoldersMessage(data[at : at + JOB_ID_LENGTH], tuple(holders), delay_ms, priority)
