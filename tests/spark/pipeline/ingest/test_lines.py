"""Parts of event logs are read as the lines that begin in them, and of no line is made another."""

from __future__ import annotations

import json
from pathlib import Path

import zstandard
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.pipeline.ingest import lines
from disque_tx.spark.pipeline.ingest.lines import FilePart, Unreadable, parts, read
from tests.spark.pipeline.logs import Node, job_id


class LineTests(SynchronousTestCase):
    """Lines of one file."""

    def setUp(self) -> None:
        self.folder = Path(self.mktemp()).resolve()
        self.folder.mkdir()
        self.path = self.folder / "x.jsonl"
        self.node = Node("a")
        for number in range(12):
            self.node.log(number, "added", job_id(number), note="n" * (number % 5))
        self.lines = [json.dumps(event).encode() for event in self.node.events]

    def ids(self, *some: FilePart) -> list[str]:
        """The IDs of the events in parts."""
        found = (each.events["id"].to_pylist() for part in some for each in read(part))
        return [number for several in found for number in several]

    def others(self, content: bytes) -> list[tuple[str, str]]:
        """Reason and text of the lines that are not events in a file with this content."""
        self.path.write_bytes(content)
        return [other for each in read(FilePart(str(self.path))) for other in each.others]

    def test_parts(self) -> None:
        """Wherever a file is divided, also within a line or beside its end, each line is in one
        part; so it is when a part is read in pieces that are smaller than a line."""
        content = b"\n".join(self.lines)
        expected = [event["id"] for event in self.node.events]
        self.path.write_bytes(content)
        for piece_bytes in (1 << 20, 50):
            self.patch(lines, "_PIECE_BYTES", piece_bytes)
            for size in (1, 7, len(self.lines[0]), len(self.lines[0]) + 1, 997, len(content)):
                found = list(parts([(str(self.path), len(content))], size))
                self.assertEqual(len(content), sum(each for _, each in found))
                self.assertEqual(-(-len(content) // size), len(found))
                if size > 1 or piece_bytes > 50:
                    self.assertEqual(expected, self.ids(*(part for part, _ in found)), size)

    def test_not_divided(self) -> None:
        """A compressed file is one part, whatever its size; so is an empty one, which has no
        lines; what was added to a file since it was listed is in its last part."""
        self.assertEqual(
            [(FilePart("a.jsonl.zst"), 99), (FilePart("b.jsonl"), 0), (FilePart("c.jsonl.zst"), 0)],
            list(parts([("a.jsonl.zst", 99), ("b.jsonl", 0), ("c.jsonl.zst", 0)], 10)),
        )
        self.path.write_bytes(b"\n".join(self.lines[:6]) + b"\n")
        found = list(parts([(str(self.path), self.path.stat().st_size)], 500))
        self.path.write_bytes(b"\n".join(self.lines) + b"\n")
        self.assertEqual(
            [event["id"] for event in self.node.events], self.ids(*(part for part, _ in found))
        )
        self.path.write_bytes(b"")
        self.assertEqual([], self.ids(FilePart(str(self.path))))

    def test_joined(self) -> None:
        """Two objects on a line are two events, even where another one lies on two lines, so that
        there are as many objects as lines; the two halves are torn lines, for a node never writes
        such."""
        first, second, third, *_ = self.lines
        for blank in (b"", b" ", b"\t", b" \t ", b"\r"):
            half = third.index(b', "') + 1
            torn = third[:half] + b"\n" + third[half:]
            found = self.others(first + blank + second + b"\n" + torn + b"\n")
            self.assertEqual(["torn", "torn"], [reason for reason, _ in found], blank)
            self.assertEqual(
                [event["id"] for event in self.node.events[:2]], self.ids(FilePart(str(self.path)))
            )

    def test_braces_in_text(self) -> None:
        """Braces in texts, with and without something between them, make nothing of a line but an
        event with these texts."""
        self.node.log(20, "added", job_id(20), note='}{ } { "} \t{" {"a":1}{"b":2}', queue="}{")
        content = json.dumps(self.node.events[-1]).encode()
        self.assertEqual([], self.others(content + b"\n" + self.lines[0] + b"\n"))
        (both,) = read(FilePart(str(self.path)))
        self.assertEqual("}{", both.events["messaging.destination.name"][0].as_py())

    def test_blank_lines(self) -> None:
        """Lines with nothing in them are neither events nor rejected, wherever they are."""
        content = b"\n\n" + self.lines[0] + b"\n  \n\r\n" + self.lines[1] + b"\r\n\t"
        self.assertEqual([], self.others(content))
        self.assertEqual(
            [event["id"] for event in self.node.events[:2]], self.ids(FilePart(str(self.path)))
        )

    def test_neighbours(self) -> None:
        """A line that is no event costs none of its neighbours, in a block of thousands."""
        many = self.lines * 300
        many[1000:1000] = [b'{"torn', b'{"a":1}', b"[]"]
        self.assertEqual(
            [("torn", '{"torn'), ("foreign", '{"a":1}'), ("torn", "[]")],
            self.others(b"\n".join(many)),
        )
        self.assertEqual(3600, len(self.ids(FilePart(str(self.path)))))

    def test_changed(self) -> None:
        """A file that is gone, or was cut off, since it was examined ends the batch with its name:
        what it had would be missing for ever, as it would count as read."""
        path = self.folder / "y.jsonl.zst"
        path.write_bytes(zstandard.ZstdCompressor().compress(b"\n".join(self.lines))[:-5])
        error = self.assertRaises(Unreadable, self.ids, FilePart(str(path)))
        self.assertIn(str(path), str(error))
        self.assertRaises(Unreadable, self.ids, FilePart(str(self.folder / "no.jsonl")))
