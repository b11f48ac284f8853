"""Pairs of nodes, and what somebody should look at, as
:mod:`disque_tx.spark.pipeline.lifecycle.nodes` and :mod:`~disque_tx.spark.pipeline.lifecycle
.findings` have them, in DuckDB's SQL.

The views ``events`` and ``jobs`` are read, and for findings ``totals`` and ``clocks``.
"""

from __future__ import annotations

from typing import Final

from disque_tx.spark.pipeline.lifecycle.rules import (
    ADVICE,
    CANDIDATE,
    CANDIDATES_MAX,
    DELIVERIES_MIN,
    REDELIVERED_MIN,
    REDELIVERED_SHARE,
    RETRY_FACTOR,
    SKEW_MS,
)
from disque_tx.spark.pipeline.local import sql

#: A RETRY to use.
_WANTED_S: Final = f"ceil(run_p999_ms * {RETRY_FACTOR}::DOUBLE / 1000)::BIGINT"
_STEPS: Final = ("exported", "imported", "delivered")


def flow() -> str:
    """How many jobs the first of two nodes logged as exported, and the second as imported."""
    return """
SELECT
    CASE kind WHEN 'exported' THEN node ELSE peer END AS from_node,
    CASE kind WHEN 'exported' THEN peer ELSE node END AS to_node,
    queue,
    count(*) FILTER (kind = 'exported') AS exported,
    count(*) FILTER (kind = 'imported') AS imported
FROM events WHERE kind IN ('exported', 'imported') AND peer IS NOT NULL GROUP BY ALL"""


def clocks() -> str:
    """By how many ms the clock of ``to_node`` is ahead, at least and at most."""
    first = sql.listed(f"min(at_us) FILTER (kind = '{step}') AS {step}_us" for step in _STEPS)
    return f"""
WITH steps AS (
    SELECT job_id, kind, epoch_us(time) AS at_us,
        CASE kind WHEN 'exported' THEN node WHEN 'imported' THEN peer END AS from_node,
        CASE kind WHEN 'exported' THEN peer ELSE node END AS to_node
    FROM events
    WHERE (kind IN ('exported', 'imported') AND peer IS NOT NULL)
        OR (kind = 'delivered' AND substring(job_id, 3, 8) <> substring(node, 1, 8))
),
ways AS (
    SELECT job_id, from_node, to_node,
        count(*) FILTER (kind = 'exported') AS exports,
        count(*) FILTER (kind = 'imported') AS imports, {first}
    FROM steps GROUP BY job_id, from_node, to_node
),
differences AS (
    SELECT from_node, to_node, (imported_us - exported_us) / 1000::DOUBLE AS step_ms
    FROM ways WHERE exports = 1 AND imports = 1
    UNION ALL
    SELECT made_on, to_node, (delivered_us - epoch_us(added_at)) / 1000::DOUBLE
    FROM ways JOIN jobs USING (job_id)
    WHERE delivered_us IS NOT NULL AND len(nodes) > 1 AND added_at IS NOT NULL
        AND made_on <> to_node
),
bounds AS (
    SELECT from_node, to_node, min(step_ms) AS ahead_ms_max FROM differences GROUP BY ALL
),
back AS (
    SELECT to_node AS from_node, from_node AS to_node, -ahead_ms_max AS ahead_ms_min FROM bounds
)
SELECT from_node, to_node, ahead_ms_min, ahead_ms_max
FROM bounds FULL JOIN back USING (from_node, to_node)"""


def findings() -> str:
    """All findings."""
    return f"""
SELECT {_finding("retry-too-short")}, queue, NULL AS job_id, NULL AS node, NULL AS peer,
    run_p99_ms AS measured, retry_s_min * 1000 AS bound,
    {_advice("retry-too-short", "retry_s_min", "run_p99_ms", _WANTED_S)}
FROM totals WHERE retry_s_min * 1000 < run_p99_ms
UNION ALL BY NAME
SELECT {_finding("redelivered")}, queue,
    redelivered_jobs / jobs::DOUBLE AS measured, {REDELIVERED_SHARE} AS bound,
    {_advice("redelivered", "redelivered_jobs", "jobs", "nacks", "retries")}
FROM totals
WHERE redelivered_jobs >= {REDELIVERED_MIN}
    AND redelivered_jobs > jobs * {REDELIVERED_SHARE}::DOUBLE
UNION ALL BY NAME
(SELECT {_finding(CANDIDATE)}, queue, job_id,
    greatest(deliveries, nacks) AS measured, {DELIVERIES_MIN} AS bound,
    {_advice(CANDIDATE, "deliveries", "nacks")}
FROM jobs WHERE greatest(deliveries, nacks) >= {DELIVERIES_MIN} AND acks = 0
ORDER BY measured DESC, job_id LIMIT {CANDIDATES_MAX})
UNION ALL BY NAME
SELECT {_finding("clock-skew")}, from_node AS node, to_node AS peer,
    -ahead_ms_max AS measured, {SKEW_MS} AS bound,
    {_advice("clock-skew", "to_node", "round(-ahead_ms_max)::BIGINT", "from_node")}
FROM clocks WHERE ahead_ms_max < -{SKEW_MS}"""


def _finding(finding: str) -> str:
    return f"{sql.text(finding)} AS finding"


def _advice(finding: str, *values: str) -> str:
    # A number is rounded here, as Java and C do it in different ways.
    form = sql.text(ADVICE[finding].replace("%.0f", "%d"))
    return f"printf({form}, {', '.join(values)}) AS advice"
