"""The file beside the log that says which jobs were in queues when the node stopped (cluster
protocol, section 14.7).

In network order::

    off  size  field
      0    16  "DISQUE QUEUED 1\\n"
     16     8  size of the log in bytes
     24    16  BLAKE2b hash of the end of the log, 64 KiB at most
     40     8  when it was written, milliseconds since 1970
     48     4  n, how many jobs follow
     52        n times: a job ID, 40 bytes; queue by queue, in order
           16  BLAKE2b hash of everything before
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from typing import Final

from mypy_extensions import i64

from disque_tx.errors import PeerError
from disque_tx.messages.records import JOB_ID_LENGTH

#: So much of the end of the log is hashed.
TAIL_BYTES: Final = 64 * 1024
_MAGIC: Final = b"DISQUE QUEUED 1\n"
_HEADER: Final = struct.Struct(">16sQ16sQI")
_HASH_BYTES: Final = 16


def digest(data: bytes) -> bytes:
    """The hash of the end of a log, and of the file."""
    return blake2b(data, digest_size=_HASH_BYTES).digest()


class QueuedJobs:
    """``log_bytes``, ``log_digest``: the log that it belongs to. ``unix_ms``: when it was written.
    ``ids``: the jobs."""

    __slots__ = ("ids", "log_bytes", "log_digest", "unix_ms")

    def __init__(self, log_bytes: i64, log_digest: bytes, unix_ms: i64, ids: list[bytes]) -> None:
        self.log_bytes: i64 = log_bytes
        self.log_digest: bytes = log_digest
        self.unix_ms: i64 = unix_ms
        self.ids: list[bytes] = ids


def render(queued: QueuedJobs) -> bytes:
    """The whole file."""
    log = (int(queued.log_bytes), queued.log_digest, int(queued.unix_ms))
    data = b"".join([_HEADER.pack(_MAGIC, *log, len(queued.ids)), *queued.ids])
    return data + digest(data)


def parse(data: bytes) -> QueuedJobs:
    """What the file says; ``PeerError`` with the reason if it is damaged."""
    if len(data) < _HEADER.size + _HASH_BYTES:
        raise PeerError(f"it has only {len(data)} bytes")
    magic, log_bytes, log_digest, unix_ms, count = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise PeerError("it begins with something else, or is of a later version")
    end = len(data) - _HASH_BYTES
    if digest(data[:end]) != data[end:]:
        raise PeerError("its checksum is wrong")
    if end != _HEADER.size + count * JOB_ID_LENGTH or log_bytes >> 63 or unix_ms >> 63:
        raise PeerError(f"{count} jobs do not fit {len(data)} bytes")
    ids = [data[at : at + JOB_ID_LENGTH] for at in range(_HEADER.size, end, JOB_ID_LENGTH)]
    return QueuedJobs(log_bytes, log_digest, unix_ms, ids)
