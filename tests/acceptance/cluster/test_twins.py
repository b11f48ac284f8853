"""A nodes file that was copied with its machine: two real processes with one node ID."""

from __future__ import annotations

import shutil

from disque_tx.cli.findings import findings, is_problem
from disque_tx.cli.members import Members
from disque_tx.cli.nodeview import survey
from tests.acceptance.cluster.fleet import sees
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node
from tests.acceptance.cluster.test_addresses import PairTestCase
from tests.acceptance.daemon import wait_for


def info(node: Node, name: str) -> str:
    """A field of INFO CLUSTER."""
    text = node.call("INFO", "cluster").decode()
    return str(text.split(f"\n{name}:")[1].split()[0])


class TwinTests(PairTestCase):
    """Two nodes, and a copy of the first one at another address."""

    def setUp(self) -> None:
        super().setUp()
        self.one, self.other = self.node(), self.node(ip="127.0.0.2")
        self.meets(self.one, self.other, self.other.ip, self.other.port)

    def copy(self) -> Node:
        """Another process with the first node's ID."""
        copy = Node(self.folder(), "127.0.0.3")
        self.addCleanup(copy.discard)
        shutil.copy(self.one.folder / "nodes.conf", copy.folder / "nodes.conf")
        copy.boot()
        return copy

    def seen_at(self) -> str:
        """Where the other node finds the first one."""
        return ":".join(self.address(self.other, self.one)[:2])

    def test_noticed(self) -> None:
        """The copy stands aside, the others go on, all of them say so, and it can be settled."""
        copy = self.copy()
        self.assertEqual(self.one.id, copy.id)
        wait_for(lambda: info(copy, "cluster_standing_aside") == "yes", "the copy stands aside")
        self.assertIn("LEAVING", copy.error("ADDJOB", "q", "b", 0, "REPLICATE", 1))
        self.assertIn("LEAVING", copy.error("GETJOB", "NOHANG", "FROM", "q"))
        wait_for(lambda: info(self.other, "cluster_twins") == "1", "the third node notices")
        wait_for(lambda: info(self.one, "cluster_twins") == "1", "the first one hears of it")
        self.assertEqual("no", info(self.one, "cluster_standing_aside"))
        self.assertEqual(f"{self.one.ip}:{self.one.port}", self.seen_at())
        self.assertEqual(40, len(self.one.add("q", replicate=2)))
        for node, text in (
            (copy, "This node stands aside"),
            (self.other, "has a twin"),
            (self.one, "Another process also has the ID of this node"),
        ):
            wait_for(lambda n=node, t=text: t in n.log(), f"{node.ip} logs it")  # type: ignore[misc]
        addresses = [f"{node.ip}:{node.port}" for node in (self.one, self.other, copy)]
        for address in addresses:
            problems = filter(is_problem, findings(survey(Members(), [address], discover=False)))
            told = " ".join(finding.what for finding in problems)
            self.assertRegex(told, "stands aside|two processes under one node ID")
        self.settle(copy)

    def settle(self, copy: Node) -> None:
        """As the how-to says."""
        copy.kill()
        (copy.folder / "nodes.conf").unlink()
        copy._id = ""
        copy.boot()
        self.assertNotEqual(self.one.id, copy.id)
        self.one.call("CLUSTER", "MEET", copy.ip, copy.port)
        ids = {self.one.id, self.other.id, copy.id}
        wait_for(lambda: all(sees(n, ids) for n in (self.one, self.other, copy)), "all know all")
        wait_for(lambda: info(self.other, "cluster_twins") == "0", "nobody has a twin", 30)
        self.assertEqual(40, len(copy.add("q", replicate=3)))

    def test_moved(self) -> None:
        """A node that was stopped and is started elsewhere, with its files, takes part at once."""
        self.one.kill()
        moved = self.copy()
        ids = {moved.id, self.other.id}
        wait_for(lambda: sees(moved, ids) and sees(self.other, ids), "it is back", NODE_TIMEOUT_S * 5)
        self.assertEqual(40, len(moved.add("q", replicate=2)))
        self.assertEqual("no", info(moved, "cluster_standing_aside"))
        self.assertEqual("0", info(self.other, "cluster_twins"))

    def test_restarted(self) -> None:
        """A restart is no twin, however fast it is."""
        for _ in range(3):
            self.one.kill()
            self.one.boot()
        ids = {self.one.id, self.other.id}
        wait_for(lambda: sees(self.one, ids) and sees(self.other, ids), "it is back")
        self.assertEqual(40, len(self.one.add("q", replicate=2)))
        for node in (self.one, self.other):
            self.assertEqual("0", info(node, "cluster_twins"))
            self.assertEqual("no", info(node, "cluster_standing_aside"))
