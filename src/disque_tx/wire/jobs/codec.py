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

from typing import Final

from librt.strings import (
    BytesWriter,
    read_i16_le,
    read_i32_le,
    read_i64_le,
    write_i16_le,
    write_i32_le,
    write_i64_le,
)
from mypy_extensions import i16, i32, i64, u8

from disque_tx.errors import LocalError, PeerError
from disque_tx.messages.limits import U16_MAX, U32_MAX
from disque_tx.messages.records import DELIVERED, JOB_ID_LENGTH, NODE_ID_LENGTH, JobRecord

_QUEUE_AT: Final = 76
_MINIMUM: Final = 84
#: DELIVERED is about this node alone and is not sent.
_MOVING_FLAGS: Final = 0xFF ^ DELIVERED
#: Lists of holders remembered while records are read, so that equal ones are one; of so many nodes.
_LISTS_MAX: Final = 256
_LIST_BYTES_MAX: Final = 16 * NODE_ID_LENGTH
#: Names of queues remembered, of so many bytes.
_NAMES_MAX: Final = 1_024
_NAME_BYTES_MAX: Final = 256


# -- to bytes ----------------------------------------------------------------------------------


def stored_length(job: JobRecord) -> int:
    """Bytes of the record, in either form."""
    return _MINIMUM + len(job.queue) + job.body_bytes + NODE_ID_LENGTH * len(job.nodes)


def write_stored(writer: BytesWriter, job: JobRecord) -> None:
    """Append the storage form: everything as it is, expiry absolute. ``LocalError`` for what does
    not fit into its field; a part of the record is appended then."""
    _write(writer, job, job.etime_s, i64(job.flags))


def encode_stored(job: JobRecord) -> bytes:
    """The stored form of a job as new bytes."""
    writer = BytesWriter()
    write_stored(writer, job)
    return writer.getvalue()


def encode_moving(job: JobRecord, life_s: i64) -> bytes:
    """The message form. ``life_s``: seconds that the job has left, 1 to 2^32-1. ``LocalError`` for
    what does not fit into its field."""
    writer = BytesWriter()
    _write(writer, job, life_s, i64(job.flags) & _MOVING_FLAGS)
    return writer.getvalue()


def _write(writer: BytesWriter, job: JobRecord, etime_s: i64, flags: i64) -> None:
    job_id = job.id
    if len(job_id) != JOB_ID_LENGTH:
        raise LocalError(f"job ID of {len(job_id)} bytes in a job record, it must have 40")
    if not 0 <= flags < 256:
        raise LocalError(f"job record with flags {flags}")
    nodes = job.nodes
    size: i64 = _MINIMUM + len(job.queue) + job.body_bytes + NODE_ID_LENGTH * len(nodes)
    write_i32_le(writer, _word(size - 4))
    writer.write(job_id)
    writer.append(job.state)
    writer.append(int(flags))
    write_i16_le(writer, _half(i64(job.repl)))
    write_i32_le(writer, _word(etime_s))
    write_i64_le(writer, job.ctime)
    write_i32_le(writer, _word(job.delay_s))
    write_i32_le(writer, _word(job.retry_s))
    write_i16_le(writer, _half(job.nacks))
    write_i16_le(writer, _half(job.deliveries))
    write_i32_le(writer, _word(len(job.queue)))
    writer.write(job.queue)
    write_i32_le(writer, _word(job.body_bytes))
    writer.write(job.body)
    write_i32_le(writer, _word(len(nodes)))
    for node in nodes:
        if len(node) != NODE_ID_LENGTH:
            raise LocalError(f"node ID of {len(node)} bytes in a job record")
        writer.write(node)


def _word(number: i64) -> i32:
    """An unsigned number as the 32 bits that are written."""
    if number < 0 or number > U32_MAX:
        raise LocalError(f"{number} does not fit into 32 bits of a job record")
    return i32(number if number < 0x8000_0000 else number - 0x1_0000_0000)


def _half(number: i64) -> i16:
    """An unsigned number as the 16 bits that are written."""
    if number < 0 or number > U16_MAX:
        raise LocalError(f"{number} does not fit into 16 bits of a job record")
    return i16(number if number < 0x8000 else number - 0x1_0000)


# -- from bytes --------------------------------------------------------------------------------


def decode_stored(data: bytes) -> JobRecord:
    """The job in a LOADJOB record; bytes behind it are ignored, as the original does.

    Raises ``PeerError`` when lengths and content disagree.
    """
    record_end(data, 0, len(data))
    return RecordReader().read(data, 0)


def decode_moving(
    data: bytes, at: i64, end: i64, records: RecordReader
) -> tuple[JobRecord, i64, i64]:
    """The job that starts at ``at`` of a message whose jobs end at ``end``. ``records``: reads all
    jobs of one message.

    Returns the job, without an expiry, the seconds it has left, and where the next one starts.
    Raises ``PeerError`` when lengths and content disagree.
    """
    behind = record_end(data, at, end)
    job = records.read(data, at)
    life_s = job.etime_s
    job.etime_s = 0
    return job, life_s, behind


def record_end(data: bytes, at: i64, limit: i64) -> i64:
    """The position behind the record that starts at ``at``, which must not be behind ``limit``.

    Raises ``PeerError`` when lengths and content disagree; what passes can be read.
    """
    room = limit - at
    if room < _MINIMUM:
        raise PeerError(f"job record of {room} bytes, at least {_MINIMUM} are needed")
    if read_i64_le(data, at + 52) < 0:
        raise PeerError("job record with a creation time after the year 2262")
    size = 4 + _u32(data, at)
    if size > room:
        raise PeerError(f"job record announces {size} bytes, {room} are there")
    end = at + size
    body_at = _behind(at + _QUEUE_AT, _u32(data, at + 72), end)
    if body_at + 4 > end:
        raise PeerError("job record ends before the length of its body")
    nodes_at = _behind(body_at + 4, _u32(data, body_at), end)
    if nodes_at + 4 > end:
        raise PeerError("job record ends before its node count")
    count = _u32(data, nodes_at)
    if nodes_at + 4 + NODE_ID_LENGTH * count != end:
        raise PeerError(f"job record does not end after its {count} node IDs")
    return end


def record_length(data: bytes, at: i64) -> i64:
    """Bytes of the complete record at ``at``."""
    return 4 + _u32(data, at)


def _behind(start: i64, length: i64, end: i64) -> i64:
    """The position behind a field."""
    if start + length > end:
        raise PeerError(f"job record announces {length} bytes, {end - start} are there")
    return start + length


def _u32(data: bytes, at: i64) -> i64:
    return i64(read_i32_le(data, at)) & U32_MAX


class RecordReader:
    """Reads records that :func:`record_end` found complete. Equal lists of holders become one, and
    so do equal names of queues: in one message, most follow one that is equal."""

    __slots__ = ("_last_ids", "_last_name", "_last_nodes", "_lists", "_names")

    def __init__(self) -> None:
        self._lists: dict[bytes, tuple[bytes, ...]] = {}
        self._names: dict[bytes, bytes] = {}
        self._last_ids: bytes = b""
        self._last_nodes: tuple[bytes, ...] = ()
        self._last_name: bytes = b""

    def read(self, data: bytes, at: i64) -> JobRecord:
        """The job at ``at``; its ``etime_s`` is what stands there."""
        queue_at = at + _QUEUE_AT
        body_at = queue_at + _u32(data, at + 72) + 4
        nodes_at = body_at + _u32(data, body_at - 4) + 4
        job = JobRecord(
            data[at + 4 : at + 44],
            self._name(data[queue_at : body_at - 4]),
            data[body_at : nodes_at - 4],
            self._nodes(data, nodes_at, nodes_at + NODE_ID_LENGTH * _u32(data, nodes_at - 4)),
            read_i64_le(data, at + 52),
            _u32(data, at + 48),
            delay_s=_u32(data, at + 60),
            retry_s=_u32(data, at + 64),
            repl=i64(read_i16_le(data, at + 46)) & U16_MAX,
        )
        job.state = u8(data[at + 44] & 15)
        job.flags = i16(data[at + 45])
        job.nacks = i64(read_i16_le(data, at + 68)) & U16_MAX
        job.deliveries = i64(read_i16_le(data, at + 70)) & U16_MAX
        return job

    def _name(self, name: bytes) -> bytes:
        """The one object for this name, unless it is long."""
        if len(name) > _NAME_BYTES_MAX:
            return name
        if name == self._last_name:
            return self._last_name
        known = self._names.get(name)
        if known is None:
            if len(self._names) >= _NAMES_MAX:
                self._names.clear()
            known = self._names[name] = name
        self._last_name = known
        return known

    def _nodes(self, data: bytes, first: i64, end: i64) -> tuple[bytes, ...]:
        """The node IDs between these positions."""
        if end - first > _LIST_BYTES_MAX:
            return _split(data[first:end])
        ids = data[first:end]
        if ids == self._last_ids:
            return self._last_nodes
        nodes = self._lists.get(ids)
        if nodes is None:
            if len(self._lists) >= _LISTS_MAX:
                self._lists.clear()
            nodes = self._lists[ids] = _split(ids)
        self._last_ids, self._last_nodes = ids, nodes
        return nodes


def _split(ids: bytes) -> tuple[bytes, ...]:
    """Node IDs that stand one behind another."""
    return tuple([ids[n : n + NODE_ID_LENGTH] for n in range(0, len(ids), NODE_ID_LENGTH)])
