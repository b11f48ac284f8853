"""Event logs are ingested into a table, each event once, whatever fails."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from disque_tx.spark.errors import BadTable, Conflict, NothingToRead, OutputOverlaps
from disque_tx.spark.pipeline.ingest.ingestion import IngestReport, ingest
from disque_tx.spark.pipeline.tables.table import EventTable
from tests.acceptance.daemon import environment
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.logs import BOOT, Node, job_id, node_id, write

STEPS = ("staged", "counted", "kept", "committed", "settled")
_KILLED = """
import os, signal, sys
from disque_tx.spark import session
from disque_tx.spark.pipeline.ingest.ingestion import ingest

def step(name):
    if name == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGKILL)

ingest(session("killed", "local[1]"), [sys.argv[2]], sys.argv[3], step)
"""


class Killed(Exception):
    """The process was killed."""


def busy_node(letter: str = "a", jobs: int = 20, boot: int = BOOT) -> Node:
    """A node with some jobs."""
    node = Node(letter, boot)
    for number in range(jobs):
        node.add(number, job_id(number, letter))
        node.work(number + 1, job_id(number, letter))
    return node


class IngestTests(PipelineCase):
    """The content of the table after an ingest."""

    def ingest(self, *paths: Path) -> IngestReport:
        """Ingest into the table of this test."""
        return ingest(self.spark, map(str, paths), self.table)

    def test_values(self) -> None:
        """The fields of a line become columns with short names and types."""
        node = Node("a")
        node.log(0.000_007, "delivered", job_id(1), wait_ms=25, **{"messaging.client.id": "2"})
        node.log(1, "paused", None, paused="in")
        self.ingest(self.write(node))
        delivered, paused = self.spark.read.parquet(self.table).orderBy("seq").collect()
        self.assertEqual(
            (node_id("a"), BOOT, 0, "delivered", job_id(1), "mail", 5, 25, "2", 7),
            (
                *(delivered.node, delivered.boot, delivered.seq, delivered.kind, delivered.job_id),
                *(delivered.queue, delivered["size"], delivered.wait_ms, delivered.client_id),
                delivered.time.microsecond,
            ),
        )
        self.assertEqual("2026-11-20", delivered.dt.isoformat())
        self.assertEqual(("paused", None, "in"), (paused.kind, paused.job_id, paused.paused))

    def test_repeated(self) -> None:
        """The same folders can be ingested every hour: only new files are read."""
        one, two = busy_node("a"), busy_node("b")
        folder = self.write(one)
        self.assertEqual(80, self.ingest(folder).new)
        self.assertEqual((0, 0), (self.ingest(folder).files, self.ingest(folder).events))
        write(folder / "new.jsonl", two.events)
        self.assertEqual((1, 80, 0), self.counts(self.ingest(folder)))
        self.assert_each_once(one.events + two.events)

    def counts(self, report: IngestReport) -> tuple[int, int, int]:
        """The numbers of files, new events and known events."""
        return report.files, report.new, report.duplicates

    def test_copies(self) -> None:
        """A log under another path, twice in one run, or longer than before adds no event twice;
        its new events are added."""
        node = busy_node()
        first = write(self.folder / "a" / "x.jsonl.zst", node.events[:50])
        self.assertEqual((1, 50, 0), self.counts(self.ingest(first)))
        shutil.copytree(self.folder / "a", self.folder / "b")
        longer = write(self.folder / "c" / "y.jsonl", node.events[40:])
        report = self.ingest(self.folder / "b", longer)
        self.assertEqual((2, 30, 60), self.counts(report))
        write(self.folder / "d" / "1.jsonl", busy_node("b").events)
        write(self.folder / "d" / "2.jsonl", busy_node("b").events)
        self.assertEqual((2, 80, 80), self.counts(self.ingest(self.folder / "d")))
        self.assert_each_once(node.events + busy_node("b").events)

    def test_missing(self) -> None:
        """Sequence numbers that no log contains are counted per node, until a log contains them."""
        node = busy_node()
        part = write(self.folder / "a" / "x.jsonl", node.events[5:30] + node.events[40:])
        self.assertEqual({node_id("a"): 15}, self.ingest(part).missing)
        rest = write(self.folder / "b" / "x.jsonl", node.events[:40])
        self.assertEqual({node_id("a"): 0}, self.ingest(rest).missing)
        self.assert_each_once(node.events)

    def test_bad_lines(self) -> None:
        """Truncated and invalid lines are counted and kept with their file and the reason, and no
        other line is lost."""
        node = busy_node()
        foreign = [{"specversion": "1.0", "id": "1", "type": "com.example"}, {"jobs": "many"}]
        tail = "".join(json.dumps(line) + "\n" for line in foreign) + '\n[1]\n{"specversion":"1.'
        path = write(self.folder / "x.jsonl.zst", node.events, tail.encode())
        report = self.ingest(path)
        self.assertEqual((80, 4), (report.new, report.rejected))
        kept = self.spark.read.json(f"{self.table}/_rejected/*/lines")
        rows = sorted((row.reason, row.line) for row in kept.collect())
        self.assertEqual(["foreign", "torn", "torn", "torn"], [reason for reason, _ in rows])
        self.assertIn(("torn", '{"specversion":"1.'), rows)
        self.assertEqual({path.name}, {row.file.rpartition("/")[2] for row in kept.collect()})
        self.assert_each_once(node.events)

    def test_half_a_file(self) -> None:
        """A truncated file is reported and skipped; it is read when it is complete."""
        node, other = busy_node("a"), busy_node("b")
        path = write(self.folder / "a b" / "1.jsonl.zst", node.events)
        write(self.folder / "a b" / "2.jsonl.zst", other.events)
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        report = self.ingest(path.parent)
        self.assertEqual((80, 1), (report.new, len(report.unreadable)))
        self.assertTrue(report.unreadable[0].endswith("1.jsonl.zst"))
        self.assert_each_once(other.events)
        path.write_bytes(whole)
        self.assertEqual(80, self.ingest(path.parent).new)
        self.assert_each_once(node.events + other.events)

    def test_names(self) -> None:
        """Unfinished and other files are skipped, and a folder may be empty."""
        (self.folder / "empty").mkdir()
        self.assertEqual(0, self.ingest(self.folder / "empty").files)
        for name in ("_open-1.jsonl", ".x.jsonl", "x.txt", "_tmp/x.jsonl"):
            write(self.folder / "empty" / name, busy_node().events)
        self.assertEqual(0, self.ingest(self.folder / "empty").files)
        self.assertRaises(NothingToRead, self.ingest, self.folder / "no such folder")

    def test_other_table(self) -> None:
        """Nothing is written to a folder with other content, or with a table of another version."""
        folder = self.write(busy_node())
        self.assertRaises(OutputOverlaps, ingest, self.spark, [str(folder)], str(folder))
        other = self.folder / "other"
        other.mkdir()
        (other / "letter.txt").write_text("of somebody else")
        self.assertRaises(BadTable, ingest, self.spark, [str(folder)], str(other))
        self.ingest(folder)
        (commit,) = Path(self.table, "_commits").glob("*.json")
        commit.write_text(commit.read_text().replace('"version": 2', '"version": 7'))
        error = self.assertRaises(BadTable, EventTable, self.spark, self.table)
        self.assertIn("another version (7", str(error))


class InterruptedTests(PipelineCase):
    """Killed between any two steps."""

    def test_every_step(self) -> None:
        """When the ingest is repeated, each event is in the table once."""
        for at, name in enumerate(STEPS):
            node, late = busy_node("a"), busy_node("b")
            folder = self.write(node)
            self.table = str(self.folder / f"table-{at}")
            # Duplicates, so that the step that removes them has something to do.
            write(folder / "copy.jsonl", node.events[:30])

            def step(done: str, name: str = name) -> None:
                if done == name:
                    raise Killed

            self.assertRaises(Killed, ingest, self.spark, [str(folder)], self.table, step)
            write(folder / "late.jsonl", late.events)
            ingest(self.spark, [str(folder)], self.table)
            self.assert_each_once(node.events + late.events)
            (folder / "late.jsonl").unlink()

    def test_half_moved(self) -> None:
        """Files of a committed batch that were not moved yet are moved when the table is opened
        next."""
        node = busy_node()

        def step(done: str) -> None:
            if done == "committed":
                raise Killed

        self.assertRaises(Killed, ingest, self.spark, [str(self.write(node))], self.table, step)
        self.assertEqual(80, EventTable(self.spark, self.table).events().count())
        self.assert_each_once(node.events)

    def test_left_behind(self) -> None:
        """Files that a killed process staged are removed after a day; lines that it rejected are
        kept once."""
        node = busy_node()
        path = write(self.folder / "x.jsonl", node.events, b"torn")

        def step(done: str) -> None:
            if done == "kept":
                raise Killed

        self.assertRaises(Killed, ingest, self.spark, [str(path)], self.table, step)
        ingest(self.spark, [str(path)], self.table)
        self.assertEqual(1, self.spark.read.json(f"{self.table}/_rejected/*/lines").count())
        staging = Path(self.table, "_staging")
        self.assertEqual(1, len(list(staging.iterdir())))
        ingest(self.spark, [], self.table, clock=lambda: time.time() + 90_000)
        self.assertEqual([], list(staging.iterdir()))

    def test_two_at_once(self) -> None:
        """Of two ingests at the same time, one fails and can be repeated; then all events are in
        the table."""
        one, two = busy_node("a"), busy_node("b")
        first = write(self.folder / "1.jsonl", one.events)
        second = write(self.folder / "2.jsonl", one.events + two.events)
        ingest(self.spark, [], self.table)

        def step(done: str) -> None:
            if done == "staged":
                ingest(self.spark, [str(first)], self.table)

        self.assertRaises(Conflict, ingest, self.spark, [str(second)], self.table, step)
        ingest(self.spark, [str(second)], self.table)
        self.assert_each_once(one.events + two.events)

    def test_sigkill(self) -> None:
        """A process that is really killed leaves nothing that does harm."""
        node = busy_node()
        folder = self.write(node)
        words = [sys.executable, "-c", _KILLED, "committed", str(folder), self.table]
        process = subprocess.run(words, env=environment(), capture_output=True, check=False)
        self.assertEqual(-signal.SIGKILL, process.returncode, process.stderr.decode())
        ingest(self.spark, [str(folder)], self.table)
        self.assert_each_once(node.events)
