"""Figures of queues over time.

They are aggregated first where events are read and then by queue and window, so that a task sends
at most one row for each: a queue with most of the events costs no more than any other. Percentiles
are Spark's ``approx_percentile``, whose sketches are merged in the same way.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from disque_tx.spark.pipeline.lifecycle.rules import PERCENTILES, SPANS, WINDOW_COUNTED, names

#: A percentile is off by no more than 1/10,000 of the rank.
_ACCURACY: Final = 10_000
KEY: Final = ["queue", "window"]


def windows(events: DataFrame, jobs: DataFrame, window_s: int) -> DataFrame:
    """A row per queue and window in which something happened there.

    ``jobs``: what :func:`disque_tx.spark.pipeline.lifecycle.jobs.jobs` makes of the same events.
    """
    found = _from_events(events, window_s).join(_from_jobs(jobs, window_s), KEY, "full")
    counts = [*WINDOW_COUNTED, "redelivered", "begun", "ended"]
    found = found.fillna(0, counts)
    return found.select(
        *(*KEY, *counts),
        *(_rate(name, window_s) for name in ("added", "delivered", "acked")),
        *(name for span in SPANS for name in names(span)),
    )


def with_backlog(rows: DataFrame, before: Column | None = None) -> DataFrame:
    """The same windows with the backlog at their ends. ``before``: that of the queue before the
    first of its windows, if there were others."""
    so_far = Window.partitionBy("queue").orderBy("window")
    sums = fn.sum(fn.col("begun") - fn.col("ended")).over(so_far)
    backlog = sums if before is None else sums + before
    return rows.withColumn("backlog", backlog.cast("bigint"))


def keys(events: DataFrame, window_s: int) -> DataFrame:
    """The queues and windows of these events."""
    return _named(events).select("queue", window("time", window_s).alias("window"))


def moments(jobs: DataFrame) -> DataFrame:
    """When jobs entered and left the backlog: ``queue``, ``at``, ``begun`` and ``ended`` (0 or 1),
    and for those that left it ``total_ms``."""
    both = fn.array(
        fn.struct(
            fn.col("began_at").alias("at"), fn.lit(1).alias("begun"), fn.lit(0).alias("ended")
        ),
        fn.struct(
            fn.col("ended_at").alias("at"), fn.lit(0).alias("begun"), fn.lit(1).alias("ended")
        ),
    )
    total_ms = fn.when(fn.col("moment.ended") == 1, fn.col("total_ms")).alias("total_ms")
    named = jobs.where("queue IS NOT NULL")
    steps = named.select("queue", fn.explode(both).alias("moment"), "total_ms")
    return steps.where("moment.at IS NOT NULL").select("queue", "moment.*", total_ms)


def _from_events(events: DataFrame, window_s: int) -> DataFrame:
    """Counts of events, and percentiles of waiting and running times."""
    counts = [
        fn.count_if(fn.col("kind").isin(*kinds)).alias(n) for n, kinds in WINDOW_COUNTED.items()
    ]
    again = (fn.col("kind") == "delivered") & (
        fn.col("nacks") + fn.col("additional_deliveries") > 0
    )
    # Only deliveries that ended with an acknowledgement count as run time.
    run_ms = fn.when(fn.col("kind").isin("acked", "fast-acked"), fn.col("run_ms")).alias("run_ms")
    timed = _named(events).withColumns({"window": window("time", window_s), "run_ms": run_ms})
    found = timed.groupBy("queue", "window").agg(
        *(*counts, fn.count_if(again).alias("redelivered")),
        *(_percentiles("wait_ms"), _percentiles("run_ms")),
    )
    return _unpacked(found, ["wait_ms", "run_ms"])


def _named(events: DataFrame) -> DataFrame:
    return events.where("job_id IS NOT NULL AND queue != ''")


def _from_jobs(jobs: DataFrame, window_s: int) -> DataFrame:
    """How many jobs entered and left the backlog, and how long acknowledged ones took in all."""
    timed = moments(jobs).withColumn("window", window("at", window_s))
    found = timed.groupBy("queue", "window").agg(
        *(fn.sum("begun").alias("begun"), fn.sum("ended").alias("ended"), _percentiles("total_ms"))
    )
    return _unpacked(found, ["total_ms"])


def window(time: str, window_s: int) -> Column:
    """The begin of the window of a time."""
    seconds = fn.unix_seconds(time)
    return fn.timestamp_seconds(seconds - fn.pmod(seconds, fn.lit(window_s)))


def _rate(name: str, window_s: int) -> Column:
    return (fn.col(name) / window_s).alias(f"{name}_per_s")


def _percentiles(span: str) -> Column:
    ranks = fn.array(*map(fn.lit, PERCENTILES.values()))
    return fn.approx_percentile(span, ranks, _ACCURACY).alias(f"{span}_percentiles")


def _unpacked(found: DataFrame, spans: list[str]) -> DataFrame:
    """Percentiles as columns of their own."""
    columns = {
        name: fn.get(f"{span}_percentiles", fn.lit(at))
        for span in spans
        for at, name in enumerate(names(span))
    }
    return found.withColumns(columns).drop(*(f"{span}_percentiles" for span in spans))
