"""``disque drain``."""

from __future__ import annotations

import json

from tests.cli.livenode import VerbCase


class DrainTests(VerbCase):
    """Jobs out of a queue."""

    def test_life(self) -> None:
        """All jobs, whatever their bodies, are written once and acknowledged."""
        bodies = [b"text", b"\xff\x00\n", b"", "é".encode()]
        self.add("q", *bodies)
        status, output, error = self.disque("drain", "q", "--timeout", "0.1")
        found = [json.loads(line)["body"] for line in output.splitlines()]
        self.assertEqual((0, ["text", {"base64": "/wAK"}, "", "é"]), (status, found))
        self.assertEqual("4 jobs drained\n", error)
        self.assertEqual(0, int(self.client.info()["registered_jobs"]))

    def test_raw_and_count(self) -> None:
        """Shell tools get plain bodies, and no more jobs than requested."""
        self.add("q", "a", "b", "c")
        _, output, _ = self.disque("drain", "q", "--raw", "--count", "2")
        self.assertEqual(("a\nb\n", 1), (output, self.length("q")))

    def test_keep(self) -> None:
        """A copy of a queue leaves its length unchanged."""
        self.add("q", *map(str, range(250)))
        _, output, _ = self.disque("drain", "q", "--raw", "--keep", "--timeout", "0.1")
        self.assertEqual(250, len(set(output.split())))
        self.assertEqual(250, self.length("q"))

    def test_appends(self) -> None:
        """The file's existing lines stay, also after a line that was torn when a process was
        killed."""
        path = self.folder() / "jobs"
        path.write_text("first\n{torn")
        self.add("q", "a")
        self.disque("drain", "q", "--raw", "--count", "1", "--to", str(path))
        self.assertEqual("first\n{torn\na\n", path.read_text())

    def test_nothing_is_acknowledged_that_was_not_written(self) -> None:
        """When the disk is full, the jobs are returned to the queue at once, and the error is
        shown."""
        self.add("q", "a", "b")
        status, _, error = self.disque("drain", "q", "--to", "/dev/full")
        self.assertEqual((1, 2), (status, self.length("q")))
        self.assertIn("No space left on device", error)

    def test_at_most_once(self) -> None:
        """Jobs that nodes never take back are named when they were fetched and not written, or only
        copied: nobody else gets them, and they can still be shown."""
        for words in (("--to", "/dev/full"), ("--keep", "--timeout", "0.1")):
            self.add("q", "lost", retry=0, replicate=1)
            self.add("q", "kept")
            status, _, error = self.disque("drain", "q", *words)
            self.assertEqual((1, 1), (status, self.length("q")))
            (named,) = [line for line in error.splitlines() if "RETRY 0" in line]
            shown = self.client.show(named.split()[0])
            assert shown is not None
            self.assertEqual(b"lost", shown.body)
            self.call("QFLUSH", "q")

    def test_many_at_most_once(self) -> None:
        """Of a great number of them the others are counted."""
        self.add("q", *map(str, range(102)), retry=0, replicate=1)
        _, _, error = self.disque("drain", "q", "--keep", "--timeout", "0.1", "--raw")
        lines = error.splitlines()
        self.assertEqual(100, sum("has RETRY 0" in line for line in lines))
        self.assertEqual("and so it is with 2 other jobs", lines[-1])
