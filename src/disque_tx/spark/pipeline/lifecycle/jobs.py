"""One row per job, from the events of all nodes.

Only sums, minima and maxima of numbers are computed over the events of a job, so that Spark can
aggregate without sorting, first where events are read and then per job. Until then text is
represented by numbers: the queue by its hash, nodes by bits of a mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from disque_tx.spark.errors import ForeignData
from disque_tx.spark.pipeline.lifecycle.nodes import is_elsewhere
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

#: Up to this many names are broadcast to every task; with more, jobs are shuffled.
_BROADCAST_QUEUES_MAX: Final = 200_000


@attrs.frozen
class Extent:
    """A summary of a table. ``nodes``: sorted IDs of those with events. ``horizon_us``: the time of
    the latest event, by the clock of its node, since 1970. ``queues``: approximate number.
    ``elsewhere``: how many events :func:`is_elsewhere` holds for."""

    nodes: tuple[str, ...]
    horizon_us: int
    queues: int
    elsewhere: int

    @classmethod
    def of(cls, events: DataFrame) -> Extent:
        """:raises ForeignData: when there are more than 4,000 nodes."""
        per_node = events.groupBy("node").agg(
            fn.max(fn.unix_micros("time")).alias("last_us"),
            fn.approx_count_distinct("queue").alias("queues"),
            fn.count_if(is_elsewhere()).alias("elsewhere"),
        )
        rows = per_node.limit(NODES_MAX + 1).collect()
        if len(rows) > NODES_MAX:
            raise ForeignData(f"The table contains events of more than {NODES_MAX} nodes.")
        return cls(
            tuple(sorted(row.node for row in rows)),
            max((row.last_us for row in rows), default=0),
            sum(row.queues for row in rows),
            sum(row.elsewhere for row in rows),
        )


def jobs(events: DataFrame, extent: Extent) -> DataFrame:
    """One row per job, see docs/reference/pipeline.md."""
    named = events.where(fn.col("job_id").isNotNull())
    coded = named.withColumns(
        {
            "queue_key": fn.xxhash64("queue"),
            "at": fn.unix_micros("time"),
            "node_at": _at(extent.nodes),
        }
    )
    summed = coded.groupBy("job_id").agg(*_sums(len(extent.nodes)))
    names = _queues(events)
    if extent.queues <= _BROADCAST_QUEUES_MAX:
        names = fn.broadcast(names)
    return _described(summed.join(names, "queue_key", "left"), extent)


def _at(nodes: Sequence[str]) -> Column:
    """The position of a node in ``nodes``."""
    return (
        fn.array_position(fn.array(*map(fn.lit, nodes)).cast("array<string>"), fn.col("node")) - 1
    )


def _queues(events: DataFrame) -> DataFrame:
    """Names of queues by their hash. If two have the same hash, one name is used for both."""
    names = events.where("queue != ''").select("queue").distinct()
    keyed = names.withColumn("queue_key", fn.xxhash64("queue"))
    same = Window.partitionBy("queue_key").orderBy("queue")
    return keyed.withColumn("place", fn.row_number().over(same)).where("place = 1").drop("place")


def _is(kinds: Sequence[str], reason: str | None = None) -> Column:
    is_kind = fn.col("kind").isin(*kinds)
    return is_kind if reason is None else is_kind & fn.col("reason").eqNullSafe(reason)


def _sums(nodes: int) -> list[Column]:
    """The aggregates per job. Times are µs."""
    sums = [fn.min(fn.when(_is(kinds), fn.col("at"))).alias(name) for name, kinds in FIRST.items()]
    sums += [fn.count_if(_is(*what)).alias(name) for name, what in COUNTED.items()]
    sums += [fn.max(name).alias(name) for name in (*ADDED_WITH, "size", "copies")]
    sums += [
        fn.max(fn.when(fn.col("queue") != "", fn.col("queue_key"))).alias("queue_key"),
        fn.max(fn.when(_is(["delivered"]), fn.col("at"))).alias("last_delivered_at"),
        fn.sum(fn.when(_is(["delivered"]), fn.col("wait_ms"))).alias("wait_ms"),
        fn.max(fn.when(_is(ACKED), fn.col("run_ms"))).alias("run_ms"),
        fn.max(fn.when(_is(["added"]), fn.col("node_at"))).alias("maker"),
        fn.count_if(_is(["added"], "async")).alias("asynchronous"),
        *(fn.min("at").alias("first_at"), fn.max("at").alias("last_at")),
    ]
    return sums + [_mask(at) for at in range(0, nodes, MASK_NODES)]


def _mask(first: int) -> Column:
    """Which of 63 nodes have events about a job."""
    bit = fn.expr(f"shiftleft(1L, CAST(node_at - {first} AS INT))")
    here = fn.col("node_at").between(first, first + MASK_NODES - 1)
    return fn.bit_or(fn.when(here, bit)).alias(f"mask_{first}")


def _described(sums: DataFrame, extent: Extent) -> DataFrame:
    """The columns of the table, from the aggregates."""
    names = fn.array(*map(fn.lit, extent.nodes)).cast("array<string>")
    times = [fn.timestamp_micros(name).alias(name) for name in (*FIRST, "last_delivered_at")]
    return sums.select(
        *("job_id", "queue", fn.get(names, fn.col("maker")).alias("made_on"), "size", *ADDED_WITH),
        (fn.col("asynchronous") > 0).alias("asynchronous"),
        *(*times, fn.timestamp_micros("first_at").alias("first_event_at")),
        fn.timestamp_micros("last_at").alias("last_event_at"),
        fn.timestamp_micros(_final_us()).alias("final_at"),
        *COUNTED,
        fn.coalesce("copies", fn.lit(1)).alias("copies"),
        *("wait_ms", "run_ms"),
        fn.expr("CASE WHEN acks > 0 THEN (acked_at - added_at) DIV 1000 END").alias("total_ms"),
        fn.timestamp_micros(_ended_us()).alias("ended_at"),
        fn.timestamp_micros(_began_us()).alias("began_at"),
        _visited(extent.nodes).alias("nodes"),
        _outcome(extent.horizon_us).alias("outcome"),
    )


def _accepted() -> Column:
    """Whether the client got, or could have got, the reply that the job was accepted."""
    return (
        (fn.coalesce("replicate", fn.lit(1)) <= 1)
        | (fn.col("asynchronous") > 0)
        | fn.coalesce("replicated_at", "queued_at", "first_delivered_at").isNotNull()
    )


def _began_us() -> Column:
    """When it enters the backlog."""
    return fn.when(_accepted(), fn.coalesce("added_at", "queued_at", "first_delivered_at"))


def _ended_us() -> Column:
    """When it leaves the backlog, if it ever entered it."""
    ends = ("acked_at", "evicted_at", "expired_at", "deleted_at", "dead_at", "moved_at")
    return fn.when(_began_us().isNotNull(), fn.coalesce(*ends))


def _final_us() -> Column:
    """After which time no event about it is expected: the end of its TTL, and an hour for clocks
    that differ."""
    ended = fn.greatest(fn.col("added_at") + fn.col("ttl_s") * 1_000_000, "last_at")
    unknown = fn.col("last_at") + TTL_S_MAX * 1_000_000
    return fn.when(fn.col("ttl_s").isNull(), unknown).otherwise(ended) + CLOCKS_S_MAX * 1_000_000


def overdue_us() -> Column:
    """When a job counts as lost if no end of it was logged, in µs since 1970."""
    return fn.unix_micros("added_at") + (fn.col("ttl_s") + GRACE_S) * 1_000_000


def _visited(nodes: Sequence[str]) -> Column:
    seen = [
        fn.when(
            fn.getbit(fn.col(f"mask_{at - at % MASK_NODES}"), fn.lit(at % MASK_NODES)) == 1, name
        )
        for at, name in enumerate(nodes)
    ]
    return fn.array_compact(fn.array(*seen).cast("array<string>"))


def _outcome(horizon_us: int) -> Column:
    """What became of a job; the first of these that holds. Cases:

    1. It was acknowledged, replaced by a dead letter or dropped, moved, a duplicate of an earlier
       job with its key, refused, deleted, evicted, or it expired.
    2. It was never accepted: neither with one copy, nor asynchronously, nor replicated, nor queued.
    3. Its TTL has been over for more than a minute, and no end was logged: lost, as far as is
       known.
    4. Otherwise a node still has it.
    """
    overdue_s = fn.col("ttl_s") + GRACE_S
    ended_us = fn.col("added_at") + overdue_s * 1_000_000
    return (
        fn.when(fn.col("acks") > 0, "acked")
        .when(fn.col("dead_at").isNotNull(), "dead")
        .when(fn.col("moved_at").isNotNull(), "moved")
        .when(fn.col("duplicate_at").isNotNull(), "duplicate")
        .when(fn.col("refusals") > 0, "refused")
        .when(fn.col("deletions") > 0, "deleted")
        .when(fn.col("evicted_at").isNotNull(), "evicted")
        .when(fn.col("expired_at").isNotNull(), "expired")
        .when(~_accepted(), "unanswered")
        .when(fn.col("added_at").isNull() & fn.col("deleted_at").isNotNull(), "deleted")
        .when(ended_us < fn.lit(horizon_us), "lost")
        .otherwise("pending")
    )
