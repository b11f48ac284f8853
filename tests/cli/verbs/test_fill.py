"""``disque fill``."""

from __future__ import annotations

import json

from tests.cli.livenode import VerbCase


class FillTests(VerbCase):
    """Jobs into queues."""

    def add_options(self, queue: str) -> list[tuple[bytes, int, int, int]]:
        """Body, RETRY, TTL and number of copies of the jobs of a queue."""
        found = []
        for _, job_id, body in self.call("QPEEK", queue, 100):
            shown = self.call("SHOW", job_id)
            of = dict(zip(shown[::2], shown[1::2], strict=True))
            found.append((body, of[b"retry"], of[b"ttl"], of[b"repl"]))
        return sorted(found)

    def test_there_and_back(self) -> None:
        """Drained jobs are added again with their body, RETRY, number of copies and the remaining
        TTL; a job that was to be delivered at most once stays so."""
        self.add("q", b"text\n", retry=77, ttl=500)
        self.add("q", b"\xff\x00", retry=0, ttl=600, replicate=1)
        self.add("q", "é", ttl=9999)
        before = self.add_options("q")
        path = str(self.folder() / "jobs")
        self.disque("drain", "q", "--to", path, "--timeout", "0.1")
        self.assertEqual(0, self.length("q"))
        self.assertEqual((0, "", "3 jobs added\n"), self.disque("fill", path))
        for was, now in zip(before, self.add_options("q"), strict=True):
            self.assertEqual((was[:2], was[3]), (now[:2], now[3]))
            self.assertTrue(was[2] - 20 <= now[2] <= was[2], (was, now))

    def test_older_lines(self) -> None:
        """Lines from older versions lack RETRY; it is 0 if the ID says so, and the default
        otherwise."""
        line = {"queue": "q", "id": "D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-000a", "body": "x"}
        self.assertEqual(0, self.disque("fill", stdin=_lines(line))[0])
        ((_, retry_s, ttl_s, copies),) = self.add_options("q")
        self.assertEqual((0, 1), (retry_s, copies))
        self.assertTrue(590 <= ttl_s <= 600, ttl_s)

    def test_elsewhere(self) -> None:
        """Jobs can be added to another queue, from a pipe; a job that was drained twice is added
        once."""
        line = {"queue": "q", "id": "D-1", "body": "x", "retry": 5, "ttl": 50}
        words = ("fill", "--queue", "q2")
        _, _, error = self.disque(*words, stdin=_lines(line, line, line | {"id": "D-2"}))
        self.assertEqual((2, 0), (self.length("q2"), self.length("q")))
        self.assertIn("1 line of jobs that other lines had added", error)

    def test_bad_lines(self) -> None:
        """Malformed lines are reported with their number: from a file nothing is added then, from a
        pipe only the lines before. They can also be written to another file, so that nothing is
        lost."""
        good = _lines({"queue": "q", "body": "x"})
        for bad in (b"{torn\n", b"[]\n", _lines({"queue": "q"}), b'{"queue":"q","body":5}\n'):
            path = self.folder() / "jobs"
            path.write_bytes(good + bad + good)
            status, _, error = self.disque("fill", str(path))
            self.assertEqual((1, 0), (status, self.length("q")))
            self.assertIn("line 2 is not a job", error)
            self.assertIn("nothing was added", error)
            words = ("fill",)
            status, _, error = self.disque(*words, stdin=path.read_bytes())
            self.assertEqual((1, 1), (status, self.length("q")))
            self.assertIn("--from-line 2 continues", error)
            aside = path.with_name("aside")
            status, _, error = self.disque("fill", str(path), "--bad", str(aside))
            self.assertEqual((0, 3), (status, self.length("q")))
            self.assertEqual(bad, aside.read_bytes())
            self.assertIn("line 2 is not a job: ", error)
            self.assertIn("; it was set aside\n", error)
            self.assertTrue(error.endswith("2 jobs added\n1 line set aside\n"), error)
            self.disque("drain", "q", "--timeout", "0")

    def test_refused(self) -> None:
        """When a job is refused, the error says at which line to continue; continuing there adds
        each job once."""
        path = self.folder() / "jobs"
        queues = ["a", "b", "full", "c"]
        path.write_bytes(_lines(*({"queue": each, "body": each} for each in queues)))
        self.call("PAUSE", "full", "in")
        status, _, error = self.disque("fill", str(path))
        self.assertEqual(1, status)
        self.assertIn("2 jobs added\nAll before line 3 is added: --from-line 3 continues", error)
        self.call("PAUSE", "full", "none")
        self.assertEqual(0, self.disque("fill", str(path), "--from-line", 3)[0])
        self.assertEqual([1] * 4, [self.length(each) for each in queues])


def _lines(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)
