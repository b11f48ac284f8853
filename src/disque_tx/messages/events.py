"""What happens to jobs: kinds of events, reasons, and the sink that records them.

Nothing depends on events: a node without a sink works the same. A kind is named in
:data:`KIND_NAMES`; ``docs/reference/events.md`` describes each.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disque_tx.messages.records import JobRecord

# Kinds; numbers are written to disk and never change.
ADDED: Final = 1
REPLICATED: Final = 2
QUEUED: Final = 3
REQUEUED: Final = 4
DELIVERED: Final = 5
WORKING: Final = 6
ACKED: Final = 7
FAST_ACKED: Final = 8
NACKED: Final = 9
EXPIRED: Final = 10
EVICTED: Final = 11
DELETED: Final = 12
IMPORTED: Final = 13
EXPORTED: Final = 14
PAUSED: Final = 15
FLUSHED: Final = 16
DELAYED: Final = 17
DEAD: Final = 18
DROPPED: Final = 19
MOVED: Final = 20
DUPLICATE: Final = 21
DOUBLED: Final = 22
SCHEDULED: Final = 23
COPIED: Final = 24
KIND_NAMES: Final = (
    *("", "added", "replicated", "queued", "requeued", "delivered", "working", "acked"),
    *("fast-acked", "nacked", "expired", "evicted", "deleted", "imported", "exported"),
    *("paused", "flushed", "delayed", "dead", "dropped", "moved", "duplicate", "doubled"),
    *("scheduled", "copied"),
)

# Reasons; as above.
NO_REASON: Final = 0
BY_DELAY: Final = 1
BY_RETRY: Final = 2
BY_NACK: Final = 3
BY_COMMAND: Final = 4
BY_PEER: Final = 5
BY_IMPORT: Final = 6
BY_RESTART: Final = 7
ASYNC: Final = 8
NOT_REPLICATED: Final = 9
NOT_HELD: Final = 10
OVERFLOW: Final = 11
BY_FLUSH: Final = 12
BY_BACKOFF: Final = 13
BY_MOVE: Final = 14
DEAD_LETTER: Final = 15
BY_SCHEDULE: Final = 18
REASON_NAMES: Final = (
    *("", "delay", "retry", "nack", "command", "peer", "import", "restart", "async"),
    *("not-replicated", "not-held", "overflow", "flush", "backoff", "move", "dead-letter"),
    *("", "", "schedule"),
)


@mypyc_attr(allow_interpreted_subclasses=True)
class EventSink:
    """Where a node reports what happened. ``wall_us``: the time of the turn, set by the node."""

    def __init__(self) -> None:
        self.wall_us: i64 = 0

    def added(self, job: JobRecord, ttl_s: i64, reason: i64, client_id: i64, queued: bool) -> None:
        """A client added a job (ADDED), which is in its queue at once (QUEUED), or is not."""
        raise NotImplementedError

    def job(self, kind: i64, job: JobRecord, reason: i64, number: i64, elapsed_ms: i64) -> None:
        """Something else happened to a job.

        ``number``: the client that fetched it, the copies there are (REPLICATED, COPIED), the
        seconds until the next delivery (WORKING), the milliseconds of a backoff (DELAYED), the time
        of the occurrence (SCHEDULED).
        ``elapsed_ms``: since it was queued (DELIVERED) or delivered (WORKING, ACKED, FAST_ACKED,
        NACKED); -1 where that is not known here.
        """
        raise NotImplementedError

    def noted(
        self, kind: i64, job: JobRecord, reason: i64, number: i64, elapsed_ms: i64, text: bytes
    ) -> None:
        """Like :meth:`job`, with a text: the reason that a consumer gave (NACKED, DELAYED, DEAD,
        DROPPED), the ID of the job in its place (MOVED, DUPLICATE, DOUBLED), or the name of its
        schedule (SCHEDULED)."""
        self.job(kind, job, reason, number, elapsed_ms)

    def moved(self, kind: i64, job: JobRecord, node_id: bytes) -> None:
        """A job came from another node, or went there: IMPORTED, EXPORTED."""
        raise NotImplementedError

    def paused(self, queue: bytes, flags: i64) -> None:
        """A queue was paused or released: 1 for in, 2 for out."""
        raise NotImplementedError

    def flushed(self, jobs: i64) -> None:
        """The node forgot all its jobs; ``jobs``: how many."""
        raise NotImplementedError
