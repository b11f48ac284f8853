"""What somebody should look at, with advice:

1. ``retry-too-short``: one run in a hundred takes longer than the queue's RETRY, so that a job is
   delivered again while a worker is still busy with it. The advice is 1.5 times the 99.9th
   percentile.
2. ``redelivered``: more than one job in ten of the queue is delivered more than once.
3. ``dead-letter-candidate``: a job that was delivered or given back five times and is not
   acknowledged; the 100 worst.
4. ``clock-skew``: the clocks of two nodes certainly differ by more than 100 ms.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

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

COLUMNS: Final = ("finding", "queue", "job_id", "node", "peer", "measured", "bound", "advice")


def findings(candidates: DataFrame, totals: DataFrame, clocks: DataFrame) -> DataFrame:
    """All findings, with those of :func:`candidates`: ``finding``, ``queue``, ``job_id``, ``node``,
    ``peer`` (what it is about, null where it does not apply), ``measured`` and ``bound`` (numbers;
    see the advice), ``advice``."""
    found = _short_retries(totals)
    for more in (_redelivered(totals), candidates, _skewed(clocks)):
        found = found.unionByName(more, allowMissingColumns=True)
    return found.select(*COLUMNS)


def _short_retries(totals: DataFrame) -> DataFrame:
    wanted_s = fn.ceil(fn.col("run_p999_ms") * RETRY_FACTOR / 1000)
    short = totals.where("retry_s_min * 1000 < run_p99_ms")
    return short.select(
        *(fn.lit("retry-too-short").alias("finding"), "queue"),
        *(fn.lit(None).cast("string").alias(name) for name in ("job_id", "node", "peer")),
        fn.col("run_p99_ms").cast("double").alias("measured"),
        (fn.col("retry_s_min") * 1000).cast("double").alias("bound"),
        fn.format_string(
            ADVICE["retry-too-short"],
            *("retry_s_min", "run_p99_ms", wanted_s),
        ).alias("advice"),
    )


def _redelivered(totals: DataFrame) -> DataFrame:
    many = totals.where(
        (fn.col("redelivered_jobs") >= REDELIVERED_MIN)
        & (fn.col("redelivered_jobs") > fn.col("jobs") * REDELIVERED_SHARE)
    )
    return many.select(
        *(fn.lit("redelivered").alias("finding"), "queue"),
        (fn.col("redelivered_jobs") / fn.col("jobs")).alias("measured"),
        fn.lit(REDELIVERED_SHARE).alias("bound"),
        fn.format_string(
            ADVICE["redelivered"],
            *("redelivered_jobs", "jobs", "nacks", "retries"),
        ).alias("advice"),
    )


def candidates(jobs: DataFrame) -> DataFrame:
    """The worst jobs."""
    tries = fn.greatest("deliveries", "nacks")
    poison = jobs.where((tries >= DELIVERIES_MIN) & (fn.col("acks") == 0))
    return worst(
        poison.select(
            *(fn.lit(CANDIDATE).alias("finding"), "queue", "job_id"),
            tries.cast("double").alias("measured"),
            fn.lit(float(DELIVERIES_MIN)).alias("bound"),
            fn.format_string(
                ADVICE[CANDIDATE],
                *("deliveries", "nacks"),
            ).alias("advice"),
        )
    )


def worst(found: DataFrame) -> DataFrame:
    """The worst of what :func:`candidates` found among different jobs."""
    return found.orderBy(fn.desc("measured"), "job_id").limit(CANDIDATES_MAX)


def _skewed(clocks: DataFrame) -> DataFrame:
    """Each pair once: the clock of ``peer`` is behind that of ``node``."""
    return clocks.where(fn.col("ahead_ms_max") < -SKEW_MS).select(
        fn.lit("clock-skew").alias("finding"),
        fn.col("from_node").alias("node"),
        fn.col("to_node").alias("peer"),
        (-fn.col("ahead_ms_max")).alias("measured"),
        fn.lit(float(SKEW_MS)).alias("bound"),
        fn.format_string(
            ADVICE["clock-skew"],
            *("to_node", -fn.col("ahead_ms_max"), "from_node"),
        ).alias("advice"),
    )
