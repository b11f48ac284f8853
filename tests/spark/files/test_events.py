"""Segments of event logs, complete and damaged."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import zstandard
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.errors import BadOption
from disque_tx.spark.files.events import EventReader


def event(number: int, **more: Any) -> bytes:
    """A line of an event log."""
    fields = {
        "specversion": "1.0",
        "id": f"1.{number}",
        "source": "disque:aa",
        "time": "2026-11-20T19:23:10.007170Z",
        "type": "disque.job.delivered",
        "subject": "D-1",
        "messaging.destination.name": "q",
        "wait_ms": number,
    }
    return json.dumps({**fields, **more}).encode() + b"\n"


class EventTests(SynchronousTestCase):
    """Rows of one or more files."""

    def setUp(self) -> None:
        self.root = Path(self.mktemp()).resolve()
        self.root.mkdir()

    def rows(self, data: bytes, name: str = "events.jsonl") -> list[dict[str, Any]]:
        """The rows of a file with this content."""
        (self.root / name).write_bytes(data)
        return self.read(str(self.root / name))

    def read(self, path: str) -> list[dict[str, Any]]:
        """The rows of all files at a path."""
        reader = EventReader((path,))
        parts = [part for task in reader.partitions() for part in reader.read(task)]
        return [row for part in parts for row in part.to_pylist()]

    def test_pipe(self) -> None:
        """A pipe with the name of a segment does not make a query wait for whoever writes to it."""
        os.mkfifo(self.root / "pipe.jsonl")
        self.rows(event(1))
        self.assertEqual(["1.1"], [row["id"] for row in self.read(str(self.root))])

    def test_whole(self) -> None:
        """Values have their types, fields that do not apply are null, and unknown names are
        ignored; blocks of compressed data may begin anywhere."""
        data = b"".join(event(number, tomorrow=1) for number in range(20_000))
        rows = self.rows(data)
        self.assertEqual([f"1.{number}" for number in range(20_000)], [row["id"] for row in rows])
        first = rows[0]
        self.assertEqual("2026-11-20T19:23:10.007170+00:00", first["time"].isoformat())
        self.assertEqual(
            (0, "q", None), (first["wait_ms"], first["messaging.destination.name"], first["run_ms"])
        )
        self.assertEqual({None}, {row["_corrupt"] for row in rows})
        self.assertEqual(rows, self.rows(zstandard.compress(data), "events.jsonl.zst"))

    def test_invalid_lines(self) -> None:
        """A line that is not an event is kept in ``_corrupt``, and no other line is lost."""
        foreign = [b"rubbish", b"[1]", b"{}", b'{"id":1}', b'{"wait_ms":"x"}', b"\xff{"]
        foreign += [event(1).strip() + event(2).strip(), event(5, wait_ms=1.5).strip()]
        data = b"\n".join([event(0).strip(), *foreign, event(9).strip(), b""])
        rows = self.rows(data)
        self.assertEqual(["1.0", "1.9"], [row["id"] for row in rows if row["_corrupt"] is None])
        kept = [row["_corrupt"] for row in rows if row["_corrupt"] is not None]
        self.assertEqual([line.decode("utf-8", "backslashreplace") for line in foreign], kept)

    def test_truncated(self) -> None:
        """A truncated file loses only its incomplete lines, compressed or not."""
        data = b"".join(event(number) for number in range(3000))
        rows = self.rows(data[:-10])
        self.assertEqual(2999, sum(row["_corrupt"] is None for row in rows))
        self.assertEqual(1, sum(row["_corrupt"] is not None for row in rows))
        compressor = zstandard.ZstdCompressor().compressobj()
        first = compressor.compress(data) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        torn = first + compressor.compress(data) + compressor.flush()
        self.assertEqual(3000, len(self.rows(torn[: len(first)], "torn.jsonl.zst")))

    def test_damaged(self) -> None:
        """A damaged file is read up to the damage, which is logged."""
        data = zstandard.compress(b"".join(event(number) for number in range(3000)))
        with self.assertLogs("disque_tx.spark.files.lines", "WARNING") as logged:
            self.assertEqual([], self.rows(b"rubbish" + data, "bad.jsonl.zst"))
        self.assertIn("bad.jsonl.zst", logged.output[0])

    def test_damaged_later(self) -> None:
        """The log says behind how many bytes of lines a file is damaged: all that was read is
        before that."""
        data = b"".join(event(number) for number in range(20_000))
        for read, damaged in ((0, b"rubbish"), (20_000, zstandard.compress(data) + b"rubbish")):
            with self.assertLogs("disque_tx.spark.files.lines", "WARNING") as logged:
                rows = self.rows(damaged, "bad.jsonl.zst")
            found = re.search(r"bad.jsonl.zst is damaged behind (\d+) bytes", logged.output[0])
            assert found is not None
            whole = data[: int(found[1])]
            self.assertEqual(len(rows), len(whole.splitlines()))
            self.assertEqual(read > 0, len(rows) > 0)

    def test_damaged_block(self) -> None:
        """Damage costs the lines of the compressed blocks from it on, none before."""
        data = b"".join(event(number) for number in range(10_000))
        damaged = bytearray(zstandard.compress(data))
        damaged[-200:-100] = bytes(value ^ 0x5A for value in damaged[-200:-100])
        with self.assertLogs("disque_tx.spark.files.lines", "WARNING"):
            found = self.rows(bytes(damaged), "bad.jsonl.zst")
        rows = [row for row in found if row["_corrupt"] is None]
        lost = len(data) - sum(len(event(number)) for number in range(len(rows)))
        self.assertEqual(
            [f"1.{number}" for number in range(len(rows))], [row["id"] for row in rows]
        )
        self.assertLess(lost, 2 * zstandard.BLOCKSIZE_MAX)

    def test_folder(self) -> None:
        """Only finished files of a folder are read; a path without files is an error."""
        day = self.root / "dt=2026-11-20" / "hour=19"
        day.mkdir(parents=True)
        for name in ("a.jsonl", "_open-1.jsonl", ".hidden.jsonl", "a.txt"):
            (day / name).write_bytes(event(1))
        self.assertEqual(1, len(self.read(str(self.root))))
        self.assertEqual(1, len(self.read(str(self.root / "dt=*"))))
        with self.assertRaises(BadOption):
            self.read(str(self.root / "nothing"))
