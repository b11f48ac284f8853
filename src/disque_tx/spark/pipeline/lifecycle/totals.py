"""Figures of queues over all of their jobs.

They are made of counts alone, to which new jobs are added and from which jobs as they were before
are taken away, so that they can be brought up to date without a look at all jobs. For percentiles
it is counted how many jobs have each value. Values from 1,000 on are rounded to three digits, so
that there are few.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from disque_tx.spark.pipeline.lifecycle.rules import DIGITS, ENDS, PERCENTILES, SPANS, names

#: 1 for a job that is added to counts, -1 for one that is taken away.
SIGN: Final = "sign"
DISTRIBUTION_KEY: Final = ["queue", "measure", "value"]


def sums(jobs: DataFrame) -> DataFrame:
    """Per queue what is added up over its jobs, which have a :data:`SIGN`."""
    what = {
        "jobs": fn.lit(1),
        "backlog": (fn.col("began_at").isNotNull() & fn.col("ended_at").isNull()).cast("int"),
        **{name: (fn.col("outcome") == name).cast("int") for name in (*ENDS, "pending")},
        **{name: fn.col(name) for name in ("deliveries", "nacks", "retries", "moves")},
        "redelivered_jobs": (fn.col("deliveries") > 1).cast("int"),
        "bytes": fn.col("size"),
    }
    signed = {name: fn.sum(value * fn.col(SIGN)) for name, value in what.items()}
    named = jobs.where(fn.col("queue").isNotNull())
    return named.groupBy("queue").agg(
        *(fn.coalesce(total, fn.lit(0)).alias(name) for name, total in signed.items())
    )


def distributions(jobs: DataFrame) -> DataFrame:
    """How many jobs of a queue, which have a :data:`SIGN`, have a value: ``queue``, ``measure``,
    ``value``, ``jobs``."""
    measures = [
        *(_measure(span, _rounded(fn.col(span))) for span in SPANS),
        _measure("retry_s", fn.when(fn.col("retry_s") > 0, fn.col("retry_s"))),
    ]
    named = jobs.where(fn.col("queue").isNotNull())
    values = named.select("queue", SIGN, fn.inline(fn.array(*measures)))
    known = values.where(fn.col("value").isNotNull())
    return known.groupBy(*DISTRIBUTION_KEY).agg(fn.sum(SIGN).alias("jobs"))


def _measure(name: str, value: Column) -> Column:
    return fn.struct(fn.lit(name).alias("measure"), value.cast("bigint").alias("value"))


def _rounded(value: Column) -> Column:
    digits = fn.length(fn.abs(value).cast("string"))
    unit = fn.pow(fn.lit(10), fn.greatest(digits - DIGITS, fn.lit(0)))
    return fn.round(value / unit) * unit


def added(counts: DataFrame, more: DataFrame, *key: str) -> DataFrame:
    """The sums of counts and more of the same kind."""
    columns = [name for name in counts.columns if name not in key]
    both = counts.unionByName(more).groupBy(*key)
    return both.agg(*(fn.sum(name).alias(name) for name in columns))


def totals(sums: DataFrame, distributions: DataFrame) -> DataFrame:
    """A row per queue, from what the functions with these names make."""
    same = ["queue", "measure"]
    ranked = distributions.withColumns(
        {
            "rank": fn.sum("jobs").over(Window.partitionBy(*same).orderBy("value")),
            "all": fn.sum("jobs").over(Window.partitionBy(*same)),
        }
    )

    def least(measure: str, share: float) -> Column:
        reached = fn.col("rank") >= fn.ceil(fn.col("all") * fn.lit(share))
        return fn.min(fn.when((fn.col("measure") == measure) & reached, fn.col("value")))

    found = ranked.groupBy("queue").agg(
        least("retry_s", 0).alias("retry_s_min"),
        *(
            least(span, share).alias(name)
            for span in SPANS
            for name, share in zip(names(span), PERCENTILES.values(), strict=True)
        ),
    )
    return sums.join(found, "queue", "left")
