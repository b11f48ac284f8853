"""``ingest`` by Spark: lines are read, and events counted, by its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as fn

from disque_tx.spark.pipeline.ingest import logs
from disque_tx.spark.pipeline.ingest.batches import IngestReport, StagedLines, Step, add_logs
from disque_tx.spark.pipeline.ingest.examination import Finding, examined
from disque_tx.spark.pipeline.ingest.fields import KEY
from disque_tx.spark.pipeline.tables.counting import counted_runs, runs_in_files
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.tables.events import EventTableLog
from disque_tx.spark.pipeline.tables.footers import Staged
from disque_tx.spark.pipeline.tables.runs import Run, Runs
from disque_tx.spark.pipeline.tables.table import EventTable, reading, writing
from disque_tx.spark.sessions import check_classic

#: A column that is in no line.
_IS_EVENT: Final = "is event"


def ingest(
    spark: SparkSession, paths: Iterable[str], into: str, step: Step = lambda _: None
) -> IngestReport:
    """Add all logs in ``paths`` that are not in the table ``into`` yet to it.

    ``step`` and errors: of :func:`disque_tx.spark.pipeline.ingest.batches.add_logs`.

    :raises RemoteSession: when the session is one of Spark Connect.
    """
    check_classic(spark, "ingest")
    return add_logs(_SparkReading(spark), paths, into, step)


class _SparkReading:
    """Spark as :class:`~disque_tx.spark.pipeline.ingest.batches.Reading`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def known(self, table: EventTableLog) -> tuple[Runs, Mapping[str, list[int]]]:
        return EventTable(self._spark, table.root).known()

    def examined(self, files: Iterable[tuple[str, int]]) -> list[Finding]:
        return examined(self._spark, files)

    def stage(self, table: EventTableLog, files: list[Finding]) -> StagedLines:
        plain = [file.path for file in files if not file.joined]
        joined = [file.path for file in files if file.joined]
        lines: DataFrame | None = logs.parsed(self._spark, plain) if plain else None
        if joined:
            more = logs.parsed_with_text(self._spark, joined).drop("line", "file")
            lines = more if lines is None else lines.unionByName(more)
        assert lines is not None
        # Computed once, for what is counted and for what is stored.
        is_one = logs.is_event(file.source for file in files)
        found_out = lines.withColumn(_IS_EVENT, is_one)
        is_event, counts = fn.col(_IS_EVENT), Observation()
        counted = (fn.count_if(is_event).alias("events"), fn.count("*").alias("lines"))
        observed = found_out.observe(counts, *counted)
        staged = writing(self._spark, logs.events(observed, is_event), table.root, "dt")
        found = counts.get
        return StagedLines(staged, int(found["events"]), int(found["lines"]) - int(found["events"]))

    def runs(self, table: EventTableLog, staged: Staged, limit: int) -> list[Run]:
        """Counted by this process, if the files are on the disk that its tasks wrote to; from a
        store or a cluster it would have to fetch them."""
        is_here = str(self._spark.sparkContext.master).startswith("local")
        found = None
        if is_here and table.root.startswith("/"):
            found = runs_in_files((f"{table.root}/{name}" for name in staged.names), limit)
        return counted_runs(self._read(table, staged), limit) if found is None else found

    def without(self, table: EventTableLog, staged: Staged, known: list[Run]) -> Staged:
        events = self._read(table, staged)
        if known:
            names = ("node", "boot", "first", "last")
            ranges = self._spark.createDataFrame(
                pa.table({name: [getattr(run, name) for run in known] for name in names})
            )
            same = [events[name] == ranges[name] for name in ("node", "boot")]
            inside = events["seq"].between(ranges["first"], ranges["last"])
            events = events.join(fn.broadcast(ranges), [*same, inside], "left_anti")
        return writing(self._spark, events.dropDuplicates(list(KEY)), table.root, "dt")

    def stage_rejected(self, log: DeltaLog, paths: list[str], batch: int) -> Staged:
        lines = logs.rejected(logs.parsed_with_text(self._spark, paths))
        return writing(self._spark, lines.withColumn("batch", fn.lit(batch)), log.root, "batch")

    def _read(self, table: EventTableLog, staged: Staged) -> DataFrame:
        return reading(self._spark, table.log.schema, table.root, staged.names)
