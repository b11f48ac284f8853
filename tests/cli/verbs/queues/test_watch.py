"""``disque watch``."""

from __future__ import annotations

import json

from tests.cli.livenode import VerbCase


class WatchTests(VerbCase):
    """The figures of queues of one node."""

    def test_lines(self) -> None:
        """Programs get one line with tabs per queue and interval."""
        self.add("q", "a", "b")
        self.call("PAUSE", "q", "out")
        status, output, _ = self.disque("watch", "q", "none", "--count", 2, "-i", 0.01)
        rows = [line.split("\t")[1:] for line in output.splitlines()]
        shown = ["queue", "length", "age s", "in/s", "out/s", "blocked", "pause"]
        self.assertEqual([*shown, "delayed", "backoff", "in flight", "dead", "loaded"], rows[0])
        self.assertEqual((0, 5), (status, len(rows)))
        self.assertEqual(["q", "2"], rows[1][:2])
        self.assertEqual(["0.0", "0.0", "0", "out", *["0"] * 5], rows[3][3:])
        self.assertEqual(["none", "0"], rows[4][:2])

    def test_progress(self) -> None:
        """Who watches a queue sees how far its jobs are; those of other queues do not matter."""
        for queue, fraction in (("q", "0.4"), ("other", "0.5")):
            self.add(queue, "a")
            ((_, job_id, _),) = self.call("GETJOB", "FROM", queue)
            self.call("WORKING", job_id, "PROGRESS", fraction, "NOTE", b"page\x1b 40")
        status, output, _ = self.disque("--json", "watch", "q", "--once")
        (found,) = [row for row in map(json.loads, output.splitlines()) if "progress" in row]
        (report,) = found["progress"]
        self.assertGreaterEqual(report.pop("age_s"), 0)
        expected = {"queue": "q", "fraction": 0.4, "note": "page? 40"}
        self.assertEqual((0, expected), (status, {k: v for k, v in report.items() if k != "id"}))
        self.assertTrue(report["id"].startswith("D-"))
