"""Files that would stop an ingest are named, whatever is wrong with them, and only they are left
out."""

from __future__ import annotations

import os
from pathlib import Path

import zstandard
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.pipeline.ingest import examination
from disque_tx.spark.pipeline.ingest.examination import examined, examined_file, unreadable
from disque_tx.spark.pipeline.ingest.workers import LocalThreads, SparkTasks
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.logs import Node, job_id, segment, write

_LIMIT = 3 << 20


class FileTests(SynchronousTestCase):
    """One file."""

    def setUp(self) -> None:
        self.path = Path(self.mktemp()).resolve()
        self.path.mkdir()

    def refused(self, content: bytes, name: str = "x.jsonl") -> str:
        """Why a file with this content is refused, if it is."""
        path = self.path / name
        path.write_bytes(content)
        return examined_file(str(path), _LIMIT)

    def test_lines(self) -> None:
        """A line may be as long as the limit, wherever it begins and in whatever pieces it is read;
        a longer one is refused, also without an end."""
        long = b"x" * _LIMIT
        for before in (b"", b"\n", b"short\n" * 3, b"y" * 1_000_000 + b"\n"):
            for after in (b"", b"\n", b"\nshort\n"):
                self.assertEqual("", self.refused(before + long + after))
                wrong = self.refused(before + long + b"x" + after)
                self.assertEqual(f"a line of more than {_LIMIT} bytes", wrong)
        self.assertEqual("", self.refused(b"line\n" * 1_000_000))
        self.assertEqual("", self.refused(b""))

    def test_small_file_large_line(self) -> None:
        """A few kilobytes that decompress to a line of gigabytes are refused, without having it in
        memory."""
        compressor = zstandard.ZstdCompressor().compressobj()
        pieces = [compressor.compress(bytes(1 << 20)) for _ in range(64)]
        content = b"".join(pieces) + compressor.flush()
        self.assertLess(len(content), 20_000)
        self.assertIn("a line of more than", self.refused(content, "x.jsonl.zst"))

    def test_damages(self) -> None:
        """Truncated and foreign content is refused at any place; several frames are one file."""
        whole = zstandard.ZstdCompressor(write_checksum=True).compress(b'{"a":1}\n' * 1000)
        self.assertEqual("", self.refused(whole, "x.jsonl.zst"))
        self.assertEqual("", self.refused(whole + whole, "x.jsonl.zst"))
        for size in (1, 5, len(whole) // 2, len(whole) - 1):
            self.assertNotEqual("", self.refused(whole[:size], "x.jsonl.zst"), size)
            self.assertNotEqual("", self.refused(whole + whole[:size], "x.jsonl.zst"), size)
        self.assertNotEqual("", self.refused(b'{"not": "compressed"}\n', "x.jsonl.zst"))

    def test_missing(self) -> None:
        """A file that is removed after it was listed is refused like a damaged one."""
        self.assertNotEqual("", examined_file(str(self.path / "no.jsonl")))

    def test_no_file(self) -> None:
        """A pipe with the name of a log does not make an ingest wait for whoever writes to it."""
        path = self.path / "x.jsonl"
        os.mkfifo(path)
        self.assertEqual("not a file", examined_file(str(path)))
        self.assertEqual({str(path)}, unreadable(LocalThreads(), [str(path)]))


class IngestTests(PipelineCase):
    """Many files at once."""

    def test_many_damaged(self) -> None:
        """However many files are damaged, or too large for the memory of a task, all of them are
        named, all others are read, and that takes one batch."""
        self.patch(examination.examined_file, "__defaults__", (_LIMIT,))
        events, steps = [], list[str]()
        for letter in "abcdef":
            node = Node(letter)
            node.log(0, "added", job_id(1, letter))
            path = segment(self.folder / "logs", node.events)
            if letter in "bdf":
                path.write_bytes(path.read_bytes()[:-3])
            else:
                events += node.events
        bomb = zstandard.ZstdCompressor().compress(b"x" * (_LIMIT + 1))
        (self.folder / "logs" / "bomb.jsonl.zst").write_bytes(bomb)
        report = self.add(self.folder / "logs", step=steps.append)
        self.assertEqual((3, 4), (report.new, len(report.refused)))
        self.assertIn("a line of more than", report.refused[f"{self.folder}/logs/bomb.jsonl.zst"])
        self.assertEqual(["staged", "counted", "kept", "committed"], steps)
        self.assert_each_once(events)

    def test_many_shares(self) -> None:
        """Files are examined in several pieces of work, in threads or tasks alike, and those that
        cannot be read are named with the reason."""
        paths = [str(write(self.folder / f"{at}.jsonl.zst", [], b"x" * 100)) for at in range(40)]
        for at in (7, 39):
            Path(paths[at]).write_bytes(Path(paths[at]).read_bytes()[:-1])
        here = examined(LocalThreads(), paths)
        self.assertEqual([paths[7], paths[39]], list(here))
        self.assertEqual(here, examined(SparkTasks(self.spark), paths))
        self.assertEqual({}, examined(LocalThreads(), []))

    def test_rights_that_change(self) -> None:
        """A file that could not be opened is read when it can be, though it is the same; one that
        is damaged is not tried again before it has changed."""
        node = Node("a")
        node.log(0, "added", job_id(1))
        stored = segment(self.folder / "elsewhere", node.events)
        logs = self.folder / "logs"
        damaged = write(logs / "damaged.jsonl.zst", [])
        damaged.write_bytes(b"no frame")
        # Whoever may read everything cannot be kept from a file by its rights.
        linked = logs / "linked.jsonl.zst"
        linked.symlink_to(self.folder / "absent.jsonl.zst")
        self.assertEqual({str(damaged), str(linked)}, set(self.add(logs).refused))
        self.assertEqual({str(linked)}, set(self.add(logs).refused))
        log = DeltaLog(self.table)
        self.assertEqual([str(damaged)], list((log.notes() or {})["files"]))
        os.rename(stored, self.folder / "absent.jsonl.zst")
        self.assertEqual((1, {}), ((report := self.add(logs)).new, report.refused))

    def test_nothing_new(self) -> None:
        """With known files alone, however many, nothing is examined, read or committed."""
        node = Node("a")
        for at in range(0, 200, 2):
            node.add(at, job_id(at))
            segment(self.folder / "logs", node.events[-2:])
        self.add(self.folder / "logs")
        version = DeltaLog(self.table).version
        for path in (self.folder / "logs").iterdir():
            path.write_bytes(b"never looked into")
        report = self.add(self.folder / "logs")
        self.assertEqual((0, {}), (report.files, report.refused))
        self.assertEqual(version, DeltaLog(self.table).version)
