"""What is shown of queues at one node, without walking over their jobs."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.counting.counts import QueueCounter
from disque_tx.core.queues.queues import PAUSE_NAMES, Queue, Queues

_PAUSES: Final = [name.decode() for name in PAUSE_NAMES]
#: A row of figures: see :func:`queue_figures`.
Figures = tuple[bytes, int, float, int, int, int, int, int, int, str, int, int, int, int]


def scan_figures(
    queues: Queues, counts: QueueCounter, cursor: i64, least: i64, now_ms: i64
) -> tuple[int, list[Figures]]:
    """The figures of at least ``least`` queues from this cursor on, and the next cursor."""
    rows: list[Figures] = []
    while True:
        cursor, found = queues.table.scan(cursor)
        for queue in found:
            rows.append(queue_figures(queue, counts, now_ms))
        if cursor == 0 or len(rows) >= least:
            return int(cursor), rows


def queue_figures(queue: Queue, counts: QueueCounter, now_ms: i64) -> Figures:
    """In the order of ``QueueFigures``, whose members they are: name, jobs in it, seconds that the
    first one has waited, seconds since it exists and since it was used, clients that wait, jobs
    queued and fetched, jobs per second from other nodes, pause; its jobs that are delayed, in
    backoff, in flight, and loaded from the log."""
    delayed, backoff, in_flight, loaded = counts.elsewhere(queue.name)
    first = queue.jobs.first()
    return (
        queue.name,
        queue.jobs.size,
        0.0 if first is None else max(0, now_ms - first.moved_ms) / 1000,
        int((now_ms - queue.created_ms) // 1000),
        int((now_ms - queue.used_ms) // 1000),
        queue.blocked(),
        int(queue.jobs_in),
        int(queue.jobs_out),
        int(queue.import_rate(now_ms)),
        _PAUSES[queue.paused],
        int(delayed),
        int(backoff),
        int(in_flight),
        int(loaded),
    )
