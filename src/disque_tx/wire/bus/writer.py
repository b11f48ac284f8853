"""The messages sent on one link in one turn, as bytes (cluster protocol, sections 3, 4 and 21.2).

To a node that can take it, successive messages of the hot types leave as one bulk; a single one
leaves as itself. Either way their bodies are the same bytes, collected as they come. What stands
before a body is known only when the next message comes, so its place is kept, and filled in then.
"""

from __future__ import annotations

import struct
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disque_tx.errors import LocalError
from disque_tx.messages.bus import BusSink, JobCopy, Message, Sender
from disque_tx.messages.bustypes import REPLJOB
from disque_tx.messages.records import JOB_ID_LENGTH
from disque_tx.wire.bus.bodies import PREFIX_BYTES, SIGNAL_BYTES, aux_bytes, jobs_prefix
from disque_tx.wire.bus.bulk import BODY_BYTES_MAX, MESSAGES_MAX, RUN_BYTES, run_header
from disque_tx.wire.bus.header import HEADER_BYTES, bulk_header, plain_header, sized
from disque_tx.wire.bus.parser import encode
from disque_tx.wire.jobs.codec import encode_moving

_LATER: Final = b""
_NOBODY: Final = Sender(b"", 0, 0, b"", 0)


@mypyc_attr(allow_interpreted_subclasses=True)
class BusWriter(BusSink):
    """Messages to be taken and written in one piece.

    ``written``: the list to which it adds itself when it has something to write, once until that is
    taken. ``pending_bytes``: about how much that is.
    """

    __slots__ = (
        "_body_bytes",
        "_chunks",
        "_count",
        "_first_run",
        "_kind",
        "_mflags",
        "_run",
        "_run_at",
        "_sender",
        "_start_at",
        "_written",
        "pending_bytes",
    )

    def __init__(self, written: list[BusWriter]) -> None:
        super().__init__()
        self.pending_bytes: i64 = 0
        self._written: list[BusWriter] = written
        self._chunks: list[bytes] = []
        # Of the messages that may become one bulk: whose, how many, bytes of their bodies and runs,
        # the place of their start.
        self._sender: Sender = _NOBODY
        self._count: i64 = 0
        self._body_bytes: i64 = 0
        self._start_at: i64 = 0
        # Of the last run of them: type and flags, how many, the place of its start. The start of
        # the first run stands behind that of the bulk, in one place.
        self._kind: i64 = 0
        self._mflags: i64 = 0
        self._run: i64 = 0
        self._run_at: i64 = 0
        self._first_run: bytes = b""

    def send(self, message: Message) -> None:
        data = encode(message)
        self._end_bulk()
        self._add(data)

    def signal(self, sender: Sender, kind: i64, job_id: bytes, aux: i64) -> None:
        sized(job_id, JOB_ID_LENGTH, "job ID")
        try:
            last = aux_bytes(aux)
        except struct.error as error:
            raise LocalError(f"bus message of type {kind}: {error}") from None
        if self.bulk:
            self._begin(sender, kind, 0, SIGNAL_BYTES)
        else:
            self._end_bulk()
            self._add(plain_header(sender, kind, 0, SIGNAL_BYTES))
        self._chunks.append(job_id)
        self._chunks.append(last)
        self.pending_bytes += SIGNAL_BYTES

    def copy(self, sender: Sender, copy: JobCopy, mflags: i64) -> None:
        record = copy.record
        if not record:
            record = copy.record = encode_moving(copy.job, copy.life_s)
        if self.bulk:
            self._begin(sender, REPLJOB, mflags, len(record))
        else:
            self._end_bulk()
            self._add(_copy_start(sender, mflags, len(record)))
        self._chunks.append(record)
        self.pending_bytes += len(record)

    def take(self) -> bytes:
        """Everything sent since the last call, in order."""
        self._end_bulk()
        chunks = self._chunks
        self._chunks = []
        self.pending_bytes = 0
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _add(self, data: bytes) -> None:
        if not self._chunks:
            self._written.append(self)
        self._chunks.append(data)
        self.pending_bytes += len(data)

    # -- bulks -------------------------------------------------------------------------------

    def _begin(self, sender: Sender, kind: i64, mflags: i64, size: i64) -> None:
        """A message with a body of ``size`` bytes follows, as a part of the bulk if it fits."""
        if self._count > 0:
            fits = self._body_bytes + RUN_BYTES + size <= BODY_BYTES_MAX
            if fits and self._count < MESSAGES_MAX and sender is self._sender:
                if kind != self._kind or mflags != self._mflags:
                    self._end_run()
                    self._begin_run(kind, mflags)
                self._run += 1
                self._count += 1
                self._body_bytes += size
                return
            self._end_bulk()
        self._sender = sender
        self._count = 1
        self._body_bytes = size
        self._start_at = len(self._chunks)
        self._begin_run(kind, mflags)
        self._run = 1

    def _begin_run(self, kind: i64, mflags: i64) -> None:
        self._kind = kind
        self._mflags = mflags
        self._run = 0
        self._run_at = len(self._chunks)
        self._body_bytes += RUN_BYTES
        self._add(_LATER)

    def _end_run(self) -> None:
        start = run_header(self._kind, self._mflags, self._run)
        if self._run_at == self._start_at:
            self._first_run = start
        else:
            self._chunks[self._run_at] = start

    def _end_bulk(self) -> None:
        """What follows is outside the bulk: write its start, or that of a single message."""
        if self._count == 0:
            return
        sender = self._sender
        if self._count > 1:
            self._end_run()
            start = bulk_header(sender, self._count, self._body_bytes) + self._first_run
        elif self._kind == REPLJOB:
            start = _copy_start(sender, self._mflags, self._body_bytes - RUN_BYTES)
        else:
            start = plain_header(sender, self._kind, self._mflags, SIGNAL_BYTES)
        self._chunks[self._start_at] = start
        self.pending_bytes += HEADER_BYTES
        self._count = 0
        self._sender = _NOBODY


def _copy_start(sender: Sender, mflags: i64, size: i64) -> bytes:
    """What stands before the record in a REPLJOB."""
    return plain_header(sender, REPLJOB, mflags, PREFIX_BYTES + size) + jobs_prefix(1, size)
