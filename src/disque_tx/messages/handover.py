"""Jobs that a leaving node hands over: what it asks other holders, and what they answer (cluster
protocol, section 21.12)."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disque_tx.messages.bus import Message
from disque_tx.messages.bustypes import HANDOVER

#: Jobs that one message can name.
ENTRIES_MAX: Final = 1_000

#: Number of what is asked of a node that was started again; those of evacuations are higher.
RESTARTED: Final = 0

#: Message flags of HANDOVER: it answers one; the sender has dropped its copies; the sender, which
#: answers, is short of memory.
ANSWER: Final = 1
RELEASE: Final = 2
FULL: Final = 4

#: Message flag of YOURJOBS: the sender leaves, and the jobs wait in the receiver's queue. Originals
#: ignore it.
HANDED_OVER: Final = 128

# What is asked about a job.
KEEP: Final = 0  # whether the receiver has a copy
DELAY: Final = 1  # also: it queues the job when the rest of DELAY is over
BACKOFF: Final = 2  # also: it holds the job back for the rest of its backoff

# What is answered.
NOT_HELD: Final = 0
HELD: Final = 1
READY: Final = 2  # held, and in a queue there, in flight, or waiting for its time


@mypyc_attr(acyclic=True)
class HandoverEntry:
    """One job. ``what``: see above. ``left_ms``: the rest of the DELAY or of the backoff."""

    __slots__ = ("job_id", "left_ms", "what")

    def __init__(self, job_id: bytes, what: i64, left_ms: i64 = 0) -> None:
        self.job_id: bytes = job_id
        self.what: i64 = what
        self.left_ms: i64 = left_ms


@mypyc_attr(acyclic=True)
class HandoverMessage(Message):
    """HANDOVER. ``number``: which evacuation of the asking node this belongs to, so that what it
    asked before it was called off counts for nothing; or :data:`RESTARTED`."""

    __slots__ = ("entries", "number")

    def __init__(self, number: i64, entries: list[HandoverEntry], mflags: i64 = 0) -> None:
        super().__init__(HANDOVER)
        self.number: i64 = number
        self.entries: list[HandoverEntry] = entries
        self.mflags = mflags
