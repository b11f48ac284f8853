"""Figures of queues, over time and over all of their jobs, as
:mod:`disque_tx.spark.pipeline.lifecycle.queues` and :mod:`~disque_tx.spark.pipeline.lifecycle
.totals` have them, in DuckDB's SQL. Percentiles are exact.

The views ``events`` and ``jobs`` are read, and for totals ``distributions``.
"""

from __future__ import annotations

from typing import Final

from disque_tx.spark.pipeline.lifecycle.rules import (
    ACKED,
    DIGITS,
    ENDS,
    PERCENTILES,
    SPANS,
    WINDOW_COUNTED,
    names,
)
from disque_tx.spark.pipeline.local import sql
from disque_tx.spark.pipeline.local.columns import COUNTS, RATES, SUMS

_SHARES: Final = f"[{', '.join(map(str, PERCENTILES.values()))}]::DOUBLE[]"


def queues(window_s: int) -> str:
    """A row per queue and window in which something happened there."""
    counts = (
        f"count(*) FILTER ({sql.kind_is(kinds)}) AS {name}"
        for name, kinds in WINDOW_COUNTED.items()
    )
    rates = (f"coalesce({name}, 0) / {window_s}::DOUBLE AS {name}_per_s" for name in RATES)
    return f"""
WITH seen AS (
    SELECT queue, {_window_us("time", window_s)} AS window_us, {sql.listed(counts)},
        count(*) FILTER (kind = 'delivered' AND nacks + additional_deliveries > 0) AS redelivered,
        {_percentiles("wait_ms")},
        {_percentiles("run_ms", f"FILTER ({sql.kind_is(ACKED)})")}
    FROM events WHERE job_id IS NOT NULL AND queue <> '' GROUP BY ALL
),
moments AS (
    SELECT queue, began_at AS moment, 1 AS begun, 0 AS ended, NULL::BIGINT AS total_ms FROM jobs
    UNION ALL
    SELECT queue, ended_at, 0, 1, total_ms FROM jobs
),
changed AS (
    SELECT queue, {_window_us("moment", window_s)} AS window_us,
        sum(begun) AS begun, sum(ended) AS ended, {_percentiles("total_ms")}
    FROM moments WHERE queue IS NOT NULL AND moment IS NOT NULL GROUP BY ALL
)
SELECT queue, make_timestamptz(window_us) AS "window",
    {sql.listed(f"coalesce({name}, 0) AS {name}" for name in COUNTS)},
    {sql.listed(rates)},
    {sql.listed(_unpacked())},
    sum(coalesce(begun, 0) - coalesce(ended, 0))
        OVER (PARTITION BY queue ORDER BY window_us ROWS UNBOUNDED PRECEDING) AS backlog
FROM seen FULL JOIN changed USING (queue, window_us)"""


def _window_us(time: str, window_s: int) -> str:
    """The begin of the window of a time."""
    return sql.begin_us(time, window_s * 1_000_000)


def _percentiles(span: str, condition: str = "") -> str:
    return f"quantile_disc({span}, {_SHARES}) {condition} AS {span}"


def _unpacked() -> list[str]:
    """Percentiles as columns of their own."""
    return [
        f"{span}[{at}] AS {name}" for span in SPANS for at, name in enumerate(names(span), start=1)
    ]


def distributions() -> str:
    """How many jobs of a queue have a value."""
    measures = [f"SELECT queue, '{span}' AS measure, {rounded(span)} AS value" for span in SPANS]
    measures.append("SELECT queue, 'retry_s', CASE WHEN retry_s > 0 THEN retry_s END")
    values = " FROM jobs UNION ALL ".join(measures)
    return f"""
SELECT queue, measure, CAST(value AS BIGINT) AS value, count(*) AS jobs
FROM ({values} FROM jobs) WHERE queue IS NOT NULL AND value IS NOT NULL GROUP BY ALL"""


def rounded(value: str) -> str:
    """A value of which three digits are kept, so that there are few different ones."""
    unit = f"pow(10, greatest(len(abs({value})::VARCHAR) - {DIGITS}, 0))"
    return f"round({value} / {unit}) * {unit}"


def totals() -> str:
    """A row per queue."""
    sums = {
        "jobs": "count(*)",
        "backlog": "count(*) FILTER (began_at IS NOT NULL AND ended_at IS NULL)",
        **{name: f"count(*) FILTER (outcome = '{name}')" for name in (*ENDS, "pending")},
        **{name: f"sum({name})" for name in ("deliveries", "nacks", "retries", "moves")},
        "redelivered_jobs": "count(*) FILTER (deliveries > 1)",
        "bytes": "sum(size)",
    }
    summed = (f"coalesce({sums[name]}, 0) AS {name}" for name in SUMS)
    least = [_least("retry_s", 0, "retry_s_min")]
    least += [
        _least(span, share, name)
        for span in SPANS
        for name, share in zip(names(span), PERCENTILES.values(), strict=True)
    ]
    return f"""
WITH ranked AS (
    SELECT *, sum(jobs) OVER (same ORDER BY value) AS rank, sum(jobs) OVER same AS every
    FROM distributions WINDOW same AS (PARTITION BY queue, measure)
),
found AS (SELECT queue, {sql.listed(least)} FROM ranked GROUP BY queue),
summed AS (
    SELECT queue, {sql.listed(summed)} FROM jobs WHERE queue IS NOT NULL GROUP BY queue
)
SELECT * FROM summed LEFT JOIN found USING (queue)"""


def _least(measure: str, share: float, name: str) -> str:
    reached = f"measure = '{measure}' AND rank >= ceil(every * {share}::DOUBLE)"
    return f"min(value) FILTER ({reached}) AS {name}"
