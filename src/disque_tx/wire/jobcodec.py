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

from disque_tx.errors import PeerError
from disque_tx.messages import NODE_ID_LENGTH, JobRecord

_FIXED: Final = struct.Struct("<I40sBBHIQIIHHI")
_LENGTH: Final = struct.Struct("<I")
_LENGTHS: Final = [_LENGTH.pack(n) for n in range(4096)]
_ONE: Final = _LENGTH.pack(1)
_MINIMUM: Final = 84
_CTIME_END: Final = 1 << 63


def stored_length(job: JobRecord) -> int:
    """Bytes of the storage form."""
    return _MINIMUM + len(job.queue) + len(job.body) + NODE_ID_LENGTH * len(job.nodes)


def stored_parts(job: JobRecord) -> tuple[bytes, ...]:
    """The storage form in pieces: everything as it is, expiry absolute."""
    nodes = job.nodes
    fixed = _FIXED.pack(
        stored_length(job) - 4,
        job.id,
        job.state,
        job.flags,
        job.repl,
        job.etime_s,
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


def encode_stored(job: JobRecord) -> bytes:
    """The storage form in one piece."""
    return b"".join(stored_parts(job))


def _length(size: int) -> bytes:
    return _LENGTHS[size] if size < 4096 else _LENGTH.pack(size)


def decode_stored(data: bytes) -> JobRecord:
    """The job in a LOADJOB record; bytes behind it are ignored, as the original does.

    Raises ``PeerError`` when lengths and content disagree.
    """
    size = len(data)
    if size < _MINIMUM:
        raise PeerError(f"job record of {size} bytes, at least {_MINIMUM} are needed")
    fixed = _FIXED.unpack_from(data)
    if int(fixed[6]) >= _CTIME_END:
        raise PeerError("job record with a creation time behind the year 2262")
    end = 4 + int(fixed[0])
    if end > size:
        raise PeerError(f"job record announces {end} bytes, {size} are there")
    queue, body_at = _field(data, _FIXED.size, int(fixed[11]), end)
    body, nodes_at = _counted(data, body_at, end, "body")
    if nodes_at + 4 > end:
        raise PeerError("job record ends before its node count")
    count = _LENGTH.unpack_from(data, nodes_at)[0]
    first = nodes_at + 4
    if first + NODE_ID_LENGTH * count != end:
        raise PeerError(f"job record of {end} bytes does not end behind its {count} node IDs")
    nodes = tuple([data[at : at + NODE_ID_LENGTH] for at in range(first, end, NODE_ID_LENGTH)])
    job = JobRecord(fixed[1], queue, body, nodes, fixed[6], fixed[5], fixed[7], fixed[8], fixed[4])
    job.state = fixed[2] & 15
    job.flags = fixed[3]
    job.nacks = fixed[9]
    job.deliveries = fixed[10]
    return job


def _field(data: bytes, start: int, length: int, end: int) -> tuple[bytes, int]:
    if start + length > end:
        raise PeerError(f"job record announces {length} bytes, {end - start} are there")
    return data[start : start + length], start + length


def _counted(data: bytes, at: int, end: int, what: str) -> tuple[bytes, int]:
    if at + 4 > end:
        raise PeerError(f"job record ends before the length of its {what}")
    return _field(data, at + 4, int(_LENGTH.unpack_from(data, at)[0]), end)
