"""Jepsen's total queue test on five nodes, while the network and the processes fail."""

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
    """One client per node; RETRY 1, REPLICATE 3."""

    node_timeout_s = NODE_TIMEOUT_S
    size = 5
    proxied = True

    def run_with(self, *faults: str) -> None:
        """Cause these faults, each for a while and after a period without faults; then check the
        result."""
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
        self.fleet.wait_until_agreed()
        load.drain(10 * _RETRY_S, 180)
        # The counts interest whoever runs the tests, also when nothing is wrong.
        print(f"\n      {load.report()}", file=sys.stderr, flush=True)
        self.assertEqual(set(), load.lost)
        self.assertEqual(set(), load.unexpected)
        self.assertGreater(len(load.accepted), 200)

    # -- faults ------------------------------------------------------------------------------

    def split(self) -> None:
        """Partition the nodes into two halves."""
        shuffled = random.sample(self.nodes, 5)
        few, many = [n.ip for n in shuffled[:2]], [n.ip for n in shuffled[2:]]
        random.choice((self.proxy().stall, self.proxy().reset))(between(few, many))

    def kill(self) -> None:
        """Kill as many nodes as may fail at once with three copies; they lose all their jobs."""
        self.fleet.each(Node.kill, random.sample(self.nodes, 2))

    def suspend(self) -> None:
        """Suspend two processes."""
        self.fleet.each(Node.suspend, random.sample(self.nodes, 2))

    def recover(self) -> None:
        """End all faults."""
        self.proxy().heal()
        for node in self.nodes:
            if not node.alive and node.process is not None and node.process.poll() is None:
                node.resume()
        self.fleet.each(Node.boot)

    # -- tests -------------------------------------------------------------------------------

    def test_all_faults(self) -> None:
        """No accepted job is lost, and nothing is delivered that was not added."""
        # Killed nodes lose their copies: kill only once, or the third copy may be lost, too.
        self.run_with("split", "kill", "suspend")
