"""Whom a join waits for."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.cluster.joining import others
from disque_tx.cli.cluster.nodeview import NodeView
from disque_tx.client.values import ClusterNode


def node(name: str, *flags: str, connected: bool = True) -> ClusterNode:
    """As CLUSTER NODES tells it."""
    return ClusterNode(name, f"10.0.0.1:{ord(name)}", frozenset(flags), 0, 0, connected)


class OthersTests(SynchronousTestCase):
    """Nodes that nobody named."""

    def test_all_that_are_found_well(self) -> None:
        """All nodes are said to know each other, so those that were not named are asked too; one
        that cannot answer would be waited for in vain."""
        table = [node("a", "myself"), node("b"), node("c"), node("d", "fail")]
        table += [node("e", "handshake"), node("f", connected=False)]
        view = NodeView("10.0.0.1:97", "a", {each.id: each for each in table}, {}, 0, 0, 0.0)
        named = NodeView("10.0.0.1:98", "b", {}, {}, 0, 0, 0.0)
        self.assertEqual([f"10.0.0.1:{ord('c')}"], others([view, named]))
