"""Who belongs to the cluster, and who is well (cluster protocol, section 8)."""

from __future__ import annotations

import time

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node


class FailureTests(FleetTestCase):
    """Seven nodes, some of which fail."""

    node_timeout_s = NODE_TIMEOUT_S

    def test_ids(self) -> None:
        """Every node is somebody else, and all know all."""
        ids = {node.id for node in self.nodes}
        self.assertEqual(7, len(ids))
        for node in self.nodes:
            self.assertEqual(ids, set(node.table()))
            self.assertEqual(6, node.reachable())

    def opinions(self, victims: list[Node]) -> set[str]:
        """All that the others find of these."""
        flags = [o.flags(v) for o in self.fleet.living() for v in victims]
        return set().union(*flags)

    def test_killed(self) -> None:
        """Killed nodes are suspected, not too early, then failed for all; and well when back."""
        victims, others = self.nodes[:2], self.nodes[2:]
        ids = [victim.id for victim in victims]
        self.fleet.each(Node.kill, victims)
        killed_s = time.monotonic()
        first = self.wait(lambda: self.opinions(victims) - {"noflags"}, "somebody suspects")
        self.assertEqual({"fail?"}, first)
        self.assertGreater(time.monotonic() - killed_s, NODE_TIMEOUT_S - 0.5)
        self.wait(lambda: self.opinions(victims) == {"fail"}, "all know that they failed")
        for other in others:
            self.assertEqual(4, other.reachable())
            priorities = {row[0].decode(): row[3] for row in other.call("HELLO")[2:]}
            self.assertEqual([b"100", b"100"], [priorities[victim] for victim in ids])
        self.fleet.each(Node.boot, victims)
        self.fleet.agreed()
        self.assertEqual({"noflags"}, self.opinions(victims) - {"myself"})
