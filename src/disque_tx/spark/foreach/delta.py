"""Streams of jobs into Delta tables, each job once.

``writeStream.foreachBatch(disque_delta("table"))``: Spark's tasks write Parquet files, the driver
commits them with the number of the batch, and the source acknowledges the jobs when Spark has
committed the batch as well. Whatever is killed when, the table has each job once. With the option
``deltaTable`` the source has written the files already.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Final
from uuid import uuid4

import attrs
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as fn

from disque_tx.spark.errors import BadOption, BadPath
from disque_tx.spark.paths import exists, resolved
from disque_tx.spark.pipeline.tables.footers import Staged
from disque_tx.spark.pipeline.tables.jobs import WINDOW_JOBS, JobTable, unfinished
from disque_tx.spark.pipeline.tables.table import columns_of, writing
from disque_tx.spark.schema import STAGED, arrow_schema
from disque_tx.spark.source.staged import StagedFile

_QUERY_ID: Final = "sql.streaming.queryId"


def disque_delta(
    table: str, app: str | None = None, window: int = WINDOW_JOBS
) -> Callable[[DataFrame, int], None]:
    """What ``foreachBatch`` calls to add batches to the Delta table in this folder. If there is
    none, it is created. The rows need the column ``id``; others may be added to those of a job, or
    left out.

    ``app``: the name of the query in the log of the table; by default the ID that its checkpoint
    gives it. Spark Connect does not say this, so there it is needed. ``window``: among how many of
    the last jobs of the table a job that is delivered again is recognised.
    """
    return DeltaSink(JobTable(resolved(table), window), app)


@attrs.define
class DeltaSink:
    """The sink of one query. ``app``: its name in the log of the table."""

    table: JobTable
    app: str | None = None
    _cleaned: set[str] = attrs.field(factory=set)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Add a batch, unless it is part of the table already.

        :raises BadOption: when it is not known which query this is, or its source writes files for
            another table.
        :raises BadTable: when the rows have no IDs, or the table is of another kind.
        :raises BadPath: when executors wrote to a disk that this process does not have.
        """
        app = self.app or _query_of(rows)
        # Spark runs a batch again that it has not committed itself.
        if self.table.last(app) >= batch:
            return
        beginning = _beginning(app)
        self._clean(beginning, self.table.last(app))
        if rows.columns == [STAGED]:
            self._adopt([StagedFile.of(row[0]) for row in rows.collect()], app, batch)
            return
        folder = f"{beginning}{batch}-{uuid4().hex}"
        counts = Observation()
        # Spark counts what is written without a shuffle in between once for each partition, also
        # where a task runs twice.
        counted = rows.observe(counts, fn.count(fn.lit(1)).alias("rows"))
        staged = writing(rows.sparkSession, counted, self.table.root, folder=folder)
        if sum(file.rows for file in staged.files) < counts.get["rows"]:
            raise self._not_shared()
        self.table.add(staged, columns_of(rows), app, batch)

    def _adopt(self, found: Sequence[StagedFile], app: str, batch: int) -> None:
        """Add what the source has written."""
        if not found:
            return
        staging = found[0].staging
        if staging.root != self.table.root:
            raise BadOption(
                f"The option deltaTable is {staging.root}, and the table of disque_delta is"
                f" {self.table.root}. Name the same table."
            )
        if not all(exists(f"{self.table.root}/{each.file.path}") for each in found):
            raise self._not_shared()
        self._clean(staging.beginning, staging.seq - 1, staging.folder)
        files = Staged(staging.folder, [each.file for each in found])
        self.table.add(files, arrow_schema(found[0].ddl), app, batch)

    def _not_shared(self) -> BadPath:
        return BadPath(
            f"Spark's executors wrote files of this batch to {self.table.root} that this process"
            " does not find there: they have another disk. Nothing was stored or acknowledged."
            " Name a folder that all machines share, or s3://BUCKET/FOLDER."
        )

    def _clean(self, beginning: str, last: int, but: str = "") -> None:
        """Remove what the query wrote before it was killed, and did not commit: folders with a
        number behind the last one."""
        if beginning in self._cleaned:
            return
        for folder in unfinished(self.table.root, beginning):
            number = int(folder.removeprefix(beginning).partition("-")[0])
            if number > last and folder != but:
                self.table.discard(folder)
        self._cleaned.add(beginning)


def _beginning(app: str) -> str:
    """Of the names of the folders that the sink of a query writes."""
    return f"stream-{hashlib.sha256(app.encode()).hexdigest()[:16]}-"


def _query_of(rows: DataFrame) -> str:
    context = getattr(rows.sparkSession, "sparkContext", None)
    query = context.getLocalProperty(_QUERY_ID) if context is not None else None
    if not query:
        raise BadOption(
            "disque_delta cannot find out which query this is. Give it a name in 'app'."
        )
    return f"stream/{query}"
