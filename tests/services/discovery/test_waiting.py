"""A node that serves nobody until it knows enough others."""

from __future__ import annotations

from disque_tx.config.lists import WaitFor
from disque_tx.messages.nodes import FAIL, NodeEntry
from disque_tx.services.discovery.waiting import WaitForNodes
from tests.services.nodebench import NodeCase


class WaitingTests(NodeCase):
    """``cluster-wait-for``."""

    def wait(self, nodes: int, timeout_s: int = 0) -> None:
        """Begin to wait."""
        self.server = self.running_node.server
        wanted = WaitFor(nodes, timeout_s)
        service = WaitForNodes(self.server, wanted, self.log, self.reactor)
        self.server.degraded = self.server.waiting
        service.startService()
        self.addCleanup(service.stopService)

    def reply(self, request: bytes) -> bytes:
        """The reply to a client."""
        client, transport = self.connect()
        client.dataReceived(request)
        answer: bytes = transport.value()
        return answer

    def add(self, number: int, flags: int = 0) -> NodeEntry:
        """One more node is known."""
        entry = NodeEntry(b"%040d" % number, b"10.0.0.%d" % number, 7711, flags, 0)
        self.node.membership.add(entry)
        self.reactor.advance(0.1)
        return entry

    def test_nodes(self) -> None:
        """Until enough nodes are reached, clients get LOADING and can still ask about the cluster;
        one that has failed does not count, and what happens later does not matter."""
        self.wait(3)
        loading = b"-LOADING This node waits until it reaches 3 nodes, and reaches 1\r\n"
        self.assertEqual(loading, self.reply(b"QLEN q\r\n"))
        self.assertEqual(b"+PONG\r\n", self.reply(b"PING\r\n"))
        self.add(2)
        self.add(3, FAIL)
        self.assertIn(b"-LOADING", self.reply(b"QLEN q\r\n"))
        last = self.add(4)
        self.assertEqual((0, False), (self.server.awaited_nodes, self.server.waiting))
        self.assertEqual(b":0\r\n", self.reply(b"QLEN q\r\n"))
        self.node.membership.remove(last)
        self.reactor.advance(10)
        self.assertEqual(b":0\r\n", self.reply(b"QLEN q\r\n"))

    def test_timeout(self) -> None:
        """After the time it serves all the same, and says so."""
        self.wait(3, 60)
        self.reactor.pump([0.1] * 590)
        self.assertEqual(3, self.server.awaited_nodes)
        self.reactor.pump([0.1] * 20)
        self.assertEqual(0, self.server.awaited_nodes)
        self.assertIn("reaches only 1 of 3 nodes after 60 s", self.logged())
