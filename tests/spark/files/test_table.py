"""A table of events as a stream."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.errors import BadOption, BadTable
from disque_tx.spark.files.table import EventTableReader
from disque_tx.spark.formats.datasources import EventSource
from disque_tx.spark.offered import ReadAllAvailable
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.tables.events import EVENT_COLUMNS, EVENTS, event_schema
from disque_tx.spark.pipeline.tables.footers import written
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.logs import Node, job_id

_DAY = datetime(2026, 11, 20, 23, 59, tzinfo=UTC)


class TableReaderTests(SynchronousTestCase):
    """The offsets and the batches, without Spark."""

    def setUp(self) -> None:
        self.root = str(Path(self.mktemp()).resolve())
        self.log = DeltaLog.create(self.root, event_schema(), EVENTS, ("dt",))
        self.reader = EventTableReader(self.root)
        self.offset = self.reader.initialOffset()
        self.seq = 0

    def add(self, count: int) -> None:
        """Add a file of events, whose numbers go on."""
        rows = [{"seq": self.seq + at, "time": _DAY, "kind": "acked"} for at in range(count)]
        self.seq += count
        path = Path(self.root, f"batch-{self.seq}", f"dt={_DAY:%Y-%m-%d}", "x.parquet")
        path.parent.mkdir(parents=True)
        fields = [event_schema().field(name) for name in rows[0]]
        pq.write_table(pa.Table.from_pylist(rows, pa.schema(fields)), path)
        self.log.commit(written(self.root, f"batch-{self.seq}"))

    def batch(self, reader: EventTableReader | None = None) -> list[dict[str, Any]]:
        """The rows of the next batch."""
        reader = reader or self.reader
        start, self.offset = self.offset, reader.latestOffset(self.offset, ReadAllAvailable())
        return self.between(start, self.offset)

    def between(self, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
        """The rows between two offsets, in order."""
        tasks = self.reader.partitions(start, end)
        rows = [
            row for task in tasks for part in self.reader.read(task) for row in part.to_pylist()
        ]
        return sorted(rows, key=lambda row: row["seq"])

    def numbers(self) -> list[int]:
        """The numbers of the events of the next batch."""
        return [row["seq"] for row in self.batch()]

    def test_each_once(self) -> None:
        """The first batch has the table as it is, later ones what was added; a batch that is read
        again has the same events. Merging and deleting adds nothing."""
        self.add(2)
        self.add(1)
        self.assertEqual([0, 1, 2], self.numbers())
        self.assertEqual([], self.numbers())
        before = self.offset
        self.add(2)
        self.log.compact(["2026-11-20"])
        self.assertEqual([3, 4], self.numbers())
        between = self.offset
        self.log.delete("seq = 1", {})
        self.assertEqual([], self.numbers())
        self.add(1)
        self.assertEqual([5], self.numbers())
        again = [row["seq"] for row in self.between(before, between)]
        self.assertEqual([3, 4], again)

    def test_columns(self) -> None:
        """Rows have all columns of a table of events, also those that were not written, with the
        day of the event in UTC."""
        self.add(1)
        (row,) = self.batch()
        self.assertEqual(event_schema().names, list(row))
        self.assertEqual((_DAY, date(2026, 11, 20), None), (row["time"], row["dt"], row["note"]))

    def test_available_now(self) -> None:
        """A query that reads what is there does not run after a table that grows."""
        self.add(1)
        self.reader.prepareForTriggerAvailableNow()
        self.add(1)
        self.assertEqual([0], self.numbers())
        self.assertEqual({"version": 2}, self.reader.reportLatestOffset())

    def test_gone(self) -> None:
        """If it is not known any more what was added, the query fails, and does not skip it."""
        self.add(1)
        self.numbers()
        self.add(1)
        self.log.compact(["2026-11-20"])
        self.log.vacuum(0)
        with self.assertRaises(BadTable) as raised:
            self.numbers()
        self.assertIn("Start the query with a new checkpoint", str(raised.exception))

    def test_refused(self) -> None:
        """A table of something else, and options that do not fit, are errors."""
        other = DeltaLog.create(f"{self.root}-2", event_schema(), "numbers")
        self.assertRaises(BadTable, EventTableReader, other.root)
        table = EventSource({"table": self.root})
        self.assertEqual(f"{EVENT_COLUMNS}, dt DATE", table.schema())
        self.assertRaises(BadOption, table.reader, None)
        self.assertRaises(BadOption, EventSource({}).streamReader, None)


class StreamTests(PipelineCase):
    """The same by Spark."""

    def test_stream(self) -> None:
        """A query goes on after its end with what was ingested since."""
        nodes = [Node("a"), Node("b")]
        for number, node in enumerate(nodes):
            node.add(number, job_id(number, node.letter))
            self.ingested(*nodes[: number + 1])
            stream = self.spark.readStream.format("disque_events").option("table", self.table)
            writer = stream.load().writeStream.trigger(availableNow=True)
            checkpoint = str(self.folder / "checkpoint")
            query = writer.option("checkpointLocation", checkpoint).start(
                str(self.folder / "copy"), format="parquet"
            )
            query.awaitTermination()
            found = self.spark.read.parquet(str(self.folder / "copy"))
            self.assertEqual(2 * (number + 1), found.select("node", "seq").distinct().count())
            self.assertEqual(2 * (number + 1), found.count())
