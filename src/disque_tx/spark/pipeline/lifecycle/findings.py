"""What somebody should look at, with the number to choose where there is one.

1. ``retry-too-short``: one run in a hundred takes longer than the queue's RETRY, so that a job is
   delivered again while somebody works on it. Suggested: half as much again as the 99.9th
   percentile.
2. ``redelivered``: more than one job in ten of the queue is delivered more than once.
3. ``dead-letter-candidate``: a job that was delivered or given back five times and is not
   acknowledged; the 100 worst.
4. ``clock-skew``: the clocks of two nodes differ by more than 100 ms for certain.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

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
            "at what fails, or for workers that are too slow.",
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
            "Delivered %d times, given back %d times, never acknowledged. Put it aside.",
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
            "The clock of %s is at least %.0f ms behind that of %s. Let both follow a time server.",
            *("to_node", -fn.col("ahead_ms_max"), "from_node"),
        ).alias("advice"),
    )
