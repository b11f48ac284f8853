"""``disque tail``, and the jobs that it has already shown."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.verbs.jobs.tail import Seen
from disque_tx.client.values import Job
from tests.cli.livenode import VerbCase


def jobs(*ids: str) -> list[Job]:
    """Jobs with these IDs."""
    return [Job("q", name, b"") for name in ids]


class SeenTests(SynchronousTestCase):
    """``Seen``."""

    def test_each_once(self) -> None:
        """A job that stays in the queue is shown once."""
        seen = Seen()
        self.assertEqual(jobs("a", "b"), list(seen.new(jobs("a", "b", "a"))))
        self.assertEqual(jobs("c"), list(seen.new(jobs("b", "c"))))

    def test_bounded(self) -> None:
        """Memory does not grow over days of new jobs; jobs that are still queued are remembered."""
        seen = Seen(limit=3)
        list(seen.new(jobs("stays")))
        for number in range(100):
            self.assertEqual(jobs(f"{number}"), list(seen.new(jobs(f"{number}", "stays"))), number)
        self.assertEqual(jobs("0"), list(seen.new(jobs("0"))))

    @given(st.lists(st.sampled_from("abcdef"), max_size=30))
    def test_none_twice(self, ids: list[str]) -> None:
        """Within the limit, no job is shown twice and no new one is left out."""
        shown = [job.id for job in Seen(limit=6).new(jobs(*ids))]
        self.assertEqual(list(dict.fromkeys(ids)), shown)


class TailTests(VerbCase):
    """The program, on a node."""

    def test_newest(self) -> None:
        """``tail`` shows the newest jobs of a queue, the oldest of these first, and escapes bytes
        that would control the terminal."""
        self.add("q", "old", "b", b"\x1b[2J\xff\n")
        status, output, _ = self.disque("tail", "q", "-n", 2)
        self.assertEqual((0, ['"b"', '"\\x1b[2J\\xff\\n"']), (status, output.split()[1::2]))
        _, output, _ = self.disque("--json", "tail", "q", "-n", "1")
        self.assertEqual({"base64": "G1sySv8K"}, json.loads(output)["body"])
        self.assertEqual(3, self.length("q"))
