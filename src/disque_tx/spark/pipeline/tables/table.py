"""Tables of the pipeline: Delta tables, which Spark reads here without Delta's own archives.

::

    TABLE/
      _delta_log/                     what belongs to the table
      _rejected/                      a table of its own: lines that are not events
      dt=2026-11-20/*.parquet         files that were merged
      batch-<unique name>/dt=…/       files as an ingest wrote them

A file is part of a table as soon as a commit names it. What a process wrote that was killed before
its commit is not part of it, and is removed by ``vacuum``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DateType, StructField, StructType

from disque_tx.spark.objectstore import is_in
from disque_tx.spark.offered import arrow_columns
from disque_tx.spark.paths import for_spark, resolved
from disque_tx.spark.pipeline.tables import stored
from disque_tx.spark.pipeline.tables.counting import counted_runs
from disque_tx.spark.pipeline.tables.deltalog import DataFile, DeltaLog
from disque_tx.spark.pipeline.tables.events import EventTableLog
from disque_tx.spark.pipeline.tables.footers import Staged, written
from disque_tx.spark.pipeline.tables.runs import Runs

#: The day of an event, whatever the time zone of the session.
DAY: Final = (
    "date_from_unix_date(CAST((unix_micros(time) - pmod(unix_micros(time), 86400000000L))"
    " DIV 86400000000L AS INT))"
)
_TIMESTAMPS: Final = "spark.sql.parquet.outputTimestampType"
#: Spark itself looks for patterns in names, and for values of columns in the names of folders.
_AS_NAMED: Final = {"__globPaths__": "false", "recursiveFileLookup": "true"}
_WRITING: Final = {
    "compression": "zstd",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


class Table:
    """A Delta table at ``path``, of this pipeline or of others.

    ``as_of``: a version, or a time in ISO 8601, at which it is looked at.

    :raises BadTable: when there is none, or no such version.
    """

    def __init__(self, spark: SparkSession, path: str, as_of: int | str | None = None) -> None:
        self.spark = spark
        self.root = resolved(path)
        self.log = DeltaLog(self.root, as_of)

    def rows(self) -> DataFrame:
        """All rows."""
        return self.of(self.log.files())

    def of(self, files: Iterable[DataFile]) -> DataFrame:
        """The rows of these files of the table."""
        return reading(self.spark, self.log.schema, self.root, [file.path for file in files])


class EventTable(EventTableLog):
    """A table of events, whose rows Spark reads. ``create``, ``as_of``: of :class:`EventTableLog`.

    :raises BadTable: when it is not a table of events, or has no such version.
    """

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        create: bool = False,
        as_of: int | str | None = None,
    ) -> None:
        super().__init__(path, create, as_of)
        self.spark = spark

    def events(self) -> DataFrame:
        """All events, with the columns of :data:`EVENT_COLUMNS` and ``dt``."""
        return self.of(self.log.files())

    def of(self, files: Iterable[DataFile]) -> DataFrame:
        """The events in these files of the table."""
        return reading(self.spark, self.log.schema, self.root, [file.path for file in files])


def known_events(spark: SparkSession, table: EventTableLog) -> tuple[Runs, Mapping[str, list[int]]]:
    """What a table says by its notes (:meth:`EventTableLog.noted`); the numbers are counted if it
    says nothing."""
    noted = table.noted()
    if noted is not None:
        return noted
    names = [file.path for file in table.log.files()]
    events = reading(spark, table.log.schema, table.root, names)
    return Runs(counted_runs(events) if names else ()), {}


def reading(spark: SparkSession, schema: pa.Schema, root: str, names: Iterable[str]) -> DataFrame:
    """The rows of Parquet files below ``root``, with the columns of a schema. The column ``dt`` is
    the day of ``time``, whether it is in the files or not."""
    columns: StructType = from_arrow_schema(schema)
    paths = list(names)
    if not paths:
        return spark.createDataFrame([], columns)
    inside = [field for field in columns if field != StructField("dt", DateType())]
    if is_in(root):
        found = stored.read(spark, StructType(inside), root, paths)
    else:
        reader = spark.read.schema(StructType(inside)).options(**_AS_NAMED)
        found = reader.parquet(*(for_spark(f"{root}/{name}") for name in paths))
    return found if len(inside) == len(columns) else found.withColumn("dt", fn.expr(DAY))


def writing(
    spark: SparkSession,
    rows: DataFrame,
    root: str,
    partition_by: str | None = None,
    folder: str | None = None,
) -> Staged:
    """Write rows as Parquet to a folder of a table, by default a new one. They are not part of the
    table yet."""
    folder = folder or f"batch-{uuid4().hex}"
    if is_in(root):
        return Staged(folder, stored.write(rows, root, folder, partition_by))
    with _exact_times(spark):
        writer = rows.write.options(**_WRITING)
        if partition_by:
            writer = writer.partitionBy(partition_by)
        writer.parquet(for_spark(f"{root}/{folder}"))
    return Staged(folder, written(root, folder))


@contextmanager
def _exact_times(spark: SparkSession) -> Iterator[None]:
    """Times in files are of the type that all readers know, which also has statistics."""
    before = spark.conf.get(_TIMESTAMPS)
    spark.conf.set(_TIMESTAMPS, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        spark.conf.set(_TIMESTAMPS, str(before))


def columns_of(rows: DataFrame) -> pa.Schema:
    """The columns of rows, for a table of them."""
    return arrow_columns(rows.schema)
