"""The numbers of events as runs without gaps, counted by Spark."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from disque_tx.spark.pipeline.tables.runs import Run

#: The low bits of a number, its position in a block of 64.
_BLOCK_BITS: Final = 6
_BLOCK_MASK: Final = 63


def counted_runs(events: DataFrame, limit: int | None = None) -> list[Run]:
    """The numbers of these events. ``limit``: of how many runs at most."""
    found = counted(events)
    rows = (found if limit is None else found.limit(limit)).collect()
    return [Run(row.node, row.boot, row.first, row.last) for row in rows]


def counted(events: DataFrame) -> DataFrame:
    """The runs of events: ``node``, ``boot``, ``first``, ``last``. Numbers are counted as bits, 64
    to a row, so that what is shuffled is small; only blocks with gaps are taken apart."""
    bit = fn.expr(f"shiftleft(1L, CAST(seq & {_BLOCK_MASK} AS INT))")
    blocks = events.groupBy("node", "boot", fn.shiftright("seq", _BLOCK_BITS).alias("block")).agg(
        fn.bit_or(bit).alias("bits"), fn.min("seq").alias("first"), fn.max("seq").alias("last")
    )
    whole = fn.bit_count("bits") == fn.col("last") - fn.col("first") + 1
    inside = fn.filter(
        fn.sequence("first", "last"), lambda number: _has_bit(number.bitwiseAND(_BLOCK_MASK))
    )
    taken_apart = fn.when(whole, fn.array(fn.struct("first", "last"))).otherwise(
        fn.transform(inside, lambda number: fn.struct(number.alias("first"), number.alias("last")))
    )
    pieces = blocks.select("node", "boot", fn.explode(taken_apart).alias("piece")).select(
        "node", "boot", "piece.*"
    )
    ordered = Window.partitionBy("node", "boot").orderBy("first")
    begins = fn.when(fn.col("first") == fn.lag("last").over(ordered) + 1, 0).otherwise(1)
    numbered = pieces.withColumn("begins", begins).withColumn("run", fn.sum("begins").over(ordered))
    return numbered.groupBy("node", "boot", "run").agg(
        fn.min("first").alias("first"), fn.max("last").alias("last")
    )


def _has_bit(at: Any) -> Any:
    return fn.getbit("bits", at) == 1
