"""Files are staged in shares, by threads or by tasks of Spark, and each event is in one of them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

from disque_tx.spark.pipeline.ingest import staging
from disque_tx.spark.pipeline.ingest.lines import Unreadable
from disque_tx.spark.pipeline.ingest.staging import StagedLines, stage_events
from disque_tx.spark.pipeline.ingest.workers import LocalThreads, SparkTasks, Workers
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.ingest.test_ingest import busy_node


class StagingTests(PipelineCase):
    """Files of several nodes."""

    def setUp(self) -> None:
        super().setUp()
        self.files: list[tuple[str, int]] = []
        self.expected = set[tuple[str, int]]()
        for letter in "abcde":
            events = busy_node(letter, 10).events
            self.expected |= {(letter * 40, number) for number in range(len(events))}
            lines = [json.dumps(event) for event in events]
            self.add_file(letter, "\n".join(lines))

    def add_file(self, name: str, content: str) -> str:
        """A file with this content among those that are staged; returns its path."""
        path = self.folder / f"{name}.jsonl"
        path.write_text(content)
        self.files.append((str(path), path.stat().st_size))
        return str(path)

    def stored(self, staged: StagedLines) -> set[tuple[str, int]]:
        """Node and number of each event that was written."""
        found = list[tuple[str, int]]()
        for name in staged.staged.names:
            rows = pq.read_table(Path(self.table, name), partitioning=None)
            found += zip(rows["node"].to_pylist(), rows["seq"].to_pylist(), strict=True)
        self.assertEqual(staged.events, len(found))
        self.assertEqual(len(found), len(set(found)))
        return set(found)

    def test_shares(self) -> None:
        """However the work is divided, every event is written once, and nobody has nothing to do
        while others have several files."""
        self.patch(staging, "_SHARE_BYTES", 3000)
        for workers in (
            LocalThreads(1),
            LocalThreads(2),
            LocalThreads(100),
            SparkTasks(self.spark),
        ):
            staged = stage_events(workers, self.table, self.files)
            self.assertEqual(self.expected, self.stored(staged))
            # Each share has a file of its own.
            total = sum(size for _, size in self.files)
            least = min(workers.count, len(self.files))
            self.assertGreaterEqual(len(staged.staged.files), max(least, total // 3000 // 2))

    def test_bad_lines(self) -> None:
        """The files with lines that are not events are named once each, whoever reads which part of
        them, and no others."""
        path = self.add_file("bad", "torn\n" * 5000)
        self.patch(staging, "_SHARE_BYTES", 3000)
        for workers in (LocalThreads(2), SparkTasks(self.spark)):
            staged = stage_events(workers, self.table, self.files)
            self.assertEqual([path], staged.bad)
            self.assertEqual(self.expected, self.stored(staged))

    def test_removed(self) -> None:
        """A file that is removed while others are read ends the batch with its name in a line,
        also where a task of Spark finds out."""
        Path(self.files[2][0]).unlink()
        several: tuple[Workers, ...] = (LocalThreads(2), SparkTasks(self.spark))
        for workers in several:
            error = self.assertRaises(Unreadable, stage_events, workers, self.table, self.files)
            self.assertTrue(str(error).startswith(self.files[2][0]), error)

    def test_no_room(self) -> None:
        """Where nothing can be written, the error is the one of the disk, also from a task of
        Spark, so that a command can say it in a line."""
        Path(self.table).write_text("a file, not a folder")
        several: tuple[Workers, ...] = (LocalThreads(2), SparkTasks(self.spark))
        for workers in several:
            self.assertRaises(OSError, stage_events, workers, self.table, self.files)

    def test_nothing(self) -> None:
        """Without files there is nothing to do, and nothing is made."""
        staged = stage_events(LocalThreads(), self.table, [])
        self.assertEqual(([], 0, []), (staged.staged.files, staged.events, staged.bad))
        self.assertFalse(Path(self.table).exists())
