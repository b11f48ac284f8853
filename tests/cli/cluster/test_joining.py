"""Nodes that a join waits for."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.cluster.joining import others
from disque_tx.client.values import ClusterNode
from disque_tx.diagnosis.facts import SurveyedNode


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
