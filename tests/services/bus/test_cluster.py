"""Whole nodes that form a cluster, in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from disque_tx.messages.nodes import HANDSHAKE
from disque_tx.services.node.root import NodeRoot
from tests.acceptance.daemon import free_port
from tests.services.nodebench import drive
from tests.services.rootbench import RootCase


class MeetTests(RootCase):
    """From CLUSTER MEET to replicated jobs."""

    def node(self, name: str, **changes: Any) -> NodeRoot:
        """A running node with files of its own."""
        self.settings = self.make_settings(
            port=free_port(),
            bind=["127.0.0.1"],
            cluster_config_file=str(self.folder / f"{name}.conf"),
            unixsocket=self.path(f"{name}.sock"),
            **changes,
        )
        return self.started()

    def ask_node(self, root: NodeRoot, *requests: str) -> bytes:
        """A node's reply."""
        client = self.dial(root.settings.unixsocket)
        answer = self.ask(client, *requests)
        client.close()
        return answer

    def until_met(self, *roots: NodeRoot) -> None:
        """Let time pass until every node has links to all others."""
        for _ in range(50):
            if all(self.knows(root, len(roots)) for root in roots):
                return
            self.reactor.advance(0.1)
            drive(self.reactor)
        self.fail([self.ask_node(root, "CLUSTER NODES") for root in roots])

    def knows(self, root: NodeRoot, count: int) -> bool:
        """The node knows this many nodes, itself included, and has a link to every other one."""
        nodes = root.runtime.node.membership.nodes.values()
        linked = [entry for entry in nodes if entry.connected and not entry.flags & HANDSHAKE]
        return len(nodes) == count and len(linked) == count - 1

    def test_meet(self) -> None:
        """Two nodes know each other's ID after one CLUSTER MEET, and keep it after a restart."""
        first, second = self.node("first"), self.node("second")
        answer = self.ask_node(first, f"CLUSTER MEET 127.0.0.1 {second.settings.port}")
        self.assertEqual(b"+OK\r\n", answer)
        self.until_met(first, second)
        self.assertIn(second.runtime.node.id, first.runtime.node.membership.nodes)
        self.assertIn(second.runtime.node.id.decode(), (self.folder / "first.conf").read_text())
        self.stopped(second)
        drive(self.reactor)
        self.assertFalse(self.knows(first, 2))
        self.settings = second.settings
        self.until_met(first, self.started())

    def test_replicate(self) -> None:
        """The requested number of nodes hold a job before its client gets the reply."""
        roots = [self.node(name) for name in ("first", "second", "third")]
        for other in roots[1:]:
            self.ask_node(roots[0], f"CLUSTER MEET 127.0.0.1 {other.settings.port}")
        self.until_met(*roots)
        self.reactor.advance(0.1)
        drive(self.reactor)
        answer = self.ask_node(roots[0], "ADDJOB q body 1000 REPLICATE 3")
        self.assertTrue(answer.startswith(b"+D-"), answer)
        job_id = answer[1:-2].decode()
        for root in roots:
            self.assertIn(b"body", self.ask_node(root, f"SHOW {job_id}"))
        self.assertEqual(b":1\r\n", self.ask_node(roots[1], f"ACKJOB {job_id}"))

    def test_from_elsewhere(self) -> None:
        """A client gets a job that another node holds."""
        first, second = self.node("first"), self.node("second")
        self.ask_node(first, f"CLUSTER MEET 127.0.0.1 {second.settings.port}")
        self.until_met(first, second)
        self.ask_node(first, "ADDJOB q body 0 REPLICATE 1")
        self.assertIn(b"body", self.ask_node(second, "GETJOB FROM q"))

    def test_other_bus_port(self) -> None:
        """A node with a non-default bus port is found by its host name and known by its port."""
        first, second = self.node("first"), self.node("second", cluster_bus_port=free_port())
        self.ask_node(second, f"CLUSTER MEET 127.0.0.1 {first.settings.port}")
        self.until_met(first, second)
        self.assertIn(
            f"127.0.0.1:{second.settings.port} ".encode(), self.ask_node(first, "CLUSTER NODES")
        )

    def test_loading(self) -> None:
        """No messages of other nodes are processed before the log is loaded."""
        self.settings.port = free_port()
        self.settings.bind = ["127.0.0.1"]
        root = self.make()
        self.addCleanup(root.stopService)
        root.privilegedStartService()
        self.assertFalse(root.cluster.running)
        self.assertTrue(Path(self.settings.cluster_config_file).exists())
        root.startService()
        drive(self.reactor)
        self.assertTrue(root.cluster.running and root.bus.running)

    def test_nothing_is_left(self) -> None:
        """No descriptor and no timer is left, whatever the nodes were exchanging."""
        first, second = self.node("first"), self.node("second")
        self.ask_node(first, f"CLUSTER MEET 127.0.0.1 {second.settings.port}")
        self.until_met(first, second)
        self.stopped(first)
        self.stopped(second)
        self.assertEqual(
            ([], [], []),
            (
                self.reactor.getReaders(),
                self.reactor.getWriters(),
                self.reactor.getDelayedCalls(),
            ),
        )
