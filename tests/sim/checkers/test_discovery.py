"""Nodes that find each other by a name."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.sim.campaign import checked_run
from disque_tx.sim.checkers.discovery import OneCluster, OthersRefused
from disque_tx.sim.run import SimulatedRun
from tests.sim.machines.test_process import SECOND

#: The number of a run whose nodes find each other by a name.
SEED = 16_000_003
#: Three intervals, and longer than that.
LATE_US = 20 * SECOND


class DiscoveryCase(SynchronousTestCase):
    """A run whose machines are started by hand."""

    def setUp(self) -> None:
        self.run_: SimulatedRun = checked_run(SEED)
        self.one, self.others = OneCluster(), OthersRefused()
        for checker in (self.one, self.others):
            checker.watch(self.run_)
        assert self.run_.plan.names is not None
        self.names = self.run_.plan.names

    def run_for(self, us: int) -> int:
        """Start whatever does not run, and let this time pass; the breaches of the promise that
        there is one cluster."""
        for machine in (*self.run_.machines, *self.run_.strangers):
            machine.start()
        self.run_.world.run_for(us)
        return len(self.one.judge(self.run_))


class OneClusterTests(DiscoveryCase):
    """Nodes that do not become one cluster."""

    def test_joined(self) -> None:
        """Nothing is reported of nodes that found each other."""
        self.assertEqual(0, self.run_for(LATE_US))

    def test_not_joined(self) -> None:
        """Nodes that the name never names stay alone: that breaks the promise, but not before the
        third interval is over."""
        self.names.machines = []
        self.assertEqual(0, self.run_for(LATE_US - 6 * SECOND))
        self.assertGreater(self.run_for(6 * SECOND), 0)

    def test_lies(self) -> None:
        """As long as the name lies nothing is promised; three intervals later they are joined."""
        self.names.begin("silent")
        self.assertEqual(0, self.run_for(2 * LATE_US))
        self.names.end("silent")
        self.assertEqual(0, self.run_for(LATE_US))

    def test_cut(self) -> None:
        """Nodes that cannot reach each other need not be members, those beside them need."""
        here, *there = [machine.ip for machine in self.run_.machines]
        self.run_.network.partition([here], there, False)
        self.assertEqual(0, self.run_for(LATE_US))


class OthersRefusedTests(DiscoveryCase):
    """Nodes of another cluster."""

    def test_refused(self) -> None:
        """They are listed, and are no members."""
        self.names.begin("foreign")
        self.run_for(LATE_US)
        self.assertEqual([], self.others.judge(self.run_))

    def test_member(self) -> None:
        """A node of ours that has the name of the other cluster joins that one."""
        machine = self.run_.machines[0]
        machine.settings = self.run_.strangers[0].settings
        self.names.begin("foreign")
        self.run_for(LATE_US)
        self.assertNotEqual([], self.others.judge(self.run_))
