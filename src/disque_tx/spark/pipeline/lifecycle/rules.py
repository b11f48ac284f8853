"""What is counted, summed and found out about jobs and queues, for all engines: kinds of events by
column, limits, and texts."""

from __future__ import annotations

from typing import Final

#: Bits of a mask of nodes.
MASK_NODES: Final = 63
NODES_MAX: Final = 4_000
#: How long after the end of its TTL the expiry of a job may still be logged.
GRACE_S: Final = 60
#: By how much clocks of nodes are assumed to differ at most.
CLOCKS_S_MAX: Final = 3600
#: The TTL of a job whose addition was not logged is taken for this.
TTL_S_MAX: Final = 45 * 86_400

ACKED: Final = ("acked", "fast-acked")
#: Column → the kinds of events whose first time it is.
FIRST: Final = {
    "added_at": ("added",),
    "replicated_at": ("replicated",),
    "queued_at": ("queued",),
    "first_delivered_at": ("delivered",),
    "acked_at": ACKED,
    "expired_at": ("expired",),
    "evicted_at": ("evicted",),
    "deleted_at": ("deleted",),
    "dead_at": ("dead", "dropped"),
    "moved_at": ("moved",),
    "duplicate_at": ("duplicate",),
}
#: Column → the kinds of events that it counts, and for which reason.
COUNTED: Final[dict[str, tuple[tuple[str, ...], str | None]]] = {
    "deliveries": (("delivered",), None),
    "acks": (ACKED, None),
    "nacks": (("nacked",), None),
    "requeues": (("requeued",), None),
    "retries": (("requeued",), "retry"),
    "workings": (("working",), None),
    "moves": (("imported",), None),
    "refusals": (("deleted",), "not-replicated"),
    "deletions": (("deleted",), "command"),
}
ADDED_WITH: Final = ("retry_s", "ttl_s", "delay_s", "replicate")

#: Their names in columns: p50 p95 p99 p999.
PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
SPANS: Final = ("wait_ms", "run_ms", "total_ms")
#: Column → the kind of events that it counts.
WINDOW_COUNTED: Final = {
    "added": ("added",),
    "delivered": ("delivered",),
    "acked": ("acked", "fast-acked"),
    "nacked": ("nacked",),
    "requeued": ("requeued",),
    "expired": ("expired",),
    "evicted": ("evicted",),
}
ENDS: Final = ("acked", "dead", "moved", "deleted", "evicted", "expired", "refused", "lost")
DIGITS: Final = 3

REDELIVERED_SHARE: Final = 0.1
REDELIVERED_MIN: Final = 10
DELIVERIES_MIN: Final = 5
CANDIDATE: Final = "dead-letter-candidate"
CANDIDATES_MAX: Final = 100
SKEW_MS: Final = 100
RETRY_FACTOR: Final = 1.5
#: Finding → what to do, with the values that engines put in.
ADVICE: Final = {
    "retry-too-short": (
        "RETRY is %d s, and one run in a hundred takes %d ms or more. Add jobs with RETRY %d."
    ),
    "redelivered": (
        "%d of %d jobs were delivered more than once, after %d NACKs and %d times RETRY. Look "
        "for jobs that fail, or for workers that are too slow."
    ),
    CANDIDATE: (
        "Delivered %d times, given back %d times, never acknowledged. Take it out of the queue."
    ),
    "clock-skew": (
        "The clock of %s is at least %.0f ms behind that of %s. Synchronize both with a time"
        " server."
    ),
}

#: Events of this long may be lost by a ``kill -9`` (docs/reference/events.md).
LOST_US: Final = 1_000_000


def names(span: str) -> list[str]:
    """The columns of the percentiles of a span."""
    stem = span.removesuffix("_ms")
    return [f"{stem}_{name}_ms" for name in PERCENTILES]
