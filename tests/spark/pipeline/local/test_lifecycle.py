"""``lifecycle`` by DuckDB gives the rows that Spark gives, in every column."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from disque_tx.spark.errors import BadTable, OutputExists, OutputOverlaps
from disque_tx.spark.pipeline.ingest.ingestion import ingest
from disque_tx.spark.pipeline.lifecycle import results
from disque_tx.spark.pipeline.lifecycle.made import RESULTS
from disque_tx.spark.pipeline.lifecycle.results import lifecycle as by_spark
from disque_tx.spark.pipeline.local import jobs
from disque_tx.spark.pipeline.local.database import Database
from disque_tx.spark.pipeline.local.lifecycle import lifecycle as by_duckdb
from disque_tx.spark.pipeline.published import ResultTable
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from tests.spark.pipeline import shop
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.lifecycle.test_lifecycle import random_nodes
from tests.spark.pipeline.local.tables import anything, rows
from tests.spark.pipeline.logs import Node, job_id, write


class Killed(Exception):
    """The process was killed."""


def killed_at(number: int, method: Callable[..., object]) -> Callable[..., object]:
    """A method at whose call of this number, from 0, the process is killed."""
    calls = itertools.count()

    def called(*words: object, **more: object) -> object:
        if next(calls) == number:
            raise Killed
        return method(*words, **more)

    return called


class LifecycleTests(PipelineCase):
    """The same events, by both engines."""

    def setUp(self) -> None:
        super().setUp()
        self.spark_out, self.duckdb_out = (self.folder / name for name in ("spark", "duckdb"))

    def assert_same(self, expected: Path, actual: Path) -> None:
        """Assert that all tables of two folders have the same columns and rows."""
        for part in RESULTS:
            (columns, wanted), (found_columns, found) = rows(expected / part), rows(actual / part)
            self.assertEqual(columns, found_columns, part)
            self.assertEqual(len(wanted), len(found), part)
            for one, other in zip(wanted, found, strict=True):
                self.assertEqual(one, other, f"{part}: {columns}")

    def assert_engines_agree(self, *nodes: Node, window_s: int = 60) -> None:
        """Assert that both engines make the same tables of the events of these nodes."""
        table = self.ingested(*nodes)
        by_spark(self.spark, table, str(self.spark_out), window_s)
        by_duckdb(table, str(self.duckdb_out), window_s)
        self.assert_same(self.spark_out, self.duckdb_out)

    def test_shop(self) -> None:
        """All kinds of findings, and an hour as it may really be, are the same."""
        self.assert_engines_agree(*shop.nodes(), window_s=300)

    def test_random(self) -> None:
        """Hundreds of jobs on three nodes, moves and several deliveries included, are the same."""
        self.assert_engines_agree(*random_nodes(7, 300))

    def test_anything(self) -> None:
        """Events in any order, with missing values and unknown kinds, are the same."""
        self.assert_engines_agree(*anything(1, "abcd", 400), window_s=3600)

    def test_parts(self) -> None:
        """Jobs that are not computed all at once are the same, and each is in one part."""
        self.patch(jobs, "JOBS_AT_ONCE", 30)
        self.assert_engines_agree(*random_nodes(8, 100))
        files = [file.path for file in DeltaLog(str(self.duckdb_out / "jobs")).files()]
        self.assertEqual(
            [f"part-{at}-0.parquet" for at in range(4)],
            sorted(path.rpartition("/")[2] for path in files),
        )

    def test_many_nodes(self) -> None:
        """More nodes than a mask has bits are all found."""
        nodes = [Node("a", boot) for boot in range(130)]
        for at, node in enumerate(nodes):
            node.log(at, "delivered", job_id(at % 3), wait_ms=at)
            node.events[0]["source"] = f"disque:{at:040x}"
        self.assert_engines_agree(*nodes)

    def test_no_events(self) -> None:
        """A table without events gives tables without rows."""
        (self.folder / "events").mkdir()
        self.assert_engines_agree()

    def test_taken_over(self) -> None:
        """Spark goes on where DuckDB ended, by the new events alone, and DuckDB where Spark did;
        the tables are always those of a run over all events."""
        self.patch(results, "WHOLE_BELOW", 0)
        out, events = self.folder / "out", [e for n in random_nodes(3, 200) for e in n.events]
        for at in range(3):
            path = write(self.folder / f"{at}.jsonl", events[at::3])
            ingest(self.spark, [str(path)], self.table)
            if at % 2:
                said = by_spark(self.spark, self.table, str(out)).how
                self.assertIn("Brought up to date", said)
            else:
                said = by_duckdb(self.table, str(out)).how
                self.assertEqual("Computed from all events, as --engine duckdb always does.", said)
            for again in (
                by_duckdb(self.table, str(out)),
                by_spark(self.spark, self.table, str(out)),
            ):
                self.assertEqual("Up to date: no event was added.", again.how)
            whole = self.folder / f"whole-{at}"
            by_duckdb(self.table, str(whole))
            self.assert_same(whole, out)
            notes = [DeltaLog(str(folder / "jobs")).notes() for folder in (whole, out)]
            self.assertEqual(notes[0], notes[1])

    def test_protection(self) -> None:
        """A wrong name destroys nothing: as with Spark, only results of the same table and window
        are replaced, or others on request; and nothing is left beside the results."""
        table = self.ingested(*random_nodes(6, 5))
        out = str(self.duckdb_out)
        by_duckdb(table, out)
        with self.assertRaises(OutputExists) as raised:
            by_duckdb(table, out, 300)
        self.assertIn("add --whole to replace them", str(raised.exception))
        by_duckdb(table, out, 300, whole=True)
        self.assertRaises(OutputOverlaps, by_duckdb, table, f"{table}/out")
        self.assertRaises(BadTable, by_duckdb, str(self.folder / "no"), out)
        self.assertEqual([], list(self.folder.glob(".*")))
        self.assertEqual(set(RESULTS), {path.name for path in Path(out).iterdir()})

    def test_killed(self) -> None:
        """Killed before any of the tables is written or published, a run is followed by one that
        makes all of them, and readers find whole tables meanwhile."""
        table = self.ingested(*random_nodes(8, 20))
        by_spark(self.spark, table, str(self.spark_out))
        for owner, name in ((Database, "write"), (ResultTable, "publish")):
            method = getattr(owner, name)
            for number in (0, 3):
                out = self.folder / f"{name}-{number}"
                self.patch(owner, name, killed_at(number, method))
                self.assertRaises(Killed, by_duckdb, table, str(out))
                self.patch(owner, name, method)
                by_duckdb(table, str(out))
                self.assert_same(self.spark_out, out)

    def test_as_of(self) -> None:
        """The results of an earlier version of the table are those of then."""
        first, second = random_nodes(4, 60)[:2]
        table = self.ingested(first)
        version = DeltaLog(table).version
        by_spark(self.spark, table, str(self.spark_out))
        ingest(self.spark, [str(write(self.folder / "more.jsonl", second.events))], table)
        by_duckdb(table, str(self.duckdb_out), as_of=version)
        self.assert_same(self.spark_out, self.duckdb_out)
