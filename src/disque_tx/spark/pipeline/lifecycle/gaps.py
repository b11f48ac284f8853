"""Where events are missing, which may explain what looks like a fault.

A node numbers its events from 0. A number that is not there was dropped, or lost with the last
second before a ``kill -9``, or is in a log that was not ingested. After the last number before a
restart there may have been more.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

#: So much of what was recorded may be lost by a ``kill -9`` (docs/reference/events.md).
_LOST_US: Final = 1_000_000
#: Numbers that are counted together.
_BLOCK_BITS: Final = 6
_BLOCK: Final = ["node", "boot", "block"]


def latest(events: DataFrame) -> dict[str, int]:
    """Node → until when, in µs since 1970, events of it may be missing; complete nodes are not in
    it."""
    told = events.select("node", "boot", "seq", fn.unix_micros("time").alias("at_us"))
    told = told.withColumn("block", fn.shiftright("seq", _BLOCK_BITS))
    blocks = told.groupBy(*_BLOCK).agg(
        fn.count("*").alias("events"),
        fn.min("seq").alias("first"),
        fn.max("seq").alias("last"),
        fn.min("at_us").alias("begin_us"),
        fn.max("at_us").alias("end_us"),
    )
    ends = _between(blocks).unionByName(_inside(told, blocks)).unionByName(_before_restarts(blocks))
    rows = ends.groupBy("node").agg(fn.max("until_us").alias("until_us")).collect()
    return {row.node: row.until_us for row in rows if row.until_us is not None}


def _between(blocks: DataFrame) -> DataFrame:
    """When the first event came after numbers that are missing between blocks, or at the start."""
    run = Window.partitionBy("node", "boot").orderBy("block")
    expected = fn.coalesce(fn.lag("last").over(run) + 1, fn.lit(0))
    after = blocks.withColumn("expected", expected).where("first > expected")
    return after.select("node", fn.col("begin_us").alias("until_us"))


def _inside(told: DataFrame, blocks: DataFrame) -> DataFrame:
    """The same within a block. Only the events of blocks that are not whole are put in order."""
    broken = blocks.where("last - first + 1 > events").select(*_BLOCK)
    row = Window.partitionBy(*_BLOCK).orderBy("seq")
    ordered = told.join(broken, _BLOCK, "left_semi").withColumn("before", fn.lag("seq").over(row))
    return ordered.where("seq > before + 1").select("node", fn.col("at_us").alias("until_us"))


def _before_restarts(blocks: DataFrame) -> DataFrame:
    """Until when a node that began again may have told more."""
    end_us = fn.max(fn.struct("last", "end_us")).getField("end_us")
    runs = blocks.groupBy("node", "boot").agg(end_us.alias("end_us"))
    later = fn.lead("boot").over(Window.partitionBy("node").orderBy("boot"))
    ended = runs.withColumn("later", later).where("later IS NOT NULL")
    return ended.select("node", (fn.col("end_us") + _LOST_US).alias("until_us"))
