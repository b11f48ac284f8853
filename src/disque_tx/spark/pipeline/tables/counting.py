"""The numbers of events as runs without gaps: counted by Spark, or, in files on this machine, by
this process, which takes a tenth of the processor time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from disque_tx.spark.pipeline.tables.runs import Run, Runs

#: The low bits of a number, its position in a block of 64.
_BLOCK_BITS: Final = 6
_BLOCK_MASK: Final = 63
#: Rows of a file that are in memory at a time.
_ROWS: Final = 1 << 16


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


def runs_in_files(paths: Iterable[str], pieces_max: int) -> list[Run] | None:
    """The numbers of the events in Parquet files on a disk of this machine, whose rows are read in
    parts. Nodes write their events in order, and whoever reads their files keeps it, so that a part
    has few pieces without gaps. ``None`` when all parts have more than ``pieces_max``: of numbers
    in another order each would be a piece."""
    pieces: list[Run] = []
    for path in paths:
        with pq.ParquetFile(path, read_dictionary=["node"]) as file:
            for rows in file.iter_batches(_ROWS, columns=["node", "boot", "seq"]):
                found = _pieces(rows, pieces_max - len(pieces))
                if found is None:
                    return None
                pieces += found
    return list(Runs(pieces))


def _pieces(rows: pa.RecordBatch, limit: int) -> list[Run] | None:
    """Rows as runs, in their order; ``None`` if there are more than the limit."""
    nodes = rows.column("node")
    at = [nodes.indices.to_numpy(), rows.column("boot").to_numpy(), rows.column("seq").to_numpy()]
    same = np.diff(at[2]) == 1
    for column in at[:2]:
        same &= column[1:] == column[:-1]
    begins = np.flatnonzero(np.concatenate(([True], ~same)))
    if len(begins) > limit:
        return None
    ends = np.append(begins[1:], len(rows)) - 1
    names = nodes.dictionary.to_pylist()
    columns = (*(column[begins].tolist() for column in at), at[2][ends].tolist())
    return [Run(names[node], *numbers) for node, *numbers in zip(*columns, strict=True)]
