"""Tables to which each job is added once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.errors import BadTable
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.tables.footers import Staged
from disque_tx.spark.pipeline.tables.jobs import JobTable, unfinished, write

_SCHEMA = pa.schema([("id", pa.string()), ("body", pa.binary())])


class JobTableTests(SynchronousTestCase):
    """One table, and several writers."""

    def setUp(self) -> None:
        self.root = str(Path(self.mktemp()).resolve())

    def add(
        self, writer: JobTable, ids: Sequence[str], app: str | None = None, batch: int = 0
    ) -> int:
        """Add jobs with these IDs; returns how many were new."""
        folder = f"batch-{len(unfinished(self.root, ''))}"
        rows = pa.table({"id": list(ids), "body": [b"x"] * len(ids)}, schema=_SCHEMA)
        staged = Staged(folder, [write(self.root, rows, folder)])
        return writer.add(staged, _SCHEMA, app, batch)

    def stored(self) -> list[str]:
        """The IDs in the table, as another reader sees them."""
        paths = [f"{self.root}/{file.path}" for file in DeltaLog(self.root).files()]
        rows = duckdb.read_parquet(paths).fetchall()
        return sorted(row[0] for row in rows)

    def files(self) -> int:
        """How many files lie in the folder, whether they are part of the table or not."""
        return len(list(Path(self.root).rglob("*.parquet")))

    def test_again(self) -> None:
        """A batch that runs again adds nothing, and leaves no file."""
        for writer in (JobTable(self.root), JobTable(self.root)):
            self.add(writer, "ab", "query", 0)
        self.assertEqual((["a", "b"], 1), (self.stored(), self.files()))
        self.assertEqual((0, -1), (JobTable(self.root).last("query"), writer.last("other")))

    def test_delivered_again(self) -> None:
        """A job that is in the table already is left out of a later batch, even after a restart."""
        writer = JobTable(self.root)
        self.assertEqual(2, self.add(writer, "ab", "query", 0))
        self.assertEqual(1, self.add(writer, "bc", "query", 1))
        self.assertEqual(1, self.add(JobTable(self.root), "acd", "query", 2))
        self.assertEqual(0, self.add(JobTable(self.root), "abcd"))
        self.assertEqual((list("abcd"), 3), (self.stored(), self.files()))

    def test_window(self) -> None:
        """What is remembered has a bound: a job is recognised among the last ones only."""
        writer = JobTable(self.root, window=3)
        for ids in ("ab", "cd", "ef"):
            self.add(writer, ids)
        self.assertEqual(1, self.add(writer, "ad"))
        self.assertEqual(0, self.add(JobTable(self.root, window=3), "a"))
        self.assertEqual(1, self.add(JobTable(self.root, window=1), "b"))
        self.assertLessEqual(len(writer._ids), 4)

    def test_window_after_restart(self) -> None:
        """After a restart the jobs that were added last are remembered longest."""
        for ids in ("ab", "cd", "ef"):
            self.add(JobTable(self.root), ids)
        writer = JobTable(self.root, window=4)
        for ids in ("g", "hi"):
            self.add(writer, ids)
        self.assertEqual(0, self.add(writer, "f"))

    def test_at_the_same_time(self) -> None:
        """Of two writers that commit the same job at the same time, the second one sees what the
        first has added."""
        first = JobTable(self.root)
        self.add(first, "a")

        def overtake(step: str) -> None:
            if step == "opened":
                self.add(first, "bc")

        class Slow(JobTable):
            def _learn(self, log: DeltaLog) -> None:
                super()._learn(log)
                overtake("opened" if not len(self._ids) > 1 else "")

        self.assertEqual(1, self.add(Slow(self.root), "bd"))
        self.assertEqual(list("abcd"), self.stored())

    def test_steps(self) -> None:
        """Who follows the steps sees them in their order."""
        steps: list[str] = []
        self.add(JobTable(self.root, step=steps.append), "a")
        self.assertEqual(["written", "committed"], steps)

    def test_more_columns(self) -> None:
        """Columns that a query adds later are added to the table."""
        writer = JobTable(self.root)
        self.add(writer, "a")
        schema = _SCHEMA.append(pa.field("price", pa.int64()))
        rows = pa.table({"id": ["b"], "body": [b"x"], "price": [1]}, schema=schema)
        writer.add(Staged("more", [write(self.root, rows, "more")]), schema)
        self.assertEqual(["id", "body", "price"], DeltaLog(self.root).schema.names)

    def test_refused(self) -> None:
        """Rows without IDs are refused, and so is a table of something else."""
        with self.assertRaises(BadTable) as raised:
            JobTable(self.root).add(Staged("none", []), pa.schema([("body", pa.binary())]))
        self.assertIn("'id'", str(raised.exception))
        DeltaLog.create(self.root, _SCHEMA, "events")
        self.assertRaises(BadTable, self.add, JobTable(self.root), "a")
