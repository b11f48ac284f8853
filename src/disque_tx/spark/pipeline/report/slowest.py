"""The jobs that waited and ran longest, and the queues whose jobs run longest."""

from __future__ import annotations

import attrs

from disque_tx.spark.pipeline.report.queries import Queries, Row


@attrs.frozen
class Slowest:
    """``ran``, ``waited``: jobs. ``queues``: by the 99th percentile of running."""

    ran: list[Row]
    waited: list[Row]
    queues: list[Row]


def slowest(ask: Queries, top: int) -> Slowest:
    """The slowest, ``top`` of each."""
    return Slowest(
        _jobs(ask, "ran-longest", "The jobs that ran longest", "run_ms", top),
        _jobs(ask, "waited-longest", "The jobs that waited longest", "wait_ms", top),
        ask.rows(
            "slow-queues",
            "The queues in which jobs run longest",
            f"""
SELECT queue, jobs, run_p50_ms, run_p99_ms FROM totals WHERE run_p99_ms IS NOT NULL
ORDER BY run_p99_ms DESC, queue LIMIT {top}""",
        ),
    )


def _jobs(ask: Queries, name: str, title: str, measure: str, top: int) -> list[Row]:
    return ask.rows(
        name,
        title,
        f"""
SELECT job_id, queue, epoch_us(coalesce(added_at, began_at, first_event_at)) AS at_us,
    {measure} AS took_ms, deliveries
FROM jobs WHERE {measure} IS NOT NULL
ORDER BY {measure} DESC, job_id LIMIT {top}""",
    )
