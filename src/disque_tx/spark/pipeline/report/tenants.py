"""Figures by tenant: whoever has the queues whose names match some patterns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from disque_tx.spark.errors import PipelineError
from disque_tx.spark.pipeline.local import sql
from disque_tx.spark.pipeline.report.latencies import percentiles
from disque_tx.spark.pipeline.report.queries import Queries, Row

_SHARES: Final = {"p50": 0.5, "p99": 0.99}
_COUNTS: Final = ("jobs", "acked", "expired", "redelivered")


class BadTenant(PipelineError):
    """A text does not name the queues of a tenant."""


def tenant(text: str) -> tuple[str, str]:
    """The name of a tenant, and a pattern for its queues, from ``NAME=PATTERN``.

    :raises BadTenant: when it is something else.
    """
    name, _, pattern = text.partition("=")
    if not name or not pattern:
        raise BadTenant(
            f"{text!r} does not name a tenant: NAME=PATTERN is expected, such as 'acme=acme-*'."
        )
    return name, pattern


def by_tenant(ask: Queries, tenants: Iterable[tuple[str, str]]) -> list[Row]:
    """A row for each tenant, in their order, and one for the queues of none, whose ``tenant`` is
    none. A queue belongs to the first pattern that it matches. Without tenants no rows."""
    pairs = list(tenants)
    if not pairs:
        return []
    rows = {row["tenant"]: row for row in ask.rows("tenants", "Jobs by tenant", _query(pairs))}
    names = [*dict.fromkeys(name for name, _ in pairs), None]
    return [rows.get(name) or _nothing(name) for name in names]


def _nothing(name: str | None) -> Row:
    times = [f"{kind}_{share}_ms" for kind in ("wait", "run") for share in _SHARES]
    row: Mapping[str, object] = {
        "tenant": name,
        **dict.fromkeys(_COUNTS, 0),
        **dict.fromkeys(times),
    }
    return row


def _query(pairs: Iterable[tuple[str, str]]) -> str:
    cases = "\n            ".join(
        f"WHEN {sql.is_like('queue', pattern)} THEN {sql.text(name)}" for name, pattern in pairs
    )
    times = percentiles("owned", "tenant", _SHARES, "wait_ms", "run_ms")
    return f"""
WITH owned AS (
    SELECT *,
        CASE
            {cases}
        END AS tenant
    FROM jobs
),
counts AS (
    SELECT tenant, count(*) AS jobs, count(*) FILTER (outcome = 'acked') AS acked,
        count(*) FILTER (outcome = 'expired') AS expired,
        count(*) FILTER (deliveries > 1) AS redelivered
    FROM owned GROUP BY tenant
),
times AS ({times}
)
SELECT counts.*, times.* EXCLUDE (tenant)
FROM counts LEFT JOIN times ON counts.tenant IS NOT DISTINCT FROM times.tenant
ORDER BY jobs DESC, counts.tenant"""
