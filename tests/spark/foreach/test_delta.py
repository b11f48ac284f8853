"""Batches of a stream are added to a Delta table, each once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from disque_tx.spark.errors import BadOption, BadPath
from disque_tx.spark.foreach.delta import DeltaSink, _beginning, disque_delta
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.tables.jobs import JobTable
from disque_tx.spark.schema import STAGED_DDL
from disque_tx.spark.source.staged import Staging
from tests.spark.pipeline.cases import PipelineCase


class Killed(Exception):
    """The process was killed."""


def _killed(step: str) -> None:
    if step == "written":
        raise Killed


class SinkTests(PipelineCase):
    """The sink of one query."""

    def rows(self, ids: Sequence[str]) -> DataFrame:
        """Jobs with these IDs, in one file."""
        return self.spark.createDataFrame([(id_,) for id_ in ids], "id string").coalesce(1)

    def sink(self) -> DeltaSink:
        """The sink of a query that was just started."""
        return DeltaSink(JobTable(self.table), "orders")

    def die(self, app: str, ids: Sequence[str], batch: int) -> None:
        """Write a batch and be killed before it is committed."""
        sink = DeltaSink(JobTable(self.table, step=_killed), app)
        # It leaves what others wrote, as if this were not its first batch.
        sink._cleaned.add(_beginning(app))
        self.assertRaises(Killed, sink, self.rows(ids), batch)

    def assert_stored(self, ids: Sequence[str], files: int) -> None:
        """Assert that the table has these jobs, and so many files lie in its folder."""
        paths = [f"{self.table}/{file.path}" for file in DeltaLog(self.table).files()]
        rows = duckdb.read_parquet(paths).fetchall()
        self.assertEqual(sorted(ids), sorted(row[0] for row in rows))
        self.assertEqual(files, len(list(Path(self.table).rglob("*.parquet"))))

    def test_again(self) -> None:
        """A batch that Spark runs again, in this process or the next one, adds nothing."""
        sink = self.sink()
        for writer in (sink, sink, self.sink()):
            writer(self.rows("ab"), 0)
        self.assert_stored("ab", 1)
        sink(self.rows("c"), 1)
        self.assert_stored("abc", 2)

    def test_killed(self) -> None:
        """Whatever a query wrote before it was killed, however often that was, is removed when it
        starts again; its committed batches stay, and so does what other queries write."""
        self.sink()(self.rows("ab"), 0)
        for batch in (1, 1, 2):
            self.die("orders", "cd", batch)
        self.die("others", "e", 7)
        self.assert_stored("ab", 5)
        self.sink()(self.rows("cd"), 1)
        self.assert_stored("abcd", 3)

    def files(self, ids: Sequence[str], seq: int) -> tuple[str, DataFrame]:
        """A batch that the source has written as a file: its folder, and its only row."""
        staging = Staging(self.table, "staged-orders-", seq)
        row = staging.store([pa.record_batch([list(ids)], ["id"])], "id STRING")
        (text,) = row.column(0).to_pylist()
        return staging.folder, self.spark.createDataFrame([(text,)], STAGED_DDL)

    def test_files(self) -> None:
        """A batch that is a file already is added as it is, once; a job that is in the table is
        left out of it, and a batch without jobs adds nothing."""
        sink = self.sink()
        _, first = self.files("ab", 1)
        for writer in (sink, sink, self.sink()):
            writer(first, 0)
        sink(self.spark.createDataFrame([], STAGED_DDL), 1)
        sink(self.files("bc", 2)[1], 2)
        self.assert_stored("abc", 2)

    def test_files_killed(self) -> None:
        """Files that a query wrote and did not commit before it was killed are removed when it
        starts again; those of its committed batches stay."""
        self.sink()(self.files("ab", 1)[1], 0)
        left = [self.files("cd", seq)[0] for seq in (2, 2, 3)]
        self.sink()(self.files("cd", 2)[1], 1)
        self.assert_stored("abcd", 2)
        self.assertFalse([folder for folder in left if Path(self.table, folder).exists()])

    def test_other_table(self) -> None:
        """Files in the folder of another table are refused, by the names of both."""
        sink = DeltaSink(JobTable(f"{self.table}-other"), "orders")
        error = self.assertRaises(BadOption, sink, self.files("a", 1)[1], 0)
        for table in (self.table, f"{self.table}-other"):
            self.assertIn(table, str(error))

    def test_other_disk(self) -> None:
        """Rows that executors wrote to a disk of their own end the query, and are not taken for a
        batch without jobs; so does a file that a task of the source wrote there."""
        # The same name is another place for Java and its children than for this process.
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        name = f"jobs-{uuid4().hex}"
        mine = self.folder / name

        def with_folder(id_: str) -> str:
            """The ID; the driver has made the folder of the batch, as it does on a cluster."""
            for folder in Path(name).glob("stream-*"):
                (mine / folder.name).mkdir(parents=True, exist_ok=True)
            return id_

        rows = self.rows("ab").select(fn.udf(with_folder, "string")("id").alias("id"))
        sink = DeltaSink(JobTable(f"/proc/self/cwd/{name}"), "orders")
        error = self.assertRaises(BadPath, sink, rows, 0)
        self.assertIn(name, str(error))
        self.assertFalse(DeltaLog.exists(str(mine)))
        folder, staged = self.files("ab", 1)
        shutil.rmtree(Path(self.table, folder))
        self.assertRaises(BadPath, self.sink(), staged, 0)

    def test_empty(self) -> None:
        """A batch without rows adds none, and the next one is stored."""
        sink = self.sink()
        sink(self.rows("a").where("id > 'b'"), 0)
        sink(self.rows("b"), 1)
        self.assert_stored("b", 1)

    def test_unnamed(self) -> None:
        """Outside of a streaming query its name has to be given, and the error says where."""
        sink = disque_delta(self.table)
        error = self.assertRaises(BadOption, sink, self.rows("a"), 0)
        self.assertIn("'app'", str(error))
        disque_delta(self.table, "orders")(self.rows("a"), 0)
        self.assert_stored("a", 1)
