"""The five kinds of body that bus messages have (cluster protocol, section 4).

Sizes and counts come from outside and are not trusted: a body is read only when its length is
exactly what its type and these numbers require, so nothing after it is ever read.
"""

from __future__ import annotations

import struct
from typing import Final

from mypy_extensions import i64

from disque_tx.errors import LocalError, PeerError
from disque_tx.messages.bus import (
    ONLY_US,
    Gossip,
    GossipEntry,
    JobSignal,
    JobsMessage,
    Message,
    NodeFailed,
    QueueSignal,
)
from disque_tx.messages.bustypes import (
    DELJOB,
    ENQUEUE,
    FAIL,
    GOTACK,
    GOTJOB,
    MEET,
    NEEDJOBS,
    PAUSE,
    PING,
    PONG,
    QUEUED,
    REPLJOB,
    SETACK,
    WILLQUEUE,
    WORKING,
    YOURJOBS,
)
from disque_tx.messages.records import JOB_ID_LENGTH, NODE_ID_LENGTH, JobRecord
from disque_tx.wire.bus.header import clean_ip, ip_field, sized
from disque_tx.wire.jobs.codec import RecordReader, decode_moving, encode_moving

#: Bytes of a body: job ID and aux; one gossip entry; two numbers in front of what they announce.
SIGNAL_BYTES: Final = 44
_ENTRY_BYTES: Final = 104
PREFIX_BYTES: Final = 8

# Kinds of body.
_GOSSIP: Final = 0
_FAILED: Final = 1
_JOBS: Final = 2
_SIGNAL: Final = 3
_QUEUE: Final = 4
_KIND: Final = {
    **dict.fromkeys((PING, PONG, MEET), _GOSSIP),
    **dict.fromkeys((REPLJOB, YOURJOBS), _JOBS),
    **dict.fromkeys((GOTJOB, ENQUEUE, QUEUED, SETACK, WILLQUEUE, GOTACK, DELJOB, WORKING), _SIGNAL),
    **dict.fromkeys((NEEDJOBS, PAUSE), _QUEUE),
    FAIL: _FAILED,
}
#: The same by number; numbers beyond the end are not types.
_KINDS: Final = [_KIND[number] for number in range(len(_KIND))]

_ENTRY: Final = struct.Struct(">40sII46sHHH4x")
_PREFIX: Final = struct.Struct(">II")
_AUX: Final = struct.Struct(">I")
_AUXES_MAX: Final = 4096
_AUXES: Final = [_AUX.pack(n) for n in range(_AUXES_MAX)]
#: The number in SETACK between the two holders of a job that has moved.
_SETTLING: Final = 2 | ONLY_US
_SETTLING_BYTES: Final = _AUX.pack(_SETTLING)


# -- to bytes ----------------------------------------------------------------------------------


def body_parts(message: Message) -> tuple[bytes, ...]:
    """The body in pieces; ``LocalError`` for what does not fit into its field."""
    if isinstance(message, JobSignal):
        return sized(message.job_id, JOB_ID_LENGTH, "job ID"), aux_bytes(message.aux)
    if isinstance(message, JobsMessage):
        return _jobs_parts(message)
    if isinstance(message, QueueSignal):
        return _PREFIX.pack(message.aux, len(message.queue)), message.queue
    if isinstance(message, NodeFailed):
        return (sized(message.about, NODE_ID_LENGTH, "node ID"),)
    if isinstance(message, Gossip):
        return tuple([_entry_bytes(entry) for entry in message.entries])
    raise LocalError(f"a bus message of type {message.type} without a body")


def aux_bytes(aux: i64) -> bytes:
    """The number behind a job ID; ``struct.error`` when it does not fit into 32 bits."""
    if 0 <= aux < _AUXES_MAX:
        return _AUXES[aux]
    return _SETTLING_BYTES if aux == _SETTLING else _AUX.pack(aux)


def _jobs_parts(message: JobsMessage) -> tuple[bytes, ...]:
    jobs = message.jobs
    lives_s = message.lives_s
    if len(jobs) != len(lives_s):
        raise LocalError(f"{len(jobs)} jobs with {len(lives_s)} times to live in a bus message")
    parts: list[bytes] = []
    size: i64 = 0
    for number, job in enumerate(jobs):
        record = encode_moving(job, lives_s[number])
        parts.append(record)
        size += len(record)
    return (jobs_prefix(len(jobs), size), *parts)


def jobs_prefix(jobs: i64, size: i64) -> bytes:
    """What stands before records: how many there are, and their bytes."""
    return _PREFIX.pack(jobs, size)


def _entry_bytes(entry: GossipEntry) -> bytes:
    return _ENTRY.pack(
        sized(entry.id, NODE_ID_LENGTH, "node ID"),
        entry.ping_sent_ms,
        entry.pong_received_ms,
        ip_field(entry.ip),
        entry.port,
        entry.flags,
        entry.bus_port,
    )


# -- from bytes --------------------------------------------------------------------------------


def read_body(number: i64, count: i64, data: bytes, at: i64, size: i64) -> Message | None:
    """The message of type ``number`` whose body is ``size`` bytes of ``data`` from ``at`` on.

    ``count``: gossip entries that the header announces. ``None`` for an unknown type, and for a
    body whose length is not the one that type and counts ask for. Sender and the other words of
    the header are still missing in the message.
    """
    if number >= len(_KINDS):
        return None
    kind = _KINDS[number]
    if kind == _SIGNAL:
        if size != SIGNAL_BYTES:
            return None
        aux_at = at + JOB_ID_LENGTH
        return JobSignal(number, data[at:aux_at], _AUX.unpack_from(data, aux_at)[0])
    if kind == _GOSSIP:
        return _read_gossip(number, count, data, at, size)
    if kind == _FAILED:
        return NodeFailed(data[at : at + size]) if size == NODE_ID_LENGTH else None
    if size < PREFIX_BYTES:
        return None
    first, length = _PREFIX.unpack_from(data, at)
    if length != size - PREFIX_BYTES:
        return None
    if kind == _QUEUE:
        return QueueSignal(number, data[at + PREFIX_BYTES : at + size], first)
    return _read_jobs(number, first, data, at + PREFIX_BYTES, at + size)


def _read_jobs(number: i64, announced: i64, data: bytes, at: i64, end: i64) -> JobsMessage:
    """Jobs up to the announced number or the first damage; what follows them is ignored."""
    jobs: list[JobRecord] = []
    lives_s: list[int] = []
    damage = ""
    records = RecordReader()
    try:
        while len(jobs) < announced:
            job, life_s, at = decode_moving(data, at, end, records)
            jobs.append(job)
            lives_s.append(life_s)
    except PeerError as error:
        damage = str(error)
    message = JobsMessage(number, jobs, lives_s)
    message.announced = announced
    message.damage = damage
    return message


def _read_gossip(number: i64, count: i64, data: bytes, at: i64, size: i64) -> Gossip | None:
    if size != count * _ENTRY_BYTES:
        return None
    entries: list[GossipEntry] = []
    end = at + size
    while at < end:
        entry = _read_entry(data, at)
        if entry is None:
            return None
        entries.append(entry)
        at += _ENTRY_BYTES
    return Gossip(number, entries)


def _read_entry(data: bytes, at: i64) -> GossipEntry | None:
    fields = _ENTRY.unpack_from(data, at)
    field: bytes = fields[3]
    if 0 not in field:
        return None
    entry = GossipEntry(fields[0], clean_ip(field), fields[4], fields[5])
    entry.ping_sent_ms = fields[1]
    entry.pong_received_ms = fields[2]
    entry.bus_port = fields[6]
    return entry
