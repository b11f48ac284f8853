"""Tests for :mod:`disque_tx.sim.machines.daemon`."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.engine.ownership import log_files
from disque_tx.engine.processes import node_files
from disque_tx.sim.machines.daemon import Daemon
from disque_tx.sim.machines.interfaces import MachineSettings
from disque_tx.sim.machines.machine import Machine
from disque_tx.sim.machines.process import NODES, Process
from disque_tx.sim.world.network import Network
from disque_tx.sim.world.world import World
from tests.sim.machines.test_process import PORT, SECOND, Caller, Cluster

HOST = b"10.1.0.1"


class DaemonCluster(Cluster):
    """Three processes of one daemon, which nobody introduces to each other."""

    def __init__(self) -> None:
        self.world = World(5)
        self.network = Network(self.world)
        settings = MachineSettings(appendonly=True, appendfsync="always")
        self.machines = [
            Machine(self.world, self.network, b"10.0.0.%d" % (n + 1), PORT + n, settings, host=HOST)
            for n in range(3)
        ]
        self.daemon = Daemon(self.machines)
        for machine in self.machines:
            machine.start()

    def process(self, number: int) -> Process:
        process = self.machines[number].process
        assert process is not None
        return process

    def known(self) -> list[int]:
        """How many nodes each process that runs knows."""
        return [
            len(machine.process.node.membership.nodes)
            for machine in self.machines
            if machine.process is not None
        ]


class DaemonTests(SynchronousTestCase):
    """What the parent does."""

    def setUp(self) -> None:
        self.cluster = DaemonCluster()
        self.world = self.cluster.world

    def test_join(self) -> None:
        """The processes find each other, and serve no jobs before."""
        process = self.cluster.process(0)
        self.assertTrue(process.server.joining)
        self.world.run_for(5 * SECOND)
        self.assertEqual([3, 3, 3], self.cluster.known())
        self.assertFalse(process.server.joining)
        self.assertEqual(2, len(process.node.membership.siblings))
        self.assertEqual([], self.world.failures)

    def test_clocks(self) -> None:
        """All of them have the wall clock of their machine."""
        self.world.run_for(SECOND)
        times = {machine.clocks.wall_us() for machine in self.cluster.machines}
        self.assertEqual(1, len(times))

    def test_fewer_and_more(self) -> None:
        """Surplus processes leave, end when they have no jobs, and leave no files behind; the
        others forget them, and those that come later are other nodes."""
        cluster, daemon = self.cluster, self.cluster.daemon
        self.world.run_for(5 * SECOND)
        before = [machine.identities[-1] for machine in cluster.machines]
        lowered: list[int] = []
        daemon.on_lowered = lambda: lowered.append(self.world.now_us)
        daemon.set_count(1)
        self.world.run_for(SECOND)
        self.assertTrue(cluster.process(2).node.membership.leaving)
        self.assertFalse(daemon.is_lowered)
        self.world.run_for(30 * SECOND)
        self.assertEqual(1, len(lowered))
        self.assertTrue(daemon.is_lowered)
        self.assertEqual([1], cluster.known())
        disk = cluster.machines[2].disk
        self.assertEqual(
            [],
            [path for path in node_files(NODES, log_files("disque.aof")) if disk.exists(path)],
        )
        daemon.set_count(3)
        self.world.run_for(5 * SECOND)
        self.assertEqual([3, 3, 3], cluster.known())
        after = [machine.identities[-1] for machine in cluster.machines]
        self.assertEqual([True, False, False], [a == b for a, b in zip(after, before, strict=True)])
        self.assertEqual([], self.world.failures)

    def test_jobs_keep_it(self) -> None:
        """A surplus process that has a job goes on until somebody took it; called back, it stays as
        it was."""
        cluster, daemon = self.cluster, self.cluster.daemon
        self.world.run_for(5 * SECOND)
        before = cluster.machines[2].identities[-1]
        caller = Caller(cluster, cluster.machines[2])
        words = (b"ADDJOB", b"q", b"x", b"0", b"REPLICATE", b"1", b"RETRY", b"100")
        self.assertEqual(40, len(caller.ask(*words)))
        daemon.set_count(2)
        self.world.run_for(20 * SECOND)
        self.assertFalse(daemon.is_lowered)
        daemon.set_count(3)
        self.world.run_for(2 * SECOND)
        membership = cluster.process(2).node.membership
        self.assertEqual((before, False), (membership.myself.id, membership.leaving))
