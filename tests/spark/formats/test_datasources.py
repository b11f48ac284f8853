"""What Spark passes to the formats, and what they refuse before anything runs."""

from __future__ import annotations

from typing import Any

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.errors import BadOption
from disque_tx.spark.files.live import LiveEventStreamReader
from disque_tx.spark.formats.datasources import DisqueSource, EventSource
from disque_tx.spark.schema import EVENTS_READ_DDL, arrow_schema

_NODES = {"nodes": "http://127.0.0.1:1"}


class EventTests(SynchronousTestCase):
    """``format("disque_events")``."""

    columns = from_arrow_schema(arrow_schema(EVENTS_READ_DDL))

    def stream(self, **options: str) -> LiveEventStreamReader:
        """A stream of the events of nodes."""
        reader = EventSource({**_NODES, **options}).streamReader(self.columns)
        assert isinstance(reader, LiveEventStreamReader)
        return reader

    def files(self, **options: str) -> int:
        """How many files a batch may have."""
        limit: Any = self.stream(**options).getDefaultReadLimit()
        return int(limit.max_files)

    def test_files(self) -> None:
        """A batch may be as small as one file, so that a query that ran out of memory gets on; and
        has a bound if nobody says so."""
        for number in (1, 2, 1_000):
            self.assertEqual(number, self.files(maxfilespertrigger=str(number)))
        self.assertEqual(1_000, self.files())
        for wrong in ("0", "1001", "-1", "x"):
            error = self.assertRaises(BadOption, self.stream, maxfilespertrigger=wrong)
            self.assertIn("maxfilespertrigger", str(error).lower())

    def test_columns(self) -> None:
        """Columns of one's own are refused in words, before a task fails over them."""
        for read in (EventSource(_NODES).streamReader, EventSource(_NODES).reader):
            error = self.assertRaises(BadOption, read, StructType())
            self.assertIn("Leave schema() out", str(error))

    def test_kinds(self) -> None:
        """A stream needs nodes or a table, and a table is only for streams."""
        error = self.assertRaises(BadOption, EventSource({}).streamReader, self.columns)
        self.assertIn("needs the option nodes", str(error))
        error = self.assertRaises(BadOption, EventSource({"table": "t"}).reader, self.columns)
        self.assertIn("readStream", str(error))


class QueueTests(SynchronousTestCase):
    """``format("disque")``."""

    def test_overwrite(self) -> None:
        """A queue cannot be overwritten: nothing is deleted for who tries."""
        source = DisqueSource({"disque.servers": "a:1", "queue": "q"})
        schema = StructType().add("body", "string")
        for write in (source.writer, source.streamWriter):
            error = self.assertRaises(BadOption, write, schema, True)
            self.assertIn("append", str(error))
            write(schema, False)
