"""``disque-pipeline audit``: what should not have happened to a job.

1. ``lost``: it was accepted, was never delivered, and no event says that it ended; its TTL is over,
   or its delay is and it was never queued.
2. ``retry0-twice``: RETRY 0 means at most once, and it was delivered twice.
3. ``delivered-after-ack``: delivered after it had been acknowledged; on another node, later by more
   than clocks may differ.
4. ``under-replicated``: it was accepted, and no event says that there were as many copies as the
   client asked for.

Checks that rest on the absence of an event (1, 4) give ``unknown`` rather than ``violated`` when
missing events could explain it. A node numbers its events from 0. A number that is missing was
dropped, or lost with the last second before a ``kill -9``, or is in a log that was not ingested.
After the last number before a restart there may have been more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as fn

from disque_tx.spark.pipeline.lifecycle import nodes
from disque_tx.spark.pipeline.lifecycle.jobs import Extent, jobs
from disque_tx.spark.pipeline.lifecycle.rules import ACKED, GRACE_S, LOST_US
from disque_tx.spark.pipeline.lifecycle.verdicts import UNKNOWN, VIOLATED, Audit, Suspect
from disque_tx.spark.pipeline.tables.table import EventTable


def audit(
    spark: SparkSession,
    table: str,
    limit: int = 100,
    skew_ms: int = 1000,
    as_of: int | str | None = None,
) -> Audit:
    """Check all jobs of a table, as it is or as it was.

    ``limit``: jobs that are listed per check and verdict. ``skew_ms``: how far clocks of two nodes
    may differ if events give no bound. ``as_of``: a version of the table, or a time.

    :raises BadTable: when ``table`` is not a table, or has no such version.
    """
    events = EventTable(spark, table, as_of=as_of).events()
    extent = Extent.of(events)
    found = jobs(events, extent).persist()
    kept = suspects(events, found, extent, last_gaps(events), skew_ms).persist()
    try:
        counted = kept.groupBy("check", "verdict").count().collect()
        counts = {(row.check, row.verdict): int(row["count"]) for row in counted}
        named = []
        for check, verdict in sorted(counts):
            same = kept.where((fn.col("check") == check) & (fn.col("verdict") == verdict))
            named += [Suspect(**row.asDict()) for row in same.orderBy("job_id").head(limit)]
        return Audit(found.count(), counts, named)
    finally:
        kept.unpersist()
        found.unpersist()


def suspects(
    events: DataFrame, found: DataFrame, extent: Extent, gap_ends: Mapping[str, int], skew_ms: int
) -> DataFrame:
    """Violations and possible ones: ``check``, ``verdict``, ``job_id``, ``queue``."""
    rules = {
        "lost": (_lost(extent.horizon_us), _any_gap(gap_ends)),
        "retry0-twice": ((fn.col("retry_s") == 0) & (fn.col("deliveries") > 1), fn.lit(False)),
        "under-replicated": (_under_replicated(extent.horizon_us), _own_gap(gap_ends)),
    }
    answers = fn.array(
        *(
            fn.when(
                wrong, fn.struct(fn.lit(check).alias("check"), _verdict(doubt).alias("verdict"))
            )
            for check, (wrong, doubt) in rules.items()
        )
    )
    one_by_one = found.select(
        "job_id", "queue", fn.explode(fn.array_compact(answers)).alias("answer")
    )
    columns = ("check", "verdict", "job_id", "queue")
    late = _delivered_after_ack(events, found, skew_ms).select(
        fn.lit("delivered-after-ack").alias("check"),
        fn.lit(VIOLATED).alias("verdict"),
        "job_id",
        "queue",
    )
    return one_by_one.select("answer.*", "job_id", "queue").select(*columns).unionByName(late)


def _verdict(doubt: Column) -> Column:
    return fn.when(doubt, UNKNOWN).otherwise(VIOLATED)


def _lost(horizon_us: int) -> Column:
    never = (
        (fn.col("deliveries") == 0) & fn.col("ended_at").isNull() & fn.col("began_at").isNotNull()
    )
    delayed_us = fn.unix_micros("began_at") + (fn.col("delay_s") + GRACE_S) * 1_000_000
    unseen = fn.col("queued_at").isNull() & (fn.col("requeues") == 0) & (delayed_us < horizon_us)
    return never & ((fn.col("outcome") == "lost") | unseen)


def _under_replicated(horizon_us: int) -> Column:
    """Asynchronous jobs have a minute; those that end earlier may have had no time for copies."""
    served = fn.coalesce("queued_at", "first_delivered_at").isNotNull()
    due = fn.unix_micros("added_at") + GRACE_S * 1_000_000
    end = fn.coalesce(fn.unix_micros("ended_at"), fn.lit(horizon_us))
    too_late = fn.when(fn.col("asynchronous"), due < end).otherwise(served)
    return fn.coalesce((fn.col("replicate") > fn.col("copies")) & too_late, fn.lit(False))


def _any_gap(gap_ends: Mapping[str, int]) -> Column:
    """Whether events of any node are missing that could have been about the job."""
    return fn.unix_micros("began_at") < fn.lit(max(gap_ends.values(), default=-1))


def _own_gap(gap_ends: Mapping[str, int]) -> Column:
    """Whether events of the node where the job was added are missing from after that time."""
    answer = fn.lit(False)
    for node, until_us in gap_ends.items():
        missed = (fn.col("made_on") == node) & (fn.unix_micros("added_at") < fn.lit(until_us))
        answer = answer | missed
    return answer


def _delivered_after_ack(events: DataFrame, found: DataFrame, skew_ms: int) -> DataFrame:
    """Jobs that were delivered after an acknowledgement. Only those with several deliveries, or
    one that seems to be later, are checked event by event."""
    again = (fn.col("deliveries") > 1) | (fn.col("last_delivered_at") > fn.col("acked_at"))
    candidates = found.where((fn.col("acks") > 0) & again)
    relevant = events.where(fn.col("kind").isin("delivered", *ACKED)).join(
        candidates.select("job_id"), "job_id", "left_semi"
    )
    late, ack = (
        _order(relevant.where("kind = 'delivered'"), "d"),
        _order(relevant.where("kind != 'delivered'"), "a"),
    )
    ahead = nodes.clocks(events, found).select(
        fn.col("from_node").alias("a_node"), fn.col("to_node").alias("d_node"), "ahead_ms_max"
    )
    pairs = late.join(ack, "job_id").join(fn.broadcast(ahead), ["a_node", "d_node"], "left")
    tolerated_us = fn.greatest(fn.col("ahead_ms_max"), fn.lit(skew_ms)) * 1000
    here = fn.col("d_node") == fn.col("a_node")
    after = fn.when(here, fn.col("d_order") > fn.col("a_order")).otherwise(
        fn.col("d_us") - fn.col("a_us") > tolerated_us
    )
    return pairs.where(after).select("job_id").distinct().join(candidates, "job_id")


def _order(events: DataFrame, prefix: str) -> DataFrame:
    """The order of events: on one node by its numbers, which do not depend on clocks."""
    return events.select(
        "job_id",
        fn.col("node").alias(f"{prefix}_node"),
        fn.struct("boot", "seq").alias(f"{prefix}_order"),
        fn.unix_micros("time").alias(f"{prefix}_us"),
    )


#: Numbers that are counted together.
_BLOCK_BITS: Final = 6
_BLOCK: Final = ["node", "boot", "block"]


def last_gaps(events: DataFrame) -> dict[str, int]:
    """Node → until when, in µs since 1970, events of it may be missing; nodes without missing
    events are left out."""
    numbered = events.select("node", "boot", "seq", fn.unix_micros("time").alias("at_us"))
    numbered = numbered.withColumn("block", fn.shiftright("seq", _BLOCK_BITS))
    blocks = numbered.groupBy(*_BLOCK).agg(
        fn.count("*").alias("events"),
        fn.min("seq").alias("first"),
        fn.max("seq").alias("last"),
        fn.min("at_us").alias("begin_us"),
        fn.max("at_us").alias("end_us"),
    )
    ends = (
        _between(blocks)
        .unionByName(_inside(numbered, blocks))
        .unionByName(_before_restarts(blocks))
    )
    rows = ends.groupBy("node").agg(fn.max("until_us").alias("until_us")).collect()
    return {row.node: row.until_us for row in rows if row.until_us is not None}


def _between(blocks: DataFrame) -> DataFrame:
    """The times of the first events after numbers that are missing between blocks, or at the
    start."""
    run = Window.partitionBy("node", "boot").orderBy("block")
    expected = fn.coalesce(fn.lag("last").over(run) + 1, fn.lit(0))
    after = blocks.withColumn("expected", expected).where("first > expected")
    return after.select("node", fn.col("begin_us").alias("until_us"))


def _inside(numbered: DataFrame, blocks: DataFrame) -> DataFrame:
    """Gaps between the events of a block. Only the events of incomplete blocks are sorted."""
    broken = blocks.where("last - first + 1 > events").select(*_BLOCK)
    row = Window.partitionBy(*_BLOCK).orderBy("seq")
    ordered = numbered.join(broken, _BLOCK, "left_semi").withColumn(
        "before", fn.lag("seq").over(row)
    )
    return ordered.where("seq > before + 1").select("node", fn.col("at_us").alias("until_us"))


def _before_restarts(blocks: DataFrame) -> DataFrame:
    """Until when a node that was restarted may have numbered more."""
    end_us = fn.max(fn.struct("last", "end_us")).getField("end_us")
    runs = blocks.groupBy("node", "boot").agg(end_us.alias("end_us"))
    later = fn.lead("boot").over(Window.partitionBy("node").orderBy("boot"))
    ended = runs.withColumn("later", later).where("later IS NOT NULL")
    return ended.select("node", (fn.col("end_us") + LOST_US).alias("until_us"))
