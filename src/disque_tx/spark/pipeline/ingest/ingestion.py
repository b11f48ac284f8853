"""``ingest`` by Spark: files are read, and events counted, by its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from disque_tx.spark.pipeline.ingest.batches import IngestReport, Step, add_logs
from disque_tx.spark.pipeline.ingest.fields import KEY
from disque_tx.spark.pipeline.ingest.workers import LocalThreads, SparkTasks, Workers
from disque_tx.spark.pipeline.tables.counting import counted_runs, runs_in_files
from disque_tx.spark.pipeline.tables.events import EventTableLog
from disque_tx.spark.pipeline.tables.footers import Staged
from disque_tx.spark.pipeline.tables.runs import Run, Runs
from disque_tx.spark.pipeline.tables.table import known_events, reading, writing
from disque_tx.spark.sessions import check_classic

#: Up to so many bytes of files are read by this process: starting tasks would take longer.
_HERE_BYTES: Final = 8 << 20


def ingest(
    spark: SparkSession, paths: Iterable[str], into: str, step: Step = lambda _: None
) -> IngestReport:
    """Add all logs in ``paths`` that are not in the table ``into`` yet to it.

    ``step`` and errors: of :func:`disque_tx.spark.pipeline.ingest.batches.add_logs`.

    :raises RemoteSession: when the session is one of Spark Connect.
    """
    check_classic(spark, "ingest")
    return add_logs(_Spark(spark), paths, into, step)


class _Spark:
    """Spark as :class:`~disque_tx.spark.pipeline.ingest.batches.IngestEngine`."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def workers(self, size_bytes: int) -> Workers:
        return LocalThreads() if size_bytes <= _HERE_BYTES else SparkTasks(self._spark)

    def known(self, table: EventTableLog) -> tuple[Runs, Mapping[str, list[int]]]:
        return known_events(self._spark, table)

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

    def _read(self, table: EventTableLog, staged: Staged) -> DataFrame:
        return reading(self._spark, table.log.schema, table.root, staged.names)
