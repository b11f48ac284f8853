"""Which files of event logs are read, by their names."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.errors import BadPath
from disque_tx.spark.pipeline.ingest.files import unread
from disque_tx.spark.pipeline.tables.runs import Run, Runs

ONE, OTHER = "a" * 40, "a" * 8 + "b" * 32
RUNS = Runs([Run(ONE, 7, 0, 99), Run(ONE, 7, 200, 299), Run(OTHER, 7, 150, 160)])


class FileTests(SynchronousTestCase):
    """A folder of logs, of which some events are known."""

    def setUp(self) -> None:
        self.folder = Path(self.mktemp()).resolve()
        (self.folder / "below").mkdir(parents=True)

    def touch(self, *names: str) -> None:
        """Make empty files."""
        for name in names:
            (self.folder / name).touch()

    def found(self, *paths: Path) -> list[str]:
        """The files that are read."""
        logs = unread(map(str, paths or (self.folder,)), RUNS, {}).logs
        return [log.path.removeprefix(f"{self.folder}/") for log in logs]

    def test_known(self) -> None:
        """Files whose names begin with a number that is known of a node with this ID are left out,
        in folders below as well."""
        node = "events-aaaaaaaa-7-"
        numbers = (0, 99, 100, 149, 150, 160, 161, 199, 200, 299, 300)
        for place in ("", "below/"):
            self.touch(*(f"{place}{node}{number:012d}.jsonl.zst" for number in numbers))
        wanted = [f"{node}{number:012d}.jsonl.zst" for number in (100, 149, 161, 199, 300)]
        self.assertEqual(sorted([*wanted, *(f"below/{name}" for name in wanted)]), self.found())

    def test_other_names(self) -> None:
        """What only looks like the name of a known file is read."""
        names = [
            "events-aaaaaaaa-8-000000000001.jsonl.zst",
            "events-bbbbbbbb-7-000000000001.jsonl.zst",
            "events-aaaaaaaa-7-000000000001.jsonl",
            "events-aaaaaaaa-7-1x.jsonl.zst",
            "events-aaaaaaaa-7-\u0661.jsonl.zst",
            "events-aaaaaaaa-7-.jsonl.zst",
            "events-aaaaaaaa-7-0000000000000000001.jsonl.zst",
            "my-events-aaaaaaaa-7-000000000001.jsonl.zst",
            "1.jsonl.zst",
        ]
        self.touch(*names)
        self.assertEqual(sorted(names), self.found())

    def test_several_paths(self) -> None:
        """A file that several paths stand for is read once."""
        self.touch("x.jsonl", "below/y.jsonl", "z.txt", "_w.jsonl", ".v.jsonl")
        found = self.found(self.folder, self.folder / "below", self.folder / "x.jsonl")
        self.assertEqual(["below/y.jsonl", "x.jsonl"], found)

    def test_links(self) -> None:
        """Folders are entered by links as well; links that lead around, or to each other, are
        followed once, and do not end an ingest."""
        other = self.folder.with_name(f"{self.folder.name}-other")
        other.mkdir()
        (other / "z.jsonl").touch()
        self.touch("x.jsonl", "below/y.jsonl")
        for link, place in {
            self.folder / "around": self.folder.parent,
            self.folder / "below" / "itself": self.folder,
            self.folder / "other": other,
            other / "back": self.folder / "below",
            other / "here": other,
        }.items():
            link.symlink_to(place)
        names = {Path(name).name for name in self.found()}
        self.assertEqual({"x.jsonl", "y.jsonl", "z.jsonl"}, names)
        self.assertLess(len(self.found()), 6)

    def test_names_that_are_no_text(self) -> None:
        """A file whose name is not UTF-8, as copied from elsewhere, is named and keeps no other
        one from being read."""
        (self.folder / os.fsdecode(b"bad\xff.jsonl")).touch()
        self.touch("x.jsonl")
        found = unread([str(self.folder)], RUNS, {})
        self.assertEqual([f"{self.folder}/x.jsonl"], [log.path for log in found.logs])
        self.assertEqual([f"{self.folder}/bad\\xff.jsonl"], found.unnamed)

    def test_bad_paths(self) -> None:
        """What cannot be a path is refused in words: an empty one, of a variable that is not set
        in a script, does not stand for the present folder."""
        for path in ("", os.fsdecode(b"bad\xff")):
            error = self.assertRaises(BadPath, unread, [path], RUNS, {})
            str(error).encode()

    def test_unfinished(self) -> None:
        """Segments that a node is to finish are counted once, in the folder of a log or of
        several."""
        self.touch("_full-a-1-0.events", "below/_full-b-1-0.events", "_full.txt", "full-c.events")
        (self.folder / "below" / "deep").mkdir()
        self.touch("below/deep/_full-d-1-0.events", "_open-a-1-5.events")
        paths = (str(self.folder), str(self.folder / "below"))
        self.assertEqual(2, unread(paths[:1], RUNS, {}).unfinished)
        self.assertEqual(3, unread(paths, RUNS, {}).unfinished)
