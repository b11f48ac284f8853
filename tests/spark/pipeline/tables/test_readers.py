"""The table as programs read it that know nothing of this pipeline."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars
from deltalake import DeltaTable

from disque_tx.spark.pipeline.ingest.ingestion import ingest
from disque_tx.spark.pipeline.lifecycle.results import lifecycle
from disque_tx.spark.pipeline.tables.table import EventTable, Table
from disque_tx.spark.pipeline.tables.upkeep import optimize
from tests.spark.pipeline import shop
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.logs import write

Rows = list[tuple[Any, ...]]
_SQL = (
    "SELECT node, seq, kind, job_id, CAST(dt AS VARCHAR), epoch_us(time) FROM events ORDER BY 1, 2"
)


def by_duckdb(path: str) -> Rows:
    """DuckDB, over the files that deltalake names."""
    connection = duckdb.connect()
    connection.register("events", DeltaTable(path).to_pyarrow_dataset())
    return connection.sql(_SQL).fetchall()


def by_polars(path: str) -> Rows:
    """Polars."""
    events = polars.scan_delta(path).select(
        "node",
        "seq",
        "kind",
        "job_id",
        polars.col("dt").cast(str),
        polars.col("time").dt.epoch("us"),
    )
    return events.sort("node", "seq").collect().rows()


def by_pyarrow(path: str) -> Rows:
    """pyarrow, by deltalake."""
    rows = DeltaTable(path).to_pyarrow_table().to_pylist()
    found = [
        (row["node"], row["seq"], row["kind"], row["job_id"], str(row["dt"]), _micros(row["time"]))
        for row in rows
    ]
    return sorted(found, key=lambda row: row[:2])


def _micros(time: Any) -> int:
    return int(time.timestamp()) * 1_000_000 + int(time.microsecond)


class ReaderTests(PipelineCase):
    """The same rows for everybody."""

    readers: tuple[Callable[[str], Rows], ...] = (by_duckdb, by_polars, by_pyarrow)

    def by_spark(self, path: str) -> Rows:
        """Our own reader."""
        events = EventTable(self.spark, path).events()
        rows = events.selectExpr(
            "node", "seq", "kind", "job_id", "CAST(dt AS STRING)", "unix_micros(time)"
        )
        return sorted((tuple(row) for row in rows.collect()), key=lambda row: row[:2])

    def test_events(self) -> None:
        """Events are the same as written, after several ingests, and after files were merged."""
        for at, node in enumerate(shop.nodes()):
            ingest(self.spark, [str(write(self.folder / f"{at}.jsonl", node.events))], self.table)
        expected = self.by_spark(self.table)
        self.assertEqual(sum(len(node.events) for node in shop.nodes()), len(expected))
        for reader in self.readers:
            self.assertEqual(expected, reader(self.table), reader.__doc__)
        optimize(self.table)
        self.assertEqual(expected, self.by_spark(self.table))
        for reader in self.readers:
            self.assertEqual(expected, reader(self.table), reader.__doc__)

    def test_results(self) -> None:
        """The tables of ``lifecycle`` have the same rows for all, and none twice after they were
        replaced."""
        table, out = self.ingested(*shop.nodes()), str(self.folder / "out")
        lifecycle(self.spark, table, out)
        before = DeltaTable(f"{out}/jobs").version()
        paths = lifecycle(self.spark, table, out, whole=True).paths
        for part, path in paths.items():
            rows = Table(self.spark, path).rows().count()
            self.assertEqual(rows, polars.read_delta(path).height, part)
            self.assertEqual(rows, DeltaTable(path).to_pyarrow_table().num_rows, part)
        jobs = polars.read_delta(f"{out}/jobs")
        self.assertEqual(shop.JOBS + 8, jobs.height)
        old = DeltaTable(f"{out}/jobs", version=before).to_pyarrow_table()
        self.assertEqual(jobs.height, old.num_rows)
        self.assertEqual([], list(Path(out).glob("*/_SUCCESS")))
