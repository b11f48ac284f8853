"""Segments of the event log as a node writes them: a header, then one record per event.

A record is as cheap to write as possible, for a busy node writes a million a second; another
process converts it into lines for people (:mod:`disque_tx.wire.events.lines`). Numbers are
little-endian::

header   magic 8 | node ID 40 | boot i64 | first i64 | bodies u8 record   kind u8 | reason u8 |
shape u8 | 0 u8 | nacks i16 | deliveries i16 wall_us i64 | number i64 | elapsed_ms i32 | size i32
job ID i32 + bytes | queue i32 + bytes | rest

``boot``: when the node began to log, in ms; ``first``: the number of the segment's first event,
counted from 0 since then. The other events follow one by one, so what is missing between two
segments was dropped. ``bodies``: what lines contain of bodies, see below. ``rest`` depends on
``shape``: nothing (0); retry_s, ttl_s, delay_s and copies wanted, i64 each, then i32 + body, or -1
without one (1), and this record stands for two events, ADDED and QUEUED (3); i32 + the ID of
another node (2); i32 + a text (4).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from librt.strings import BytesWriter, write_i16_le, write_i32_le, write_i64_le
from mypy_extensions import i16, i32, i64

from disque_tx.messages.events import ADDED, FLUSHED, PAUSED, EventSink
from disque_tx.messages.records import JobRecord

MAGIC: Final = b"DQEV0002"
HEADER: Final = struct.Struct("<8s40sqqB")
# What is recorded of bodies.
NO_BODY: Final = 0
BODY_HASH: Final = 1
BODY: Final = 2
PLAIN: Final = 0
BIRTH: Final = 1
PEER: Final = 2
QUEUED_BIRTH: Final = 3
TEXT: Final = 4
#: Queues whose names are remembered as wanted or not; a client may name any number.
_QUEUES_MAX: Final = 10_000
_ELAPSED_MS_MAX: Final = 2_147_483_647


class QueueFilter:
    """Remembers which queues are wanted. ``matches``: decides for a name."""

    def __init__(self, matches: Callable[[bytes], bool]) -> None:
        self._matches = matches
        self._known: dict[bytes, bool] = {}

    def wants(self, queue: bytes) -> bool:
        """Whether events of this queue are recorded."""
        verdict = self._known.get(queue)
        if verdict is None:
            if len(self._known) >= _QUEUES_MAX:
                self._known.clear()
            verdict = self._known[queue] = self._matches(queue)
        return verdict


class EventRecorder(EventSink):
    """Takes events of a node and makes records of them.

    ``bodies``: whether the bodies of new jobs are recorded. ``wanted``: decides for a queue whether
    its events are; ``None`` for all. ``events``: how many were recorded.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bodies: bool = False
        self.wanted: QueueFilter | None = None
        self.events: i64 = 0
        self._writer: BytesWriter = BytesWriter()

    def size(self) -> i64:
        """How many bytes wait to be taken."""
        return len(self._writer)

    def take(self) -> bytes:
        """The records since the last call."""
        data = self._writer.getvalue()
        self._writer = BytesWriter()
        return data

    def added(self, job: JobRecord, ttl_s: i64, reason: i64, client_id: i64, queued: bool) -> None:
        """Record that a job is new, with what it was added with."""
        if self.wanted is not None and not self.wanted.wants(job.queue):
            return
        self._head(ADDED, reason, QUEUED_BIRTH if queued else BIRTH, job, client_id, -1)
        self.events += queued
        writer = self._writer
        write_i64_le(writer, job.retry_s)
        write_i64_le(writer, ttl_s)
        write_i64_le(writer, job.delay_s)
        write_i64_le(writer, i64(job.repl))
        if self.bodies:
            self._bytes(job.body)
        else:
            write_i32_le(writer, -1)

    def job(self, kind: i64, job: JobRecord, reason: i64, number: i64, elapsed_ms: i64) -> None:
        """Record what happened to a job."""
        if self.wanted is None or self.wanted.wants(job.queue):
            self._head(kind, reason, PLAIN, job, number, elapsed_ms)

    def noted(
        self, kind: i64, job: JobRecord, reason: i64, number: i64, elapsed_ms: i64, text: bytes
    ) -> None:
        """Record what happened to a job, with a text if there is one."""
        if self.wanted is not None and not self.wanted.wants(job.queue):
            return
        self._head(kind, reason, TEXT if text else PLAIN, job, number, elapsed_ms)
        if text:
            self._bytes(text)

    def moved(self, kind: i64, job: JobRecord, node_id: bytes) -> None:
        """Record that a job came or went."""
        if self.wanted is not None and not self.wanted.wants(job.queue):
            return
        self._head(kind, 0, PEER, job, 0, -1)
        self._bytes(node_id)

    def paused(self, queue: bytes, flags: i64) -> None:
        """Record the pause flags of a queue."""
        if self.wanted is None or self.wanted.wants(queue):
            self._bare(PAUSED, queue, flags)

    def flushed(self, jobs: i64) -> None:
        """Record that all jobs were forgotten."""
        self._bare(FLUSHED, b"", jobs)

    def _head(
        self, kind: i64, reason: i64, shape: i64, job: JobRecord, number: i64, elapsed_ms: i64
    ) -> None:
        self.events += 1
        writer = self._writer
        write_i32_le(writer, i32(kind | reason << 8 | shape << 16))
        write_i16_le(writer, _short(job.nacks))
        write_i16_le(writer, _short(job.deliveries))
        write_i64_le(writer, self.wall_us)
        write_i64_le(writer, number)
        write_i32_le(writer, i32(min(elapsed_ms, _ELAPSED_MS_MAX)))
        write_i32_le(writer, i32(job.body_bytes))
        self._bytes(job.id)
        self._bytes(job.queue)

    def _bare(self, kind: i64, queue: bytes, number: i64) -> None:
        """A record that is not about a job."""
        nothing = JobRecord(b"", queue, b"", (), 0, 0, delay_s=0, retry_s=0, repl=0)
        self._head(kind, 0, PLAIN, nothing, number, -1)

    def _bytes(self, data: bytes) -> None:
        write_i32_le(self._writer, i32(len(data)))
        self._writer.write(data)


def _short(count: i64) -> i16:
    """A number up to 65535 in two bytes."""
    return i16(count - 65536 if count > 32767 else count)
