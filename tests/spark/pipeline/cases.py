"""A shared session, folders, and tables of given events, for tests of the pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.pipeline.engines.runner import SETTINGS
from disque_tx.spark.pipeline.ingest.batches import IngestReport, Step
from disque_tx.spark.pipeline.ingest.ingestion import ingest
from disque_tx.spark.pipeline.tables.table import EventTable, Table
from tests.spark.pipeline.logs import Event, Node, write
from tests.spark.shared import shared_session

#: For a few hundred rows, compiling a query would take longer than running it.
_SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class PipelineCase(SynchronousTestCase):
    """Tests with a session that has the settings of the pipeline, but fewer partitions."""

    spark: SparkSession
    settings: Mapping[str, str] = {**SETTINGS, **_SMALL}

    def setUp(self) -> None:
        self.spark = shared_session()
        for key, value in self.settings.items():
            before = self.spark.conf.get(key, None)
            self.spark.conf.set(key, value)
            self.addCleanup(self._restore, key, before)
        self.folder = Path(self.mktemp()).resolve()
        self.folder.mkdir(parents=True)
        self.table = str(self.folder / "table")

    def _restore(self, key: str, value: str | None) -> None:
        if value is None:
            self.spark.conf.unset(key)
        else:
            self.spark.conf.set(key, value)

    def write(self, *nodes: Node) -> Path:
        """Write the log of each node to one file; returns their folder."""
        for at, node in enumerate(nodes):
            write(self.folder / "events" / "dt=2026-11-20" / f"{at}.jsonl.zst", node.events)
        return self.folder / "events"

    def add(
        self, *paths: str | Path, into: str | None = None, step: Step = lambda _: None
    ) -> IngestReport:
        """Ingest into a table, by default that of this test, by the engine of this test."""
        return ingest(self.spark, map(str, paths), into or self.table, step)

    def ingested(self, *nodes: Node) -> str:
        """The table of the events of these nodes."""
        self.add(self.write(*nodes))
        return self.table

    def read(self, path: str) -> DataFrame:
        """The rows of a Delta table."""
        return Table(self.spark, path).rows()

    def ids(self) -> list[tuple[str, str]]:
        """The source and ID of each event in the table, sorted."""
        events = EventTable(self.spark, self.table).events()
        rows = events.select("node", "boot", "seq").collect()
        return sorted((f"disque:{row.node}", f"{row.boot}.{row.seq}") for row in rows)

    def assert_each_once(self, events: Iterable[Event]) -> None:
        """Assert that the table contains exactly these events, each once."""
        expected = sorted({(event["source"], event["id"]) for event in events})
        self.assertEqual(expected, self.ids())
