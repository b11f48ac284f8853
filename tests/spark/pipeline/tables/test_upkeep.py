"""Tables that grow for years: merged, looked at as they were, and without what was deleted."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from disque_tx.spark.errors import BadTable, Conflict
from disque_tx.spark.pipeline.ingest.ingestion import ingest
from disque_tx.spark.pipeline.tables import deltalog, upkeep
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.tables.events import EventTableLog, event_schema
from disque_tx.spark.pipeline.tables.table import EventTable, known_events
from disque_tx.spark.pipeline.tables.upkeep import (
    INGEST,
    Optimized,
    expire,
    forget,
    next_number,
    optimize,
    vacuum,
)
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.logs import BOOT, Event, Node, job_id, node_id, segment


class UpkeepCase(PipelineCase):
    """A table of several small ingests. ``events``: all events that were ingested."""

    def setUp(self) -> None:
        super().setUp()
        self.node = Node("a")
        self.events: list[Event] = self.node.events

    def grow(self, times: int, day_s: int = 0, queue: str = "mail") -> None:
        """Ingest more events, four each time; ``day_s``: when they happened."""
        for _ in range(times):
            before = len(self.events)
            for number in (before, before + 1):
                self.node.log(day_s + number, "delivered", job_id(number), queue=queue)
                self.node.log(day_s + number, "acked", job_id(number), queue=queue)
            segment(self.folder / "logs", self.events[before:])
            ingest(self.spark, [str(self.folder / "logs")], self.table)

    def table_files(self) -> set[str]:
        """The files with events on the disk."""
        found = Path(self.table).rglob("*.parquet")
        names = {str(path.relative_to(self.table)) for path in found}
        return {name for name in names if not name.startswith("_")}


class OptimizeTests(UpkeepCase):
    """Files are merged, and events stay."""

    def test_merged(self) -> None:
        """Small files of a day become one; each event is in the table once, new ones are added
        after that, and known ones are still known."""
        self.grow(3)
        self.grow(1, day_s=86_400)
        self.assertEqual(Optimized(merged=3, new=1, files=2), optimize(self.table))
        self.assertEqual(Optimized(merged=0, new=0, files=2), optimize(self.table))
        self.grow(1)
        copy = segment(self.folder / "copy", self.events)
        renamed = copy.rename(copy.with_name("x.jsonl.zst"))
        report = ingest(self.spark, [str(renamed)], self.table)
        self.assertEqual((0, 20), (report.new, report.duplicates))
        self.assert_each_once(self.events)

    def test_automatic(self) -> None:
        """An ingest merges when a day has many small files, so that readers do not open more and
        more of them."""
        self.patch(upkeep, "_FILES_MAX", 3)
        for _ in range(5):
            self.grow(1)
            self.assertLess(len(EventTable(self.spark, self.table).log.files()), 3)
        self.assert_each_once(self.events)

    def test_ingest_meanwhile(self) -> None:
        """A merge does not undo what is ingested at the same time, nor the other way round."""
        self.grow(3)
        table = EventTable(self.spark, self.table)
        self.grow(1)
        table.log.compact(["2026-11-20"], "job_id")
        self.assert_each_once(self.events)
        self.assertEqual(3, table.log.last(INGEST))

    def test_ingest_during(self) -> None:
        """What is ingested while files are merged or removed, which may take minutes, stays known:
        the next ingest does not add it once more."""
        for upkeep_of in (lambda: optimize(self.table), lambda: vacuum(self.table, keep_hours=1)):
            self.grow(2)
            left = Path(self.table, "left.parquet")
            left.touch()
            os.utime(left, (0, 0))
            self.during_upkeep(upkeep_of)
            copy = segment(self.folder / "copy", self.events)
            renamed = copy.rename(copy.with_name(f"{len(self.events)}.jsonl.zst"))
            self.assertEqual(0, ingest(self.spark, [str(renamed)], self.table).new)
            self.assert_each_once(self.events)

    def during_upkeep(self, do: Callable[[], object]) -> None:
        """Do what commits by itself, and ingest when it has read the notes of the table and has
        not committed yet."""
        properties = deltalog._properties
        grown: list[None] = []

        def ingesting(numbers: Mapping[str, int], notes: Mapping[str, Any] | None) -> object:
            found = properties(numbers, notes)
            if not grown:
                grown.append(None)
                self.grow(1)
            return found

        self.patch(deltalog, "_properties", ingesting)
        do()
        self.patch(deltalog, "_properties", properties)
        self.assertEqual([None], grown)

    def test_nothing_to_delete(self) -> None:
        """What is ingested while there is nothing to delete does not count as deleted, or less than
        that."""
        self.grow(1)
        log = DeltaLog(self.table)
        self.grow(1)
        self.assertEqual(0, log.delete("dt < DATE '2001-01-01'", {INGEST: log.last(INGEST) + 1}))

    def test_looked_at_once(self) -> None:
        """An ingest that finds nothing new opens the table once, and lists the folder of its log as
        often: in the log of a large table there are thousands of files."""
        self.grow(1)
        opened: list[str] = []

        class Counted(DeltaTable):
            """Takes note of who looks for a table."""

            def __init__(self, root: str, **more: Any) -> None:
                opened.append("open")
                super().__init__(root, **more)

            @staticmethod
            def is_deltatable(*words: Any) -> bool:
                opened.append("look")
                return DeltaTable.is_deltatable(*words)

        self.patch(deltalog, "DeltaTable", Counted)
        self.assertEqual(0, ingest(self.spark, [str(self.folder / "logs")], self.table).new)
        self.assertEqual(["open"], opened)

    def test_files_by_job(self) -> None:
        """Statistics of files tell readers which of them may have a job."""
        self.grow(1)
        (action,) = pa.table(DeltaLog(self.table)._table.get_add_actions(flatten=True)).to_pylist()
        self.assertEqual((job_id(0), job_id(1)), (action["min.job_id"], action["max.job_id"]))
        self.assertEqual("2026-11-20T19:00:00", f"{action['min.time']:%Y-%m-%dT%H:%M:%S}")
        self.assertEqual(4, action["num_records"])


class VersionTests(UpkeepCase):
    """The table as it was."""

    def test_as_of(self) -> None:
        """An earlier version or time shows the events of that time, also after merges, until
        ``vacuum``."""
        self.grow(1)
        first = EventTable(self.spark, self.table).log.version
        moment = EventTable(self.spark, self.table).log.history(1)[0]["timestamp"]
        self.grow(2)
        optimize(self.table)
        at = datetime.fromtimestamp(moment / 1000, UTC).isoformat()
        for as_of in (first, at):
            self.assertEqual(4, EventTable(self.spark, self.table, as_of=as_of).events().count())
        self.assertRaises(BadTable, EventTable, self.spark, self.table, as_of=99)
        self.assertRaises(BadTable, EventTable, self.spark, self.table, as_of="yesterday")
        self.assertRaises(BadTable, EventTable, self.spark, self.table, as_of="2001-01-01")

    def test_vacuum(self) -> None:
        """Files that left the table stay as long as was asked for, and then they go."""
        self.grow(2)
        optimize(self.table)
        self.assertEqual(0, vacuum(self.table))
        self.assertEqual(3, len(self.table_files()))
        before = EventTableLog(self.table).log.version - 1
        EventTableLog(self.table, as_of=before)
        self.assertEqual(2, vacuum(self.table, keep_hours=0))
        error = self.assertRaises(BadTable, EventTableLog, self.table, as_of=before)
        self.assertIn(f"as of {before} any more: ", str(error))
        self.assertIn("removed 2 files of that version", str(error))
        self.assertEqual(1, len(self.table_files()))
        self.assert_each_once(self.events)

    def test_transactions(self) -> None:
        """How far a node was read is a transaction of the table, for any program to see; a number
        cannot be used by two processes."""
        self.grow(2)
        log = DeltaLog(self.table)
        self.assertEqual((1, 7), (log.last(INGEST), log.last(f"ingest/{node_id('a')}/{BOOT}")))
        other = DeltaLog(self.table)
        log.commit([], {INGEST: 2})
        self.assertRaises(Conflict, other.commit, [], {INGEST: 2})

    def test_more_columns(self) -> None:
        """A table of a version with fewer columns gets the others, and columns that somebody else
        added stay."""
        schema = event_schema()
        old = pa.schema(
            [field for field in schema if field.name != "note"] + [("mine", pa.int64())]
        )
        DeltaLog.create(self.table, old, "events", ("dt",))
        self.grow(1)
        columns = EventTable(self.spark, self.table).events().columns
        self.assertEqual({*schema.names, "mine"}, set(columns))
        self.assert_each_once(self.events)

    def test_other_writers(self) -> None:
        """Commits of other programs in between do not make known events unknown."""
        self.grow(1)
        rows = EventTable(self.spark, self.table).events().limit(1).toArrow()
        rows = rows.set_column(rows.column_names.index("seq"), "seq", pa.array([99], pa.int64()))
        for _ in range(25):
            write_deltalake(self.table, rows.slice(0, 0), mode="append")
        runs, _ = known_events(self.spark, EventTableLog(self.table))
        self.assertEqual(4, runs.events)
        self.grow(1)
        self.assertEqual(8, EventTable(self.spark, self.table).events().count())


class DeletionTests(UpkeepCase):
    """Events that must go."""

    def test_expire(self) -> None:
        """Whole days are deleted, and an ingest of the same logs does not bring them back: a table
        that keeps everything ends when the disk is full."""
        self.grow(2)
        self.grow(1, day_s=86_400)
        self.assertEqual(8, expire(self.table, date(2026, 11, 21)))
        self.assertEqual(0, expire(self.table, date(2026, 11, 21)))
        copy = segment(self.folder / "copy", self.events)
        renamed = copy.rename(copy.with_name("x.jsonl.zst"))
        self.assertEqual(0, ingest(self.spark, [str(renamed)], self.table).new)
        self.assert_each_once(self.events[8:])

    def test_forget(self) -> None:
        """The events of a queue are gone from the table, from its earlier versions, and from the
        disk; nothing else is."""
        self.grow(1)
        self.grow(1, queue="it's private")
        self.grow(1)
        optimize(self.table)
        self.add_checksums()
        done = forget(self.table, "it's private", None)
        # Those that were ingested, and the merged one; not what Spark keeps to check them.
        self.assertEqual((4, [], 4), (done.events, done.left, done.removed))
        self.assertEqual([], [*Path(self.table).glob("batch-*/**/*.crc")])
        self.assertEqual(0, vacuum(self.table, keep_hours=0))
        self.assert_each_once(self.events[:4] + self.events[8:])
        self.assertEqual({file.path for file in DeltaLog(self.table).files()}, self.table_files())
        for name in self.table_files():
            self.assertNotIn(b"it's private", Path(self.table, name).read_bytes())
        self.grow(1)
        self.assert_each_once(self.events[:4] + self.events[8:])

    def add_checksums(self) -> None:
        """Add what Spark keeps beside each file that it writes, as it does when a batch is written
        again without events that are known."""
        for name in self.table_files():
            file = Path(self.table, name)
            file.with_name(f".{file.name}.crc").touch()

    def test_forget_job(self) -> None:
        """A job is forgotten by its ID, in one queue if that is named, too."""
        self.grow(1)
        self.assertEqual(0, forget(self.table, "other", job_id(0)).events)
        self.add_checksums()
        self.assertEqual(2, forget(self.table, "mail", job_id(0)).events)
        self.assert_each_once(self.events[2:])
        self.assertEqual([], [*Path(self.table).glob("batch-*/**/*.crc")])
        self.assertGreater(next_number(EventTable(self.spark, self.table)), 2)
