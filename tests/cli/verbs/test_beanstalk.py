"""The client of beanstalkd that ``disque import`` uses."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.verbs.imports.beanstalk import Beanstalk
from disque_tx.commands.direct import DirectNode
from disque_tx.protocols.beanstalk.connection import BeanstalkConnection
from disque_tx.protocols.beanstalk.tubes import Tubes
from disque_tx.services.clients.direct import DirectFactory
from tests.cli.livenode import LiveNode


class BeanstalkTests(SynchronousTestCase):
    """A node that serves beanstalkd's protocol, with jobs in two tubes."""

    def setUp(self) -> None:
        node = LiveNode(self.listen)
        self.addCleanup(node.stop)
        self.client = Beanstalk(f"127.0.0.1:{self.port}")
        self.addCleanup(self.client.close)
        for tube, body in (("default", "a"), ("mail", "b")):
            self.client._expect(f"use {tube}", "USING")
            self.client._expect(f"put 10 0 60 1\r\n{body}", "INSERTED")

    def listen(self, node: LiveNode) -> None:
        """A listener, before the node starts."""
        running = node.node
        direct = DirectNode(running.server, running.runtime.dispatcher)
        tubes = Tubes(direct, running.settings, node.reactor.callLater)
        factory = DirectFactory(
            running.runtime,
            running.admission,
            b"beanstalk",
            lambda: BeanstalkConnection(tubes),
            b"INTERNAL_ERROR\r\n",
        )
        listening = node.reactor.listenTCP(0, factory, interface="127.0.0.1")
        self.port: int = listening.getHost().port

    def test_this_tube_only(self) -> None:
        """An import takes the jobs of the tube that it was told, and of no other."""
        self.client.use("mail")
        found = self.client.reserve()
        assert found is not None
        self.assertEqual(b"b", found.body)
        self.assertIsNone(self.client.reserve())
        self.assertEqual(["default", "mail"], self.client.tubes())

    def test_life(self) -> None:
        """A job is seen, taken, given back, and gone after its move."""
        self.client.use("mail")
        seen = self.client.peek("ready")
        found = self.client.reserve()
        assert found is not None
        self.assertEqual(seen, found)
        stats = self.client.job_stats(found.id)
        assert stats is not None
        self.assertEqual(("10", "reserved"), (stats["pri"], stats["state"]))
        self.client.release(found.id, 7)
        stats = self.client.job_stats(found.id)
        assert stats is not None
        self.assertEqual(("7", "ready"), (stats["pri"], stats["state"]))
        self.assertTrue(self.client.delete(found.id))
        self.assertFalse(self.client.delete(found.id))
        self.assertIsNone(self.client.job_stats(found.id))
        figures = self.client.tube_stats("mail")
        assert figures is not None
        self.assertEqual("0", figures["current-jobs-ready"])
