"""How long jobs waited and ran: counts by time and latency, and percentiles, by time or by whatever
jobs are grouped by.

Percentiles are those of the table ``totals``: of values with three digits, so that memory suffices
however many jobs there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from disque_tx.spark.pipeline.local import sql
from disque_tx.spark.pipeline.local.queues import rounded
from disque_tx.spark.pipeline.report.axis import BANDS_MAX, BANDS_PER_DECADE, Axis
from disque_tx.spark.pipeline.report.queries import Queries

#: Column of a time in ms → the beginning of the names of its percentiles.
_MEASURES: Final = {"wait_ms": "wait", "run_ms": "run"}
_SHARES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


@attrs.frozen
class Course:
    """``waits``, ``runs``: percentile → ms at each step of the axis; none where no job was."""

    axis: Axis
    waits: dict[str, list[int | None]]
    runs: dict[str, list[int | None]]


def latencies(ask: Queries, axis: Axis, time: str, latency_ms: str) -> dict[tuple[int, int], int]:
    """Step and band → jobs. Band 0 is everything below 2.15 ms, the cube root of ten."""
    band = f"floor(log10(greatest({latency_ms}, 1)) * {BANDS_PER_DECADE} + 1e-9)"
    rows = ask.rows(
        latency_ms.replace("_", "-"),
        f"Jobs by step of time and by {latency_ms}, in bands of which {BANDS_PER_DECADE} are a"
        " power of ten",
        f"""
SELECT {axis.of(time)} AS step,
    CAST(least({band}, {BANDS_MAX - 1}) AS INTEGER) AS band,
    count(*) AS jobs
FROM jobs WHERE {time} IS NOT NULL AND {latency_ms} IS NOT NULL GROUP BY step, band
ORDER BY step, band""",
    )
    return {(row["step"], row["band"]): row["jobs"] for row in rows}


def course(ask: Queries, axis: Axis) -> Course:
    """How percentiles change over the period of an axis, by hours as a rule."""
    hours = axis.by_hours()
    waits = _course(ask, hours, "first_delivered_at", "wait_ms")
    return Course(hours, waits, _course(ask, hours, "acked_at", "run_ms"))


def _course(ask: Queries, axis: Axis, time: str, measure: str) -> dict[str, list[int | None]]:
    source = f"(SELECT {axis.of(time)} AS step, {measure}\n    FROM jobs WHERE {time} IS NOT NULL)"
    rows = ask.rows(
        f"{_MEASURES[measure]}-course",
        f"Percentiles of {measure} per step of time",
        f"{percentiles(source, 'step', _SHARES, measure)}\nORDER BY step",
    )
    found = {row["step"]: row for row in rows}
    return {
        name: [
            found[step][f"{_MEASURES[measure]}_{name}_ms"] if step in found else None
            for step in range(axis.steps)
        ]
        for name in _SHARES
    }


def percentiles(source: str, group: str, shares: Mapping[str, float], *measures: str) -> str:
    """A query for percentiles of times in a source, by a column of it.

    ``shares``: name → share. ``measures``: columns, ``wait_ms`` or ``run_ms``. A column of the
    query is ``wait_p50_ms``.
    """
    values = "\n    UNION ALL ".join(
        f"SELECT {group}, {sql.text(measure)} AS measure, {rounded(measure)} AS value,"
        f" count(*) AS n\n    FROM {source} WHERE {measure} IS NOT NULL GROUP BY ALL"
        for measure in measures
    )
    least = sql.listed(
        f"CAST(min(value) FILTER (measure = {sql.text(measure)} AND rank >= ceil(every * {share}))"
        f" AS BIGINT) AS {_MEASURES[measure]}_{name}_ms"
        for measure in measures
        for name, share in shares.items()
    )
    return f"""
SELECT {group},
    {least}
FROM (
    SELECT *, sum(n) OVER (same ORDER BY value) AS rank, sum(n) OVER same AS every
    FROM (
    {values}
    ) WINDOW same AS (PARTITION BY {group}, measure)
) GROUP BY {group}"""
