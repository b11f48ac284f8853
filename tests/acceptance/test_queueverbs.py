"""``disque flush`` and ``disque wait`` with a real daemon."""

from __future__ import annotations

from tests.acceptance.daemon import Daemon, DaemonTestCase
from tests.acceptance.disque import disque


class QueueVerbTests(DaemonTestCase):
    """One node with jobs."""

    def setUp(self) -> None:
        self.node: Daemon = self.running()
        client = self.node.client()
        self.ids = [client.call("ADDJOB", "q", "body", 0) for _ in range(3)]
        client.call("ADDJOB", "q", "body", 0, "DELAY", 90)
        self.client = client

    def run_verb(self, *words: str, stdin: bytes = b"") -> tuple[int, str, str]:
        """The program, with this node."""
        return disque("-p", str(self.node.port), *words, stdin=stdin)

    def test_asked(self) -> None:
        """Nobody empties a queue by accident: it shows what is there, and asks."""
        status, output, errors = self.run_verb("flush", "q", stdin=b"n\n")
        self.assertEqual((1, ""), (status, output))
        self.assertIn("3 queued, 1 delayed, 0 in backoff, 0 in hand", errors)
        self.assertEqual(3, self.client.call("QLEN", "q"))
        self.assertEqual((0, "3 ended\n"), self.run_verb("flush", "q", stdin=b"y\n")[:2])
        self.assertEqual(0, self.client.call("QLEN", "q"))

    def test_without_asking(self) -> None:
        """Scripts choose states, and all nodes."""
        words = ("flush", "q", "--yes", "--cluster", "--state", "delayed", "--state", "queued")
        self.assertEqual((0, "4 ended\n", ""), self.run_verb(*words))

    def test_wait(self) -> None:
        """A script goes on when the job is done."""
        self.assertEqual(
            (1, "not yet\n", ""), self.run_verb("wait", self.ids[0], "--timeout", "0.1")
        )
        self.client.send("DELJOB", self.ids[1])
        self.client.read()
        status, _, errors = self.run_verb("wait", self.ids[1])
        self.assertEqual(1, status)
        self.assertIn("Job not known in the context of this node", errors)
