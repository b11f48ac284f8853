"""Membership and failure detection (cluster protocol, section 8)."""

from __future__ import annotations

import time

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node


class FailureTests(FleetTestCase):
    """Seven nodes, some of which fail."""

    node_timeout_s = NODE_TIMEOUT_S

    def test_ids(self) -> None:
        """Every node has its own ID, and all nodes know each other."""
        ids = {node.id for node in self.nodes}
        self.assertEqual(7, len(ids))
        for node in self.nodes:
            self.assertEqual(ids, set(node.table()))
            self.assertEqual(6, node.reachable())

    def flags_of(self, victims: list[Node]) -> set[str]:
        """All flags that the running nodes have for these nodes."""
        flags = [o.flags(v) for o in self.fleet.living() for v in victims]
        return set().union(*flags)

    def test_killed(self) -> None:
        """Killed nodes are suspected, but not too early, then marked as failed by all, and
        reachable again when they are back."""
        victims, others = self.nodes[:2], self.nodes[2:]
        ids = [victim.id for victim in victims]
        self.fleet.each(Node.kill, victims)
        killed_s = time.monotonic()
        first = self.wait(lambda: self.flags_of(victims) - {"noflags"}, "one node suspects them")
        self.assertEqual({"fail?"}, first)
        self.assertGreater(time.monotonic() - killed_s, NODE_TIMEOUT_S - 0.5)
        self.wait(lambda: self.flags_of(victims) == {"fail"}, "all nodes mark them as failed")
        for other in others:
            self.assertEqual(4, other.reachable())
            priorities = {row[0].decode(): row[3] for row in other.call("HELLO")[2:]}
            self.assertEqual([b"100", b"100"], [priorities[victim] for victim in ids])
        self.fleet.each(Node.boot, victims)
        self.fleet.wait_until_agreed()
        self.assertEqual({"noflags"}, self.flags_of(victims) - {"myself"})
