"""``disque flush`` and ``disque wait``."""

from __future__ import annotations

from tests.cli.livenode import VerbCase
from tests.client.scripted import ScriptedNode, array, bulk


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

    def test_missing(self) -> None:
        """Each node that was not reached is named, and a script sees that jobs may be left."""
        nodes = [b"a" * 40, b"b" * 40]
        ended = [bulk("flushed"), b":2\r\n", bulk("nodes"), b":1\r\n"]
        reply = array(*ended, bulk("nodes-missing"), array(*map(bulk, nodes)))
        names = "queued delayed backoff in-flight dead blocked-clients oldest-ms loaded nodes"
        counts = [word for name in names.split() for word in (bulk(name), b":1\r\n")]
        rates = [bulk("in-per-s"), bulk("0"), bulk("out-per-s"), bulk("0")]
        count = array(*counts, *rates, bulk("nodes-missing"), array())
        node = ScriptedNode(QFLUSH=reply, QCOUNT=count)
        self.addCleanup(node.close)
        status, output, errors = self.disque("flush", "q", "--yes", "--cluster", port=node.port)
        self.assertEqual((1, "2 ended\n"), (status, output))
        said = [f"Node {name * 40} was not reached: its jobs may still be there." for name in "ab"]
        self.assertEqual(said, errors.splitlines())

    def test_wait(self) -> None:
        """A script goes on when the job is done."""
        self.assertEqual((1, "not yet\n", ""), self.disque("wait", self.ids[0], "--timeout", "0.1"))
        self.connection.send("DELJOB", self.ids[1])
        self.connection.read()
        status, _, errors = self.disque("wait", self.ids[1])
        self.assertEqual(1, status)
        self.assertIn("Job not known in the context of this node", errors)
