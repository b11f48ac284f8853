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
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import DateType, StructField, StructType

from disque_tx.spark.errors import BadTable
from disque_tx.spark.objectstore import is_in
from disque_tx.spark.paths import exists, for_spark, is_empty, opened, resolved
from disque_tx.spark.pipeline.tables import stored
from disque_tx.spark.pipeline.tables.deltalog import DataFile, DeltaLog
from disque_tx.spark.pipeline.tables.footers import Staged, written
from disque_tx.spark.pipeline.tables.runs import Run, Runs, counted
from disque_tx.spark.schema import arrow_schema

EVENTS: Final = "events"
#: The columns of the table of events except ``dt``, by which it is partitioned.
EVENT_COLUMNS: Final = """\
node STRING, boot BIGINT, seq BIGINT, time TIMESTAMP, kind STRING, job_id STRING, queue STRING,
size BIGINT, nacks BIGINT, additional_deliveries BIGINT, wait_ms BIGINT, run_ms BIGINT,
client_id STRING, retry_s BIGINT, ttl_s BIGINT, delay_s BIGINT, replicate BIGINT, copies BIGINT,
reason STRING, backoff_ms BIGINT, note STRING, successor STRING, schedule STRING,
occurrence_s BIGINT, peer STRING, paused STRING, jobs BIGINT, body STRING, body_sha256 STRING"""
#: The day of an event, whatever the time zone of the session.
DAY: Final = "date_from_unix_date(CAST(floor(unix_micros(time) / 86400000000) AS INT))"
_REJECTED_COLUMNS: Final = "file STRING, reason STRING, line STRING, batch BIGINT"
_REJECTED: Final = "_rejected"
_FORMER: Final = "_commits"
_DAY_FIELD: Final = pa.field("dt", pa.date32())
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


class EventTable(Table):
    """A table of events.

    ``create``: whether to create it in an empty or missing folder.

    :raises BadTable: when it is not a table of events, or has the layout of an earlier version.
    """

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        create: bool = False,
        as_of: int | str | None = None,
    ) -> None:
        root = resolved(path)
        if not DeltaLog.exists(root):
            _check_absent(root, create)
            DeltaLog.create(root, event_schema(), EVENTS, ("dt",))
        super().__init__(spark, root, as_of)
        if self.log.what != EVENTS:
            raise BadTable(f"{root} is a Delta table, but not one of 'disque-pipeline ingest'.")
        if create:
            self.log.add_columns(event_schema())

    def events(self) -> DataFrame:
        """All events, with the columns of :data:`EVENT_COLUMNS` and ``dt``."""
        return self.rows()

    def known(self) -> tuple[Runs, Mapping[str, list[int]]]:
        """The numbers of the events that were ever added, and the files that names say nothing
        about: path → size and time of change in ms."""
        notes = self.log.notes()
        if notes is not None:
            return Runs.from_notes(notes["runs"]), notes["files"]
        # As after its creation, or when the commits of a month were all made by other programs.
        return Runs(counted_runs(self.events()) if self.log.files() else ()), {}

    def rejected(self) -> DeltaLog | None:
        """The log of the table of rejected lines, if there were any."""
        root = f"{self.root}/{_REJECTED}"
        return DeltaLog(root) if DeltaLog.exists(root) else None

    def create_rejected(self) -> DeltaLog:
        """The same log; the table is created if it does not exist."""
        root = f"{self.root}/{_REJECTED}"
        schema = arrow_schema(_REJECTED_COLUMNS)
        return DeltaLog.create(root, schema, "rejected lines", ("batch",))


def counted_runs(events: DataFrame, limit: int | None = None) -> list[Run]:
    """The numbers of these events. ``limit``: of how many runs at most."""
    found = counted(events)
    rows = (found if limit is None else found.limit(limit)).collect()
    return [Run(row.node, row.boot, row.first, row.last) for row in rows]


def event_schema() -> pa.Schema:
    """The columns of a table of events."""
    return arrow_schema(EVENT_COLUMNS.replace("\n", " ")).append(_DAY_FIELD)


def is_table(path: str) -> bool:
    """Whether there is a table in this folder."""
    return DeltaLog.exists(resolved(path))


def is_former(root: str) -> bool:
    """Whether there is a table of the former layout at a resolved path."""
    return exists(f"{root}/{_FORMER}")


def _check_absent(root: str, create: bool) -> None:
    if is_former(root):
        raise BadTable(
            f"{root} is a table of an earlier version. 'disque-pipeline convert {root}' makes a"
            " Delta table of it, without writing its events again."
        )
    empty = is_empty(root)
    if not create or not empty:
        what = "does not exist or is empty" if empty else "is not a table of events"
        raise BadTable(f"{root} {what}. 'disque-pipeline ingest' creates one, in a new folder.")


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
    spark: SparkSession, rows: DataFrame, root: str, *partition_by: str, folder: str | None = None
) -> Staged:
    """Write rows as Parquet to a folder of a table, by default a new one. They are not part of the
    table yet."""
    folder = folder or f"batch-{uuid4().hex}"
    if is_in(root):
        return Staged(folder, stored.write(rows, root, folder, partition_by))
    with _exact_times(spark):
        writer = rows.write.options(**_WRITING)
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        writer.parquet(for_spark(f"{root}/{folder}"))
    return Staged(folder, written(root, folder))


def discard(root: str, folder: str) -> None:
    """Remove what :func:`writing` made and nobody committed."""
    system, place = opened(root)
    system.delete_dir(f"{place}/{folder}")


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
    return to_arrow_schema(rows.schema, timezone="UTC")
