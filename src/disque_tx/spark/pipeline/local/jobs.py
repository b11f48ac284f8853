"""One row per job, as :mod:`disque_tx.spark.pipeline.lifecycle.jobs` has it, in DuckDB's SQL.

The view ``events`` is read, several times if what is known of all jobs would not fit into memory:
up to eight times, that takes less time than to put it on disk and merge it there. If the
events of a job name several queues, which those of nodes never do, it counts for the last one in
the alphabet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from disque_tx.spark.errors import ForeignData
from disque_tx.spark.pipeline.lifecycle.rules import (
    ACKED,
    ADDED_WITH,
    CLOCKS_S_MAX,
    COUNTED,
    FIRST,
    GRACE_S,
    MASK_NODES,
    NODES_MAX,
    TTL_S_MAX,
)
from disque_tx.spark.pipeline.local import sql
from disque_tx.spark.pipeline.local.database import Database

#: A job takes some 700 bytes while its events are read, and a database has 1 GiB.
JOBS_AT_ONCE: Final = 1_000_000
_TIMES_READ_MAX: Final = 8
_ACCEPTED: Final = (
    "(coalesce(replicate, 1) <= 1 OR asynchronous > 0"
    " OR coalesce(replicated_at, queued_at, first_delivered_at) IS NOT NULL)"
)
_BEGAN: Final = f"CASE WHEN {_ACCEPTED} THEN coalesce(added_at, queued_at, first_delivered_at) END"
_ENDED: Final = (
    f"CASE WHEN ({_BEGAN}) IS NOT NULL"
    " THEN coalesce(acked_at, evicted_at, expired_at, deleted_at, dead_at, moved_at) END"
)
_FINAL: Final = (
    f"CASE WHEN ttl_s IS NULL THEN last_event_at + {TTL_S_MAX * 1_000_000}"
    " ELSE greatest(added_at + ttl_s * 1000000, last_event_at) END"
    f" + {CLOCKS_S_MAX * 1_000_000}"
)
_TIMES: Final = (*FIRST, "last_delivered_at", "first_event_at", "last_event_at")


@attrs.frozen
class EventExtent:
    """A summary of the view ``events``. ``nodes``: sorted IDs of those with events. ``horizon_us``:
    the time of the latest event, by the clock of its node, since 1970. ``jobs``: about how many
    there are."""

    nodes: tuple[str, ...]
    horizon_us: int
    jobs: int

    @classmethod
    def of(cls, database: Database) -> EventExtent:
        """:raises ForeignData: when there are more than 4,000 nodes."""
        found = database.rows(
            "SELECT node, max(epoch_us(time)), approx_count_distinct(job_id) FROM events"
            " GROUP BY GROUPING SETS ((), (node)) ORDER BY grouping(node) DESC, node"
            f" LIMIT {NODES_MAX + 2}"
        )
        (_, horizon_us, jobs), *rows = found
        if len(rows) > NODES_MAX:
            raise ForeignData(f"The table contains events of more than {NODES_MAX} nodes.")
        return cls(tuple(node for node, _, _ in rows), horizon_us or 0, jobs)


def jobs(extent: EventExtent) -> Iterator[str]:
    """The queries, each for some of the jobs."""
    parts = min(_TIMES_READ_MAX, -(-extent.jobs // JOBS_AT_ONCE))
    yield from (_jobs(extent, parts, part) for part in range(max(1, parts)))


def _jobs(extent: EventExtent, parts: int, part: int) -> str:
    """The query for one part of the jobs."""
    condition = "job_id IS NOT NULL"
    if parts > 1:
        # Events of queues have no job, but NULL has a hash.
        condition += f" AND hash(job_id) % {parts} = {part}"
    return f"""
WITH known AS (SELECT {sql.texts(extent.nodes)}::VARCHAR[] AS names),
places AS (
    SELECT unnest(names) AS node, generate_subscripts(names, 1) - 1 AS place FROM known
),
coded AS (
    SELECT *, epoch_us(time) AS at_us FROM events JOIN places USING (node) WHERE {condition}
),
sums AS (
    SELECT job_id, {sql.listed(_sums(extent.nodes))} FROM coded GROUP BY job_id
)
SELECT job_id, queue, made_on, size, {", ".join(ADDED_WITH)}, asynchronous > 0 AS asynchronous,
    {sql.listed(f"make_timestamptz({time}) AS {time}" for time in _TIMES)},
    make_timestamptz({_FINAL}) AS final_at,
    {", ".join(COUNTED)},
    coalesce(copies, 1) AS copies, wait_ms, run_ms,
    CASE WHEN acks > 0 THEN (acked_at - added_at) // 1000 END AS total_ms,
    make_timestamptz({_ENDED}) AS ended_at,
    make_timestamptz({_BEGAN}) AS began_at,
    [names[place + 1] FOR place IN range(len(names))
        IF (masks[place // {MASK_NODES} + 1] >> (place % {MASK_NODES})) & 1 = 1] AS nodes,
    {_outcome(extent.horizon_us)} AS outcome
FROM sums, known"""


def _sums(nodes: Sequence[str]) -> list[str]:
    """The aggregates per job. Times are µs."""
    sums = [f"min(at_us) FILTER ({sql.kind_is(kinds)}) AS {name}" for name, kinds in FIRST.items()]
    for name, (kinds, reason) in COUNTED.items():
        because = "" if reason is None else f" AND reason = {sql.text(reason)}"
        sums.append(f"count(*) FILTER ({sql.kind_is(kinds)}{because}) AS {name}")
    sums += [f"max({name}) AS {name}" for name in (*ADDED_WITH, "size", "copies")]
    masks = (
        f"coalesce(bit_or(1::BIGINT << (place % {MASK_NODES}))"
        f" FILTER (place BETWEEN {first} AND {first + MASK_NODES - 1}), 0)"
        for first in range(0, len(nodes), MASK_NODES)
    )
    return [
        *sums,
        "max(queue) FILTER (queue <> '') AS queue",
        f"max(at_us) FILTER ({sql.kind_is(['delivered'])}) AS last_delivered_at",
        f"sum(wait_ms) FILTER ({sql.kind_is(['delivered'])}) AS wait_ms",
        f"max(run_ms) FILTER ({sql.kind_is(ACKED)}) AS run_ms",
        f"max(node) FILTER ({sql.kind_is(['added'])}) AS made_on",
        f"count(*) FILTER ({sql.kind_is(['added'])} AND reason = 'async') AS asynchronous",
        *("min(at_us) AS first_event_at", "max(at_us) AS last_event_at"),
        f"[{', '.join(masks)}]::BIGINT[] AS masks",
    ]


def _outcome(horizon_us: int) -> str:
    """What became of a job; the first of these that holds, as for Spark."""
    return f"""CASE
        WHEN acks > 0 THEN 'acked'
        WHEN dead_at IS NOT NULL THEN 'dead'
        WHEN moved_at IS NOT NULL THEN 'moved'
        WHEN duplicate_at IS NOT NULL THEN 'duplicate'
        WHEN refusals > 0 THEN 'refused'
        WHEN deletions > 0 THEN 'deleted'
        WHEN evicted_at IS NOT NULL THEN 'evicted'
        WHEN expired_at IS NOT NULL THEN 'expired'
        WHEN NOT {_ACCEPTED} THEN 'unanswered'
        WHEN added_at IS NULL AND deleted_at IS NOT NULL THEN 'deleted'
        WHEN added_at + (ttl_s + {GRACE_S}) * 1000000 < {horizon_us} THEN 'lost'
        ELSE 'pending' END"""
