"""Tables of the layout before Delta become Delta tables, and lose nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from disque_tx.spark.errors import BadTable
from disque_tx.spark.pipeline.ingest.ingestion import ingest
from disque_tx.spark.pipeline.ingest.lines import FilePart, read
from disque_tx.spark.pipeline.ingest.rows import event_rows
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.tables.upkeep import forget, vacuum
from disque_tx.spark.pipeline.transfer import former
from disque_tx.spark.pipeline.transfer.former import Converted, convert
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.logs import BOOT, Event, Node, job_id, node_id, segment

_OLD_COLUMNS = ("backoff_ms", "note", "successor", "schedule", "occurrence_s")


class Killed(Exception):
    """The process was killed."""


class FormerCase(PipelineCase):
    """A table as an earlier version wrote it."""

    def setUp(self) -> None:
        super().setUp()
        self.node = Node("a")
        self.commits = Path(self.table, "_commits")
        self.commits.mkdir(parents=True)

    def batch(self, number: int, place: str = "", **more: Any) -> list[Event]:
        """Write a batch of four events, with its commit. ``place``: where its files lie."""
        before = len(self.node.events)
        for job in (before, before + 1):
            self.node.add(job, job_id(job))
        events = self.node.events[before:]
        path = segment(self.folder / "logs", events)
        (lines,) = read(FilePart(str(path)))
        rows = self.spark.createDataFrame(event_rows(lines.events)).drop(*_OLD_COLUMNS)
        folder = Path(self.table, place)
        rows.coalesce(1).write.mode("append").partitionBy("dt").parquet(str(folder))
        names = {str(file.relative_to(folder)) for file in folder.glob("dt=*/*.parquet")}
        known = {name for commit in self.read_commits() for name in commit["files"]}
        span = {
            "node": node_id("a"),
            "boot": BOOT,
            "first": before,
            "last": before + 3,
            "events": 4,
        }
        self.commit(
            number,
            files=sorted(names - known),
            spans=[span],
            staged=place.rpartition("/")[2],
            **more,
        )
        return events

    def read_commits(self) -> list[dict[str, Any]]:
        """All commits."""
        return [json.loads(path.read_text()) for path in sorted(self.commits.iterdir())]

    def commit(self, number: int, **fields: Any) -> None:
        """Write a commit."""
        whole = {"version": 2, "number": number, "staged": "", "files": [], "inputs": []}
        whole |= {"spans": [], "duplicates": 0, "rejected": 0, "sizes": [], "replaces": []}
        whole |= {"replaced": [], "at_ms": 0, **fields}
        (self.commits / f"{number:012d}.json").write_text(json.dumps(whole))


class FormerTests(FormerCase):
    """Conversion."""

    def test_converted(self) -> None:
        """The Delta table has the same events, for other programs too, and is added to; those of
        logs that were read before stay known."""
        events = self.batch(0) + self.batch(1)
        self.assertEqual(Converted(8, 2, False), convert(self.spark, self.table))
        self.assert_each_once(events)
        self.assertEqual(8, DeltaTable(self.table).to_pyarrow_table().num_rows)
        self.node.log(9, "dead", job_id(0), note="why")
        segment(self.folder / "logs", self.node.events[8:])
        report = ingest(self.spark, [str(self.folder / "logs")], self.table)
        self.assertEqual((1, 1), (report.files, report.new))
        self.assert_each_once(self.node.events)
        self.assertEqual(1, self.read(self.table).where("note = 'why'").count())

    def test_refused_before(self) -> None:
        """Nothing is done with a former table but what was asked for: the error says how to
        convert it."""
        self.batch(0)
        error = self.assertRaises(BadTable, ingest, self.spark, [], self.table)
        self.assertIn(f"disque-pipeline convert {self.table}", str(error))
        self.assertFalse(DeltaLog.exists(self.table))

    def test_both(self) -> None:
        """Until it is removed, the former table keeps its files: what would remove some refuses."""
        events = self.batch(0)
        files = sorted(Path(self.table).glob("dt=*/*.parquet"))
        convert(self.spark, self.table)
        self.assertRaises(BadTable, vacuum, self.table, 0)
        self.assertRaises(BadTable, forget, self.table, "mail", None)
        self.assertEqual(files, sorted(Path(self.table).glob("dt=*/*.parquet")))
        self.assertEqual(Converted(4, 1, True), convert(self.spark, self.table, remove=True))
        self.assertFalse(self.commits.exists())
        vacuum(self.table, 0)
        self.assert_each_once(events)
        self.assertRaises(BadTable, convert, self.spark, self.table)

    def test_merged_and_staged(self) -> None:
        """Files that were merged are left out, and those that a killed process had committed but
        not moved are not lost."""
        first = self.batch(0)
        (old,) = self.read_commits()[0]["files"]
        new = str(Path(old).with_name("merged.parquet"))
        Path(self.table, new).write_bytes(Path(self.table, old).read_bytes())
        self.commit(1, files=[new], replaces=[old])
        second = self.batch(2, place="_staging/0f")
        self.assertEqual(Converted(8, 2, True), convert(self.spark, self.table, remove=True))
        self.assert_each_once(first + second)
        self.assertFalse(Path(self.table, old).exists())

    def test_killed(self) -> None:
        """A conversion that is killed between its two commits is completed by the next one."""
        events = self.batch(0)

        def killed(*_: Any) -> None:
            raise Killed

        original = former._footers
        self.patch(former, "_footers", killed)
        self.assertRaises(Killed, convert, self.spark, self.table)
        self.assertTrue(DeltaLog.exists(self.table))
        self.patch(former, "_footers", original)
        convert(self.spark, self.table)
        convert(self.spark, self.table)
        self.assert_each_once(events)

    def test_damaged(self) -> None:
        """A table whose commits and files do not agree, or that names what is no file of it, is
        refused, and nothing is added or moved."""
        self.batch(0)
        self.commit(
            1, spans=[{"node": node_id("b"), "boot": 1, "first": 0, "last": 0, "events": 1}]
        )
        error = self.assertRaises(BadTable, convert, self.spark, self.table)
        self.assertIn("added 5 events; its files have 4", str(error))
        for fields in ({"files": ["../x.parquet"]}, {"staged": ".."}, {"version": 3}):
            self.commit(1, **fields)
            error = self.assertRaises(BadTable, convert, self.spark, self.table)
            self.assertIn("000000000001.json is damaged", str(error))
        self.commit(2)
        (self.commits / "000000000001.json").unlink()
        error = self.assertRaises(BadTable, convert, self.spark, self.table)
        self.assertIn("A commit of", str(error))
