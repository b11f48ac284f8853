"""The numbers of events as runs without gaps, counted by DuckDB."""

from __future__ import annotations

from typing import Final

from disque_tx.spark.pipeline.local.database import Database
from disque_tx.spark.pipeline.tables.events import EventTableLog
from disque_tx.spark.pipeline.tables.runs import Run, Runs

#: The low bits of a number, its position in a block of 64.
_BLOCK_BITS: Final = 6
_BLOCK_MASK: Final = 63
_VIEW: Final = "counted"


def counted_runs(rows: Database, view: str, limit: int | None = None) -> list[Run]:
    """The numbers of the events of a view. ``limit``: of how many runs at most."""
    most = "" if limit is None else f" LIMIT {limit}"
    return [Run(*row) for row in rows.rows(_counted(view) + most)]


def all_runs(rows: Database, table: EventTableLog) -> Runs:
    """The numbers of all events of a table that has no notes of them."""
    rows.view(_VIEW, table.log.schema, table.root, table.log.files())
    return Runs(counted_runs(rows, _VIEW))


def _counted(view: str) -> str:
    """The runs of events: ``node``, ``boot``, and the first and last number of each. Numbers are
    counted as bits, 64 to a row; only blocks with gaps are taken apart."""
    return f"""
WITH numbered AS (SELECT node, boot, seq, seq >> {_BLOCK_BITS} AS block FROM {view}),
blocks AS (
    SELECT node, boot, block, min(seq) AS first, max(seq) AS last,
        bit_or(1::HUGEINT << (seq & {_BLOCK_MASK})::INTEGER) AS bits
    FROM numbered GROUP BY ALL
),
pieces AS (
    SELECT node, boot, first, last FROM blocks WHERE bit_count(bits) = last - first + 1
    UNION ALL
    SELECT DISTINCT node, boot, seq, seq
    FROM numbered SEMI JOIN (FROM blocks WHERE bit_count(bits) < last - first + 1)
        USING (node, boot, block)
),
marked AS (
    SELECT *, first IS DISTINCT FROM
        lag(last) OVER (PARTITION BY node, boot ORDER BY first) + 1 AS begins
    FROM pieces
),
numbered_runs AS (
    SELECT *, sum(begins::INTEGER) OVER (PARTITION BY node, boot ORDER BY first) AS run FROM marked
)
SELECT node, boot, min(first), max(last) FROM numbered_runs GROUP BY node, boot, run"""
