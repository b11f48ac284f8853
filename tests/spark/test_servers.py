"""Whom to ask about a job."""

from __future__ import annotations

from disque_tx.client import requests
from disque_tx.client.errors import CannotConnect, ConnectionLost, UnknownJob
from tests.client.scripted import HANG_UP
from tests.spark.nodes import GONE, IDS, NodesTestCase, at


class ServersTests(NodesTestCase):
    """Nodes that know jobs, and nodes that are away."""

    def test_other_holder(self) -> None:
        """What the node that delivered does not know is asked of the others, and nothing else."""
        home = self.node(WORKING=[b":60\r\n", GONE, b":60\r\n"])
        other = self.node(WORKING=b":30\r\n")
        answers = self.servers(other, home).ask_holders(
            at(home), IDS[:3], requests.working, lambda answer: isinstance(answer, UnknownJob)
        )
        self.assertEqual([60, 30, 60], answers)
        self.assertEqual([[b"WORKING", IDS[1].encode()]], other.requests)

    def test_away(self) -> None:
        """Where a node is away the others are asked; where nobody knows, its own answer counts."""
        home = self.node()
        home.close()
        servers = self.servers(home, self.node(WORKING=[b":30\r\n", GONE]))
        answers = servers.ask_holders(
            at(home), IDS[:2], requests.working, lambda answer: isinstance(answer, UnknownJob)
        )
        self.assertEqual(30, answers[0])
        self.assertIsInstance(answers[1], ConnectionLost)

    def test_idle_connection(self) -> None:
        """A connection that the node closed meanwhile is opened again."""
        node = self.node(PING=[b"+PONG\r\n", HANG_UP, b"+PONG\r\n"])
        servers = self.servers(node)
        for _ in range(2):
            self.assertEqual(["PONG"], servers.ask(at(node), [requests.ping()]))
        self.assertEqual(2, node.connections)

    def test_any(self) -> None:
        """Tasks spread over the nodes, and go to another one when theirs is away."""
        nodes = self.cluster(3)
        servers = self.servers(*nodes)
        self.assertEqual(at(nodes[1]), servers.any_pipe(4).address)
        servers.close()
        nodes[1].close()
        self.assertEqual(at(nodes[2]), servers.any_pipe(4).address)
        servers.close()
        nodes[0].close()
        nodes[2].close()
        with self.assertRaises(CannotConnect):
            servers.any_pipe(0)
