"""Tables that grow every hour: small files are merged, and no event is lost or duplicated."""

from __future__ import annotations

import json
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.errors import BadTable, Conflict
from disque_tx.spark.pipeline.ingest.ingestion import ingest, missing
from disque_tx.spark.pipeline.tables import compaction
from disque_tx.spark.pipeline.tables.commits import Commit, CommitLog, Span, joined
from disque_tx.spark.pipeline.tables.compaction import Compacted, compact
from disque_tx.spark.pipeline.tables.table import EventTable
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.logs import Event, Node, job_id, write

STEPS = ("merged", "committed", "settled", "removed", "checkpointed")


class Killed(Exception):
    """The process was killed."""


class CompactionCase(PipelineCase):
    """A table of several small ingests. ``events``: all events that were ingested."""

    def setUp(self) -> None:
        super().setUp()
        self.node = Node("a")
        self.events: list[Event] = self.node.events

    def grow(self, times: int, day_s: int = 0) -> None:
        """Ingest more events, ten each time; ``day_s``: when they happened."""
        for _ in range(times):
            before = len(self.events)
            for number in range(5):
                self.node.log(day_s + number, "delivered", job_id(before + number))
                self.node.log(day_s + number, "acked", job_id(before + number))
            path = write(self.folder / "logs" / f"{before}.jsonl", self.events[before:])
            ingest(self.spark, [str(path)], self.table)

    def compact(self, later_s: float = 0.0, kept_ms: int = compaction.KEPT_MS) -> Compacted:
        """Compact the table, now or later."""
        return compact(self.spark, self.table, clock=lambda: time.time() + later_s, kept_ms=kept_ms)

    def commits(self) -> list[str]:
        """The names of the files with commits."""
        return sorted(path.name for path in Path(self.table, "_commits").glob("[!._]*"))

    def files(self) -> list[Path]:
        """The files with events in the table."""
        return sorted(Path(self.table).glob("dt=*/*.parquet"))


class CompactionTests(CompactionCase):
    """The effects of a compaction."""

    def test_merged(self) -> None:
        """Small files of a day become one, the commits become one, and each event is in the table
        once."""
        self.grow(3)
        self.grow(2, day_s=86_400)
        self.assertEqual(Compacted(merged=5, new=2, removed=0, files=2), self.compact())
        self.assertEqual(["checkpoint-000000000005.json"], self.commits())
        self.assert_each_once(self.events)

    def test_ingest_afterwards(self) -> None:
        """After a compaction, files that were read are still known, new ones are added, and missing
        numbers are still counted."""
        self.grow(3)
        lost = self.node.log(9, "acked", job_id(999))
        self.events.remove(lost)
        self.compact()
        report = ingest(self.spark, [str(self.folder / "logs")], self.table)
        self.assertEqual((0, 0), (report.files, report.new))
        self.assertEqual([0], list(report.missing.values()))
        copy = write(self.folder / "copy.jsonl", self.events)
        report = ingest(self.spark, [str(copy)], self.table)
        self.assertEqual((0, 30), (report.new, report.duplicates))
        self.grow(1)
        self.assert_each_once(self.events)

    def test_nothing_to_do(self) -> None:
        """A table with one file per day is not changed."""
        self.grow(2)
        self.compact()
        before = self.files()
        self.assertEqual(Compacted(merged=0, new=0, removed=0, files=1), self.compact())
        self.assertEqual(before, self.files())

    def test_readers(self) -> None:
        """A reader of the old files can continue for a day; then they are removed."""
        self.grow(3)
        reader = EventTable(self.spark, self.table).events()
        self.compact()
        self.assertEqual(30, reader.count())
        self.assertEqual(4, len(self.files()))
        self.assertEqual(0, self.compact(later_s=80_000).removed)
        self.assertEqual(3, self.compact(later_s=90_000).removed)
        self.assertEqual(1, len(self.files()))
        self.assertEqual(0, self.compact(later_s=90_000).removed)
        self.assert_each_once(self.events)

    def test_automatic(self) -> None:
        """An ingest compacts when there is much to merge, so that the next one does not have to
        read more and more files."""
        self.patch(compaction, "_FILES_MAX", 3)
        self.patch(compaction, "_COMMITS_MAX", 4)
        commits, files = 0, 0
        for _ in range(9):
            self.grow(1)
            commits = max(commits, len(self.commits()))
            files = max(files, len(EventTable(self.spark, self.table).log.live()))
        self.assertLessEqual(commits, 5)
        self.assertLessEqual(files, 3)
        self.assert_each_once(self.events)

    def test_large_files_stay(self) -> None:
        """Files that are already large are not written again."""
        self.patch(compaction, "_SMALL_BYTES", 1)
        self.grow(3)
        self.assertEqual(0, self.compact().merged)

    def test_no_table(self) -> None:
        """A folder with other content is not changed."""
        self.assertRaises(BadTable, compact, self.spark, str(self.folder))


class InterruptedTests(CompactionCase):
    """Killed, or disturbed, between any two steps."""

    def test_every_step(self) -> None:
        """No event is lost or duplicated, and the next run completes the work."""
        for name in STEPS:
            self.grow(2)

            def step(done: str, name: str = name) -> None:
                if done == name:
                    raise Killed

            self.assertRaises(Killed, compact, self.spark, self.table, step)
            self.assert_each_once(self.events)
            self.compact()
            self.assertEqual(1, len(EventTable(self.spark, self.table).log.live()))
            self.assert_each_once(self.events)

    def test_ingest_meanwhile(self) -> None:
        """An ingest during the merge wins, and the merge is abandoned."""
        self.grow(3)

        def step(done: str) -> None:
            if done == "merged":
                self.grow(1)

        self.assertRaises(Conflict, compact, self.spark, self.table, step)
        self.assert_each_once(self.events)
        self.assertEqual([], list(Path(self.table, "_staging").iterdir()))

    def test_outdated_writer(self) -> None:
        """A writer that opened the table before commits were merged cannot add a commit under a
        removed number, where it would be overlooked."""
        self.grow(3)
        old = EventTable(self.spark, self.table)
        self.grow(2)
        self.compact()
        self.assertFalse(old.log.publish(Commit(old.log.next_number, "x", [], [], [], 0, 0)))
        self.assertEqual(["checkpoint-000000000005.json"], self.commits())

    def test_reader_meanwhile(self) -> None:
        """A reader that opens the table while commits are merged sees all events."""
        self.grow(3)
        test = self

        class Late(CommitLog):
            """Commits that disappear after they were listed, the first time."""

            def _commit(self, path: str) -> Commit:
                if len(test.commits()) > 1:
                    test.compact()
                return super()._commit(path)

        table = EventTable(self.spark, self.table)
        log = Late(table.storage, table.root)
        self.assertEqual(["checkpoint-000000000003.json"], self.commits())
        self.assertEqual(30, sum(s.events for commit in log.commits for s in commit.spans))

    def test_missing_commit(self) -> None:
        """A commit that somebody deleted is noticed, because its events would be missing."""
        self.grow(3)
        Path(self.table, "_commits", "000000000001.json").unlink()
        error = self.assertRaises(BadTable, EventTable, self.spark, self.table)
        self.assertIn("commit 1 of", str(error))

    def test_hostile_names(self) -> None:
        """A table from somewhere else that names files outside of it is refused, and nothing is
        moved or removed."""
        self.grow(1)
        foreign = self.folder / "mine.txt"
        foreign.write_text("mine")
        (path,) = Path(self.table, "_commits").glob("0*.json")
        fields = json.loads(path.read_text())
        for change in (
            {"replaced": [["../mine.txt", 0]]},
            {"replaces": ["dt=x/../../mine.txt"]},
            {"files": ["../mine.txt"], "sizes": [4]},
            {"staged": ".."},
        ):
            path.write_text(json.dumps({**fields, **change}))
            error = self.assertRaises(BadTable, EventTable, self.spark, self.table)
            self.assertIn("is not the name of a", str(error))
        self.assertEqual("mine", foreign.read_text())

    def test_earlier_version(self) -> None:
        """A table of the previous version can be read, extended, and merged."""
        self.grow(3)
        for path in Path(self.table, "_commits").glob("*.json"):
            fields = json.loads(path.read_text())
            for name in ("sizes", "replaces", "replaced", "at_ms"):
                del fields[name]
            path.write_text(json.dumps({**fields, "version": 1}))
        self.assert_each_once(self.events)
        self.grow(1)
        self.assertEqual((4, 1), (self.compact().merged, len(self.commits())))
        self.assert_each_once(self.events)


class JoinedTests(SynchronousTestCase):
    """Merged spans contain the same numbers."""

    @given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.integers(0, 5))))
    def test_same(self, given: list[tuple[str, int, int]]) -> None:
        """Merged spans contain exactly the same numbers, so that known events are found and missing
        ones counted."""
        spans = [Span(node, 1, first, first + more, more + 1) for node, first, more in given]
        numbers = {(s.node, n) for s in spans for n in range(s.first, s.last + 1)}
        found = joined(spans)
        merged = [(s.node, n) for s in found for n in range(s.first, s.last + 1)]
        self.assertEqual(sorted(numbers), sorted(merged))
        before = Commit(0, "", [], [], spans, 0, 0)
        after = Commit(0, "", [], [], found, 0, 0)
        self.assertEqual(missing([before]), missing([after]))
