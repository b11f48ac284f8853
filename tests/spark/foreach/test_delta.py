"""Batches of a stream are added to a Delta table, each once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
from pyspark.sql import DataFrame

from disque_tx.spark.errors import BadOption
from disque_tx.spark.foreach.delta import DeltaSink, disque_delta
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.tables.jobs import JobTable
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
        # It is not its first batch, so that it leaves what others wrote.
        sink._is_clean = True
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

    def test_unnamed(self) -> None:
        """Outside of a streaming query its name has to be given, and the error says where."""
        sink = disque_delta(self.table)
        error = self.assertRaises(BadOption, sink, self.rows("a"), 0)
        self.assertIn("'app'", str(error))
        disque_delta(self.table, "orders")(self.rows("a"), 0)
        self.assert_stored("a", 1)
