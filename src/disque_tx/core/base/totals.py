"""What became of the jobs of a node, counted: INFO's section Totals.

``queued``, ``delayed``, ``in_flight``, ``in_backoff`` and ``loaded`` are gauges; the others count
since the start, or since the last CONFIG RESETSTAT.
"""

from __future__ import annotations

from mypy_extensions import i64


class Totals:
    """``added``: by clients of this node. ``delivered``: to clients of this node; one job may be
    delivered several times. ``acked``: by clients of this node, with ACKJOB or FASTACK. ``nacked``:
    put back with NACK. ``requeued``: queued again for another reason, nearly always because RETRY
    passed without an acknowledgement. ``expired``: their life ended before they were acknowledged.
    ``evicted``: removed to make room. ``dropped``: given up because too few copies could be made,
    or deleted by command. ``overflowed``: ended because their queue was longer than its policy
    allows. ``flushed``: ended by QFLUSH.

    ``backoffs``: given back with a wait before the next delivery. ``dead_letters``: became a dead
    letter. ``letters_dropped``: ended without one, because their queue has no queue for these.
    ``moved``: by QMOVE. ``copied``: added to another queue, too, by ``copy-to``.
    ``returned``: sent back to the node that gave them, because no client took them.
    ``copies_made``: copies in the place of lost ones; ``copies_failed``: jobs for which no node
    confirmed one.

    ``keys_refused``: ADDJOBs that added nothing, because a job has their key. ``keys_dropped``:
    jobs that ended because an earlier one has their key; ``keys_doubled``: jobs of which that is
    true, but which may have been delivered.

    ``queued``: jobs in queues. ``delayed``: jobs whose DELAY this node waits for. ``in_flight``:
    jobs that a client of this node fetched and that are neither done nor queued here again.
    ``in_backoff``: jobs that wait here for the end of a backoff. ``loaded``: jobs that came from
    the log, and of which nothing else is known yet.
    """

    __slots__ = (
        "acked",
        "added",
        "backoffs",
        "copied",
        "copies_failed",
        "copies_made",
        "dead_letters",
        "delayed",
        "delivered",
        "dropped",
        "evicted",
        "expired",
        "flushed",
        "in_backoff",
        "in_flight",
        "keys_doubled",
        "keys_dropped",
        "keys_refused",
        "letters_dropped",
        "loaded",
        "moved",
        "nacked",
        "overflowed",
        "queued",
        "requeued",
        "returned",
    )

    def __init__(self) -> None:
        self.clear()
        self.reset()

    def clear(self) -> None:
        """Set the gauges to zero: no jobs are left."""
        self.queued: i64 = 0
        self.delayed: i64 = 0
        self.in_flight: i64 = 0
        self.in_backoff: i64 = 0
        self.loaded: i64 = 0

    def reset(self) -> None:
        """Count from zero again; gauges stay."""
        self.added: i64 = 0
        self.delivered: i64 = 0
        self.acked: i64 = 0
        self.nacked: i64 = 0
        self.requeued: i64 = 0
        self.expired: i64 = 0
        self.evicted: i64 = 0
        self.dropped: i64 = 0
        self.overflowed: i64 = 0
        self.flushed: i64 = 0
        self.backoffs: i64 = 0
        self.dead_letters: i64 = 0
        self.letters_dropped: i64 = 0
        self.moved: i64 = 0
        self.copied: i64 = 0
        self.returned: i64 = 0
        self.copies_made: i64 = 0
        self.copies_failed: i64 = 0
        self.keys_refused: i64 = 0
        self.keys_dropped: i64 = 0
        self.keys_doubled: i64 = 0
