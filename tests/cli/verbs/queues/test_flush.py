"""``disque flush`` and ``disque wait``."""

from __future__ import annotations

from tests.cli.livenode import VerbCase


class QueueVerbTests(VerbCase):
    """One node with jobs."""

    def setUp(self) -> None:
        super().setUp()
        client = self.connect()
        self.ids = [client.call("ADDJOB", "q", "body", 0) for _ in range(3)]
        client.call("ADDJOB", "q", "body", 0, "DELAY", 90)
        self.connection = client

    def test_asked(self) -> None:
        """Nobody empties a queue by accident: it shows what is there, and asks."""
        status, output, errors = self.disque("flush", "q", stdin=b"n\n")
        self.assertEqual((1, ""), (status, output))
        self.assertIn("3 queued, 1 delayed, 0 in backoff, 0 in flight", errors)
        self.assertEqual(3, self.connection.call("QLEN", "q"))
        self.assertEqual((0, "3 ended\n"), self.disque("flush", "q", stdin=b"y\n")[:2])
        self.assertEqual(0, self.connection.call("QLEN", "q"))

    def test_without_asking(self) -> None:
        """Scripts choose states, and all nodes."""
        words = ("flush", "q", "--yes", "--cluster", "--state", "delayed", "--state", "queued")
        self.assertEqual((0, "4 ended\n", ""), self.disque(*words))

    def test_wait(self) -> None:
        """A script goes on when the job is done."""
        self.assertEqual((1, "not yet\n", ""), self.disque("wait", self.ids[0], "--timeout", "0.1"))
        self.connection.send("DELJOB", self.ids[1])
        self.connection.read()
        status, _, errors = self.disque("wait", self.ids[1])
        self.assertEqual(1, status)
        self.assertIn("Job not known in the context of this node", errors)
