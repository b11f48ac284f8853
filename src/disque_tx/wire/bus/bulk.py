"""BULK: what one turn sends to one node about many jobs, as one message (cluster protocol, section
21.2).

The header holds type 35 and, as its count, the number of messages. The body is runs of messages
that have type and message flags in common::

off  size  field, in network order
  0     2  type: REPLJOB, GOTJOB, SETACK, GOTACK or DELJOB
  2     1  message flags
  3     1  zero
  4     4  n, how many messages the run holds, at least 1
  8        n times the body of such a message: 44 bytes, job ID and aux; of REPLJOB, a job record

A bulk is checked as a whole before the first of its messages is used: one that is damaged anywhere
is a damaged message.
"""

from __future__ import annotations

import struct
from typing import Final

from librt.strings import read_i16_be, read_i32_be
from mypy_extensions import i64, mypyc_attr

from disque_tx.errors import LocalError, PeerError
from disque_tx.messages.bus import Bulk, JobSignal, JobsMessage, Message
from disque_tx.messages.bustypes import DELJOB, GOTACK, GOTJOB, REPLJOB, SETACK
from disque_tx.messages.limits import U32_MAX
from disque_tx.messages.records import JOB_ID_LENGTH, JobRecord
from disque_tx.wire.bus.bodies import SIGNAL_BYTES, aux_bytes
from disque_tx.wire.bus.header import sized
from disque_tx.wire.jobs.codec import RecordReader, encode_moving, record_end, record_length

#: The most messages, and bytes of a body, in one bulk: what a turn may do for one message of
#: another node is bounded.
MESSAGES_MAX: Final = 1_000
BODY_BYTES_MAX: Final = 64 * 1024
RUN_BYTES: Final = 8

_RUN: Final = struct.Struct(">HBxI")


@mypyc_attr(allow_interpreted_subclasses=True)
class HotMessages:
    """Takes the messages that are most of the traffic, without objects for them."""

    def signal(self, kind: i64, mflags: i64, job_id: bytes, aux: i64) -> None:
        """GOTJOB, SETACK, GOTACK or DELJOB."""
        raise NotImplementedError

    def copy(self, job: JobRecord, life_s: i64, mflags: i64) -> None:
        """REPLJOB with one job, without an expiry, that has ``life_s`` seconds left."""
        raise NotImplementedError


def is_signal(kind: i64) -> bool:
    """Whether this is one of the four types of :meth:`HotMessages.signal`."""
    return kind in (GOTJOB, SETACK, GOTACK, DELJOB)


# -- to bytes ----------------------------------------------------------------------------------


def run_header(kind: i64, mflags: i64, count: i64) -> bytes:
    """What stands before the messages of a run."""
    return _RUN.pack(kind, mflags, count)


def bulk_parts(bulk: Bulk) -> list[bytes]:
    """The body in pieces; ``LocalError`` for what cannot be in a bulk."""
    parts: list[bytes] = []
    run: list[bytes] = []
    count: i64 = 0
    before: Message | None = None
    for message in bulk.messages:
        if before is not None and (before.type != message.type or before.mflags != message.mflags):
            parts += [run_header(before.type, before.mflags, count), *run]
            run = []
            count = 0
        run += _body_of(message)
        count += 1
        before = message
    if before is None or len(bulk.messages) > MESSAGES_MAX:
        raise LocalError(f"a bulk of {len(bulk.messages)} messages")
    return [*parts, run_header(before.type, before.mflags, count), *run]


def _body_of(message: Message) -> list[bytes]:
    if isinstance(message, JobSignal) and is_signal(message.type):
        return [sized(message.job_id, JOB_ID_LENGTH, "job ID"), aux_bytes(message.aux)]
    if isinstance(message, JobsMessage) and message.type == REPLJOB and len(message.jobs) == 1:
        return [encode_moving(message.jobs[0], message.lives_s[0])]
    raise LocalError(f"a message of type {message.type} in a bulk")


# -- from bytes --------------------------------------------------------------------------------


def is_bulk(count: i64, data: bytes, at: i64, end: i64) -> bool:
    """Whether the bytes from ``at`` to ``end`` are the body of a bulk of ``count`` messages."""
    if not 0 < count <= MESSAGES_MAX or end - at > BODY_BYTES_MAX:
        return False
    try:
        while at < end:
            if at + RUN_BYTES > end:
                return False
            number = _count(data, at)
            count -= number
            if number == 0 or count < 0:
                return False
            at = _run_end(data, at, number, end)
            if at < 0:
                return False
    except PeerError:
        return False
    return count == 0


def _run_end(data: bytes, at: i64, number: i64, end: i64) -> i64:
    """The position behind the run at ``at``; -1 if it is none, or goes beyond ``end``.
    ``PeerError`` for a damaged job."""
    kind = i64(read_i16_be(data, at))
    if data[at + 3] != 0:
        return -1
    at += RUN_BYTES
    if is_signal(kind):
        at += number * SIGNAL_BYTES
        return at if at <= end else -1
    if kind != REPLJOB:
        return -1
    while number > 0:
        at = record_end(data, at, end)
        number -= 1
    return at


def _count(data: bytes, at: i64) -> i64:
    return i64(read_i32_be(data, at + 4)) & U32_MAX


def read_bulk(data: bytes, at: i64, end: i64, records: RecordReader, to: HotMessages) -> None:
    """Hand over the messages of a body that passed :func:`is_bulk`, in order."""
    while at < end:
        kind = i64(read_i16_be(data, at))
        mflags: i64 = data[at + 2]
        number = _count(data, at)
        at += RUN_BYTES
        while number > 0:
            if kind == REPLJOB:
                read_copy(data, at, mflags, records, to)
                at += record_length(data, at)
            else:
                read_signal(data, at, kind, mflags, to)
                at += SIGNAL_BYTES
            number -= 1


def read_signal(data: bytes, at: i64, kind: i64, mflags: i64, to: HotMessages) -> None:
    """Hand over the message about one job whose body is at ``at``."""
    aux_at = at + JOB_ID_LENGTH
    to.signal(kind, mflags, data[at:aux_at], i64(read_i32_be(data, aux_at)) & U32_MAX)


def read_copy(data: bytes, at: i64, mflags: i64, records: RecordReader, to: HotMessages) -> None:
    """Hand over the job whose complete record is at ``at``."""
    job = records.read(data, at)
    life_s = job.etime_s
    job.etime_s = 0
    to.copy(job, life_s, mflags)


class Values(HotMessages):
    """Collects messages as values. ``messages``: those handed over."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def signal(self, kind: i64, mflags: i64, job_id: bytes, aux: i64) -> None:
        message = JobSignal(kind, job_id, aux)
        message.mflags = mflags
        self.messages.append(message)

    def copy(self, job: JobRecord, life_s: i64, mflags: i64) -> None:
        message = JobsMessage(REPLJOB, [job], [int(life_s)])
        message.mflags = mflags
        self.messages.append(message)


def read_values(count: i64, data: bytes, at: i64, end: i64) -> Bulk | None:
    """The bulk whose body is between these positions; ``None`` if it is damaged. The fields of the
    header are still missing in it and in its messages."""
    if not is_bulk(count, data, at, end):
        return None
    values = Values()
    read_bulk(data, at, end, RecordReader(), values)
    return Bulk(values.messages)
