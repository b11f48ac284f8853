"""A nodes file that was copied with its machine: two real processes with the same node ID."""

from __future__ import annotations

import shutil

from tests.acceptance.cluster.fleet import AGREE_S, sees
from tests.acceptance.cluster.node import Node
from tests.acceptance.cluster.test_addresses import PairTestCase
from tests.acceptance.daemon import wait_for
from tests.acceptance.disque import disque


def info(node: Node, name: str) -> str:
    """The value of a field of INFO CLUSTER."""
    text = node.call("INFO", "cluster").decode()
    return str(text.split(f"\n{name}:")[1].split()[0])


class TwinTests(PairTestCase):
    """Two nodes, and a copy of the first one at another address."""

    def setUp(self) -> None:
        super().setUp()
        self.one, self.other = self.node(), self.node(ip="127.0.0.2")
        self.join(self.one, self.other, self.other.ip, self.other.port)

    def copy(self) -> Node:
        """Start another process with the first node's ID."""
        copy = Node(self.folder(), "127.0.0.3")
        self.addCleanup(copy.discard)
        shutil.copy(self.one.folder / "nodes.conf", copy.folder / "nodes.conf")
        copy.boot()
        return copy

    def seen_at(self) -> str:
        """The address at which the other node sees the first one."""
        return ":".join(self.address(self.other, self.one)[:2])

    def logs(self, node: Node, text: str) -> None:
        """Wait until the node logs this text."""
        wait_for(lambda: text in node.log(), f"{node.ip} logs '{text}'")

    def test_noticed(self) -> None:
        """The copy stops serving clients, the others continue, all of them report it, and it can be
        repaired."""
        copy = self.copy()
        self.assertEqual(self.one.id, copy.id)
        wait_for(lambda: info(copy, "cluster_standing_aside") == "yes", "the copy stands aside")
        self.assertIn("LEAVING", copy.error("ADDJOB", "q", "b", 0, "REPLICATE", 1))
        self.assertIn("LEAVING", copy.error("GETJOB", "NOHANG", "FROM", "q"))
        wait_for(lambda: info(self.other, "cluster_twins") == "1", "the third node notices")
        wait_for(lambda: info(self.one, "cluster_twins") == "1", "the first node is notified")
        self.assertEqual("no", info(self.one, "cluster_standing_aside"))
        self.assertEqual(f"{self.one.ip}:{self.one.port}", self.seen_at())
        self.assertEqual(40, len(self.one.add("q", replicate=2)))
        self.logs(copy, "This node stands aside")
        self.logs(self.other, "has a duplicate")
        self.logs(self.one, "Another process also has the ID of this node")
        for node in (self.one, self.other, copy):
            status, output, _ = disque("cluster", "check", f"{node.ip}:{node.port}")
            self.assertEqual(1, status)
            self.assertRegex(output, "stands aside|two processes with one node ID")
        status, _, error = disque("health", f"{copy.ip}:{copy.port}")
        self.assertEqual(1, status)
        self.assertIn("stands aside", error)
        self.repair(copy)

    def repair(self, copy: Node) -> None:
        """Give the copy an ID of its own, as the how-to guide says."""
        copy.kill()
        (copy.folder / "nodes.conf").unlink()
        copy._id = ""
        copy.boot()
        self.assertNotEqual(self.one.id, copy.id)
        self.one.call("CLUSTER", "MEET", copy.ip, copy.port)
        ids = {self.one.id, self.other.id, copy.id}
        wait_for(
            lambda: all(sees(n, ids) for n in (self.one, self.other, copy)),
            "all nodes know each other",
        )
        wait_for(lambda: info(self.other, "cluster_twins") == "0", "no twin is reported", 30)
        self.assertEqual(40, len(copy.add("q", replicate=3)))

    def test_moved(self) -> None:
        """A node that is stopped and started at another address, with its files, rejoins at
        once."""
        self.one.kill()
        moved = self.copy()
        ids = {moved.id, self.other.id}
        wait_for(lambda: sees(moved, ids) and sees(self.other, ids), "the node is back", AGREE_S)
        self.assertEqual(40, len(moved.add("q", replicate=2)))
        self.assertEqual("no", info(moved, "cluster_standing_aside"))
        self.assertEqual("0", info(self.other, "cluster_twins"))

    def test_restarted(self) -> None:
        """A fast restart is not mistaken for a twin."""
        for _ in range(3):
            self.one.kill()
            self.one.boot()
        ids = {self.one.id, self.other.id}
        wait_for(lambda: sees(self.one, ids) and sees(self.other, ids), "the node is back")
        self.assertEqual(40, len(self.one.add("q", replicate=2)))
        for node in (self.one, self.other):
            self.assertEqual("0", info(node, "cluster_twins"))
            self.assertEqual("no", info(node, "cluster_standing_aside"))
