"""HOLDERS as bytes (cluster protocol, section 21.11).

The count in the header is the number of holders. The body, with numbers in network order::

off  size  field
  0    40  job ID
 40     4  what is left of DELAY, in milliseconds
 44     4  priority
 48        the node ID of each holder, 40 bytes
           the IDs of other jobs of which that holds as well, 40 bytes each

A body that ends elsewhere is damaged, and the message is ignored.
"""

from __future__ import annotations

import struct
from typing import Final

from mypy_extensions import i64

from disque_tx.messages.holders import HOLDERS_MAX, JOBS_MAX, HoldersMessage
from disque_tx.messages.limits import U32_MAX
from disque_tx.messages.records import JOB_ID_LENGTH, NODE_ID_LENGTH
from disque_tx.wire.bus.header import sized

_NUMBERS: Final = struct.Struct(">II")
_HOLDERS_AT: Final = JOB_ID_LENGTH + _NUMBERS.size


def holders_parts(message: HoldersMessage) -> list[bytes]:
    """The body in pieces; ``LocalError`` and ``struct.error`` for what does not fit."""
    first, *others = [sized(job_id, JOB_ID_LENGTH, "job ID") for job_id in message.job_ids]
    numbers = _NUMBERS.pack(min(message.delay_ms, U32_MAX), message.priority)
    holders = [sized(node, NODE_ID_LENGTH, "node ID") for node in message.holders]
    return [first, numbers, *holders, *others]


def read_holders(count: i64, data: bytes, at: i64, end: i64) -> HoldersMessage | None:
    """The message whose body is ``data`` from ``at`` to ``end``; ``None`` if it is damaged."""
    first = at + _HOLDERS_AT
    others_at = first + count * NODE_ID_LENGTH
    others, rest = divmod(end - others_at, JOB_ID_LENGTH)
    if count > HOLDERS_MAX or rest or not 0 <= others < JOBS_MAX:
        return None
    delay_ms, priority = _NUMBERS.unpack_from(data, at + JOB_ID_LENGTH)
    holders = tuple([data[a : a + NODE_ID_LENGTH] for a in range(first, others_at, NODE_ID_LENGTH)])
    job_ids = [data[at : at + JOB_ID_LENGTH]]
    job_ids.extend([data[a : a + JOB_ID_LENGTH] for a in range(others_at, end, JOB_ID_LENGTH)])
    return HoldersMessage(job_ids, holders, delay_ms, priority)
