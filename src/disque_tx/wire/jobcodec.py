"""The job record as bytes, on the bus and in the log (cluster protocol, section 5).

off  size  field
  0     4  length of what follows, le32
  4    40  id
 44     1  state (low nibble), gc_retry (high nibble)
 45     1  flags
 46     2  repl, le16
 48     4  etime, le32: absolute seconds when stored, seconds left in a message
 52     8  ctime, le64
 60     4  delay, le32
 64     4  retry, le32
 68     2  nacks, le16
 70     2  additional deliveries, le16
 72     4  Q, le32, then Q bytes: queue
        4  B, le32, then B bytes: body
        4  N, le32, then 40*N bytes: IDs of the nodes that may hold a copy
"""

from __future__ import annotations

import struct
from typing import Final

from mypy_extensions import i64

from disque_tx.errors import PeerError
from disque_tx.messages import DELIVERED, NODE_ID_LENGTH, JobRecord

_FIXED: Final = struct.Struct("<I40sBBHIQIIHHI")
_LENGTH: Final = struct.Struct("<I")
_LENGTHS: Final = [_LENGTH.pack(n) for n in range(4096)]
_ONE: Final = _LENGTH.pack(1)
_MINIMUM: Final = 84
_CTIME_END: Final = 1 << 63
#: DELIVERED is about this node alone and is not sent.
_MOVING_FLAGS: Final = 0xFF ^ DELIVERED


def stored_length(job: JobRecord) -> int:
    """Bytes of the record, in either form."""
    return _MINIMUM + len(job.queue) + len(job.body) + NODE_ID_LENGTH * len(job.nodes)


def stored_parts(job: JobRecord) -> tuple[bytes, ...]:
    """The storage form in pieces: everything as it is, expiry absolute."""
    return _parts(job, job.etime_s, i64(job.flags))


def encode_stored(job: JobRecord) -> bytes:
    """The storage form in one piece."""
    return b"".join(stored_parts(job))


def encode_moving(job: JobRecord, life_s: i64) -> tuple[bytes, ...]:
    """The message form in pieces. ``life_s``: seconds that the job has left, 1 to 2^32-1."""
    return _parts(job, life_s, i64(job.flags) & _MOVING_FLAGS)


def _parts(job: JobRecord, etime_s: i64, flags: i64) -> tuple[bytes, ...]:
    nodes = job.nodes
    fixed = _FIXED.pack(
        stored_length(job) - 4,
        job.id,
        job.state,
        flags,
        job.repl,
        etime_s,
        job.ctime,
        job.delay_s,
        job.retry_s,
        job.nacks,
        job.deliveries,
        len(job.queue),
    )
    body = job.body
    if len(nodes) == 1:
        return fixed, job.queue, _length(len(body)), body, _ONE, nodes[0]
    return (fixed, job.queue, _length(len(body)), body, _length(len(nodes)), *nodes)


def _length(size: int) -> bytes:
    return _LENGTHS[size] if size < 4096 else _LENGTH.pack(size)


def decode_stored(data: bytes) -> JobRecord:
    """The job in a LOADJOB record; bytes behind it are ignored, as the original does.

    Raises ``PeerError`` when lengths and content disagree.
    """
    return _decode(data, 0, len(data))[0]


def decode_moving(data: bytes, at: i64, end: i64) -> tuple[JobRecord, i64, i64]:
    """The job that starts at ``at`` of a message whose jobs end at ``end``.

    Returns the job, without an expiry, the seconds it has left, and where the next one starts.
    Raises ``PeerError`` when lengths and content disagree.
    """
    job, behind = _decode(data, at, end)
    life_s = job.etime_s
    job.etime_s = 0
    return job, life_s, behind


def _decode(data: bytes, at: i64, limit: i64) -> tuple[JobRecord, i64]:
    """The job at ``at``, the expiry as it stands there, and the position behind the job."""
    room = limit - at
    if room < _MINIMUM:
        raise PeerError(f"job record of {room} bytes, at least {_MINIMUM} are needed")
    fixed = _FIXED.unpack_from(data, at)
    if int(fixed[6]) >= _CTIME_END:
        raise PeerError("job record with a creation time after the year 2262")
    size: i64 = 4 + int(fixed[0])
    if size > room:
        raise PeerError(f"job record announces {size} bytes, {room} are there")
    end = at + size
    queue, body_at = _field(data, at + _FIXED.size, int(fixed[11]), end)
    body, nodes_at = _counted(data, body_at, end, "body")
    nodes = _nodes(data, nodes_at, end)
    job = JobRecord(
        fixed[1],
        queue,
        body,
        nodes,
        fixed[6],
        fixed[5],
        delay_s=fixed[7],
        retry_s=fixed[8],
        repl=fixed[4],
    )
    job.state = fixed[2] & 15
    job.flags = fixed[3]
    job.nacks = fixed[9]
    job.deliveries = fixed[10]
    return job, end


def _nodes(data: bytes, at: i64, end: i64) -> tuple[bytes, ...]:
    """The node IDs, which must end where the job does."""
    if at + 4 > end:
        raise PeerError("job record ends before its node count")
    count = int(_LENGTH.unpack_from(data, at)[0])
    first = at + 4
    if first + NODE_ID_LENGTH * count != end:
        raise PeerError(f"job record does not end after its {count} node IDs")
    return tuple([data[n : n + NODE_ID_LENGTH] for n in range(first, end, NODE_ID_LENGTH)])


def _field(data: bytes, start: i64, length: i64, end: i64) -> tuple[bytes, i64]:
    if start + length > end:
        raise PeerError(f"job record announces {length} bytes, {end - start} are there")
    return data[start : start + length], start + length


def _counted(data: bytes, at: i64, end: i64, what: str) -> tuple[bytes, i64]:
    if at + 4 > end:
        raise PeerError(f"job record ends before the length of its {what}")
    return _field(data, at + 4, int(_LENGTH.unpack_from(data, at)[0]), end)
