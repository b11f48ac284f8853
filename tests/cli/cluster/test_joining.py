"""Nodes that a join waits for."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.cluster.joining import others
from disque_tx.cli.programs.client import main
from disque_tx.client.values import ClusterNode
from disque_tx.diagnosis.facts import SurveyedNode
from tests.client.scripted import NODE_IDS, ScriptedTestCase, bulk


def node(name: str, *flags: str, connected: bool = True) -> ClusterNode:
    """A line of CLUSTER NODES."""
    return ClusterNode(name, f"10.0.0.1:{ord(name)}", frozenset(flags), 0, 0, connected)


class OthersTests(SynchronousTestCase):
    """Members that were not given on the command line."""

    def test_all_reachable_nodes(self) -> None:
        """A join waits for all reachable members, given or not; it does not wait for one that
        cannot answer."""
        table = [node("a", "myself"), node("b"), node("c"), node("d", "fail")]
        table += [node("e", "handshake"), node("f", connected=False)]
        view = SurveyedNode("10.0.0.1:97", "a", {each.id: each for each in table}, {}, 0, 0, 0.0)
        named = SurveyedNode("10.0.0.1:98", "b", {}, {}, 0, 0, 0.0)
        self.assertEqual([f"10.0.0.1:{ord('c')}"], others([view, named]))


class MeetTests(ScriptedTestCase):
    """``disque cluster meet``, told two nodes, of which the first has another one in its cluster
    already."""

    def setUp(self) -> None:
        super().setUp()
        self.nodes = [self.node(name, INFO=bulk("disque_version:1.0")) for name in NODE_IDS]

    def table(self, *known: int) -> bytes:
        """CLUSTER NODES of a node that has links to these."""
        some = [self.nodes[number] for number in known]
        return bulk("".join(f"{one.id} {one.address} - 0 0 connected\n" for one in some))

    def met(self, of_third: bytes) -> tuple[int, str]:
        """The exit status and what is said; the third node has this table after the MEET."""
        first, second, third = self.nodes
        everybody = self.table(0, 1, 2)
        after = [b"+OK\r\n", bulk(first.id), everybody]
        first.answer("CLUSTER", bulk(first.id), self.table(0, 2), *after)
        mine = bulk(second.id)
        second.answer("CLUSTER", mine, self.table(1), mine, everybody)
        third.answer("CLUSTER", bulk(third.id), of_third)
        words = ["cluster", "meet", first.address, second.address, "--yes", "--timeout", "0"]
        said = io.StringIO()
        with redirect_stdout(said), redirect_stderr(said):
            status = main(words)
        return status, said.getvalue()

    def test_all(self) -> None:
        """It is done when all members of the cluster have links to the new one, not only those that
        were named."""
        self.assertEqual((0, "The 3 nodes know each other.\n"), self.met(self.table(0, 1, 2)))
        met = [words for words in self.nodes[0].requests if words[:2] == [b"CLUSTER", b"MEET"]]
        self.assertEqual([b"127.0.0.1", str(self.nodes[1].port).encode()], met[0][2:4])

    def test_already(self) -> None:
        """Nodes that know each other are left as they are, and that is said."""
        first, second, _ = self.nodes
        for node in (first, second):
            node.answer("CLUSTER", bulk(node.id), self.table(0, 1))
        said = io.StringIO()
        words = ["cluster", "create", first.address, second.address, "--yes"]
        with redirect_stdout(said), redirect_stderr(said):
            status = main(words)
        self.assertEqual((0, "The 2 nodes already know each other.\n"), (status, said.getvalue()))
        self.assertNotIn([b"CLUSTER", b"MEET"], [words[:2] for words in first.requests])

    def test_not_all(self) -> None:
        """A member that has no link to the new node is named, with that node."""
        status, said = self.met(self.table(0, 2))
        self.assertEqual(1, status)
        self.assertIn(f"{self.nodes[2].address} has no link to {NODE_IDS[1]}", said)
