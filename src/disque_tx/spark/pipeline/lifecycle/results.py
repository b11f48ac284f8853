"""``disque-pipeline lifecycle``: the tables that it writes, and the findings among them.

Findings are what somebody should look at, with advice:

1. ``retry-too-short``: one run in a hundred takes longer than the queue's RETRY, so that a job is
   delivered again while a worker is still busy with it. The advice is 1.5 times the 99.9th
   percentile.
2. ``redelivered``: more than one job in ten of the queue is delivered more than once.
3. ``dead-letter-candidate``: a job that was delivered or given back five times and is not
   acknowledged; the 100 worst.
4. ``clock-skew``: the clocks of two nodes certainly differ by more than 100 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from disque_tx.spark.paths import check_apart, resolved
from disque_tx.spark.pipeline.lifecycle import nodes, queues
from disque_tx.spark.pipeline.lifecycle.jobs import Extent, jobs
from disque_tx.spark.pipeline.outputs import Output
from disque_tx.spark.pipeline.tables.table import EventTable

#: Tables below OUT, in the order in which they are made.
RESULTS: Final = ("jobs", "queues", "totals", "flow", "clocks", "findings")


def lifecycle(
    spark: SparkSession,
    table: str,
    into: str,
    window_s: int = 60,
    overwrite: bool = False,
    as_of: int | str | None = None,
) -> dict[str, str]:
    """Make the Delta tables :data:`RESULTS` below ``into``; returns their paths.

    Each gets its new rows by one commit, after all of them have been computed. ``as_of``: the
    version or time of the table of events that they are made from.

    :raises BadTable: when ``table`` is not a table, or has no such version. :raises OutputExists:
    when ``into`` exists and is not to be replaced, or holds something else. :raises OutputOverlaps:
    when ``into`` is the table, in it, or around it.
    """
    events, target = EventTable(spark, table, as_of=as_of), resolved(into)
    check_apart(target, [events.root])
    outputs = {
        part: Output(spark, f"{target}/{part}", f"lifecycle: {part}", overwrite) for part in RESULTS
    }
    _write(spark, events.events(), outputs, window_s)
    for output in outputs.values():
        output.publish()
    return {part: output.root for part, output in outputs.items()}


def _write(
    spark: SparkSession, events: DataFrame, outputs: Mapping[str, Output], window_s: int
) -> None:
    """Make each table from those before it, which are read from the disk again."""

    def read(part: str) -> DataFrame:
        return outputs[part].written()

    extent = Extent.of(events)
    made: dict[str, Callable[[], DataFrame]] = {
        "jobs": lambda: jobs(events, extent),
        "queues": lambda: queues.windows(events, read("jobs"), window_s),
        "totals": lambda: queues.totals(read("jobs")),
        "flow": lambda: nodes.flow(events),
        "clocks": lambda: nodes.clocks(events, read("jobs")),
        "findings": lambda: findings(read("jobs"), read("totals"), read("clocks")),
    }
    for part in RESULTS:
        spark.sparkContext.setJobDescription(part)
        outputs[part].write(made[part]())


COLUMNS: Final = ("finding", "queue", "job_id", "node", "peer", "measured", "bound", "advice")
_REDELIVERED_SHARE: Final = 0.1
_REDELIVERED_MIN: Final = 10
_DELIVERIES_MIN: Final = 5
_CANDIDATES_MAX: Final = 100
_SKEW_MS: Final = 100
_RETRY_FACTOR: Final = 1.5


def findings(jobs: DataFrame, totals: DataFrame, clocks: DataFrame) -> DataFrame:
    """All findings: ``finding``, ``queue``, ``job_id``, ``node``, ``peer`` (what it is about, null
    where it does not apply), ``measured`` and ``bound`` (numbers; see the advice), ``advice``."""
    found = _short_retries(totals)
    for more in (_redelivered(totals), _candidates(jobs), _skewed(clocks)):
        found = found.unionByName(more, allowMissingColumns=True)
    return found.select(*COLUMNS)


def _short_retries(totals: DataFrame) -> DataFrame:
    wanted_s = fn.ceil(fn.col("run_p999_ms") * _RETRY_FACTOR / 1000)
    short = totals.where("retry_s_min * 1000 < run_p99_ms")
    return short.select(
        *(fn.lit("retry-too-short").alias("finding"), "queue"),
        *(fn.lit(None).cast("string").alias(name) for name in ("job_id", "node", "peer")),
        fn.col("run_p99_ms").cast("double").alias("measured"),
        (fn.col("retry_s_min") * 1000).cast("double").alias("bound"),
        fn.format_string(
            "RETRY is %d s, and one run in a hundred takes %d ms or more. Add jobs with RETRY %d.",
            *("retry_s_min", "run_p99_ms", wanted_s),
        ).alias("advice"),
    )


def _redelivered(totals: DataFrame) -> DataFrame:
    many = totals.where(
        (fn.col("redelivered_jobs") >= _REDELIVERED_MIN)
        & (fn.col("redelivered_jobs") > fn.col("jobs") * _REDELIVERED_SHARE)
    )
    return many.select(
        *(fn.lit("redelivered").alias("finding"), "queue"),
        (fn.col("redelivered_jobs") / fn.col("jobs")).alias("measured"),
        fn.lit(_REDELIVERED_SHARE).alias("bound"),
        fn.format_string(
            "%d of %d jobs were delivered more than once, after %d NACKs and %d times RETRY. Look "
            "for jobs that fail, or for workers that are too slow.",
            *("redelivered_jobs", "jobs", "nacks", "retries"),
        ).alias("advice"),
    )


def _candidates(jobs: DataFrame) -> DataFrame:
    tries = fn.greatest("deliveries", "nacks")
    poison = jobs.where((tries >= _DELIVERIES_MIN) & (fn.col("acks") == 0))
    worst = poison.orderBy(tries.desc(), "job_id").limit(_CANDIDATES_MAX)
    return worst.select(
        *(fn.lit("dead-letter-candidate").alias("finding"), "queue", "job_id"),
        tries.cast("double").alias("measured"),
        fn.lit(float(_DELIVERIES_MIN)).alias("bound"),
        fn.format_string(
            "Delivered %d times, given back %d times, never acknowledged. Take it out of the"
            " queue.",
            *("deliveries", "nacks"),
        ).alias("advice"),
    )


def _skewed(clocks: DataFrame) -> DataFrame:
    """Each pair once: the clock of ``peer`` is behind that of ``node``."""
    return clocks.where(fn.col("ahead_ms_max") < -_SKEW_MS).select(
        fn.lit("clock-skew").alias("finding"),
        fn.col("from_node").alias("node"),
        fn.col("to_node").alias("peer"),
        (-fn.col("ahead_ms_max")).alias("measured"),
        fn.lit(float(_SKEW_MS)).alias("bound"),
        fn.format_string(
            "The clock of %s is at least %.0f ms behind that of %s. Synchronize both with a time"
            " server.",
            *("to_node", -fn.col("ahead_ms_max"), "from_node"),
        ).alias("advice"),
    )
