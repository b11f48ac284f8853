"""Jepsen's total queue on five nodes, while the network and the processes fail."""

from __future__ import annotations

import random
import sys
import time

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node
from tests.acceptance.cluster.proxy import between
from tests.acceptance.cluster.totalqueue import TotalQueue

_FAULT_S = 10.0
_CALM_S = 4.0
_RETRY_S = 1


class TotalQueueTests(FleetTestCase):
    """Every node has one client; RETRY 1, REPLICATE 3."""

    node_timeout_s = NODE_TIMEOUT_S
    size = 5
    proxied = True

    def run_with(self, *faults: str) -> None:
        """Some of the faults, each for a while and with calm before it; then the verdict."""
        load = TotalQueue(self.nodes, self.queue, 3, _RETRY_S)
        load.begin()
        try:
            for fault in faults:
                time.sleep(_CALM_S)
                getattr(self, fault)()
                time.sleep(_FAULT_S)
                self.recover()
            time.sleep(_CALM_S)
        finally:
            load.end()
        self.fleet.agreed()
        load.drain(10 * _RETRY_S, 180)
        # For whoever runs the tests: the counts are the result, not only that nothing is wrong.
        print(f"\n      {load.report()}", file=sys.stderr, flush=True)
        self.assertEqual(set(), load.lost)
        self.assertEqual(set(), load.unexpected)
        self.assertGreater(len(load.accepted), 200)

    # -- faults ------------------------------------------------------------------------------

    def split(self) -> None:
        """Two halves that hear nothing of each other."""
        shuffled = random.sample(self.nodes, 5)
        few, many = [n.ip for n in shuffled[:2]], [n.ip for n in shuffled[2:]]
        random.choice((self.proxy().stall, self.proxy().reset))(between(few, many))

    def kill(self) -> None:
        """As many as may fail at once with three copies; they forget everything."""
        self.fleet.each(Node.kill, random.sample(self.nodes, 2))

    def stop(self) -> None:
        """Two processes stand still."""
        self.fleet.each(Node.freeze, random.sample(self.nodes, 2))

    def recover(self) -> None:
        """End whatever fault there is."""
        self.proxy().heal()
        for node in self.nodes:
            if not node.alive and node.process is not None and node.process.poll() is None:
                node.thaw()
        self.fleet.each(Node.boot)

    # -- tests -------------------------------------------------------------------------------

    def test_all_faults(self) -> None:
        """Nothing accepted is lost, nothing comes out that was not put in."""
        # Killed nodes forget their copies: only once, or the third copy may go, too.
        self.run_with("split", "kill", "stop")
