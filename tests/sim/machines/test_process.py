"""Tests for :mod:`disque_tx.sim.machines.process`, the simulated machines, and their faults."""

from __future__ import annotations

from typing import Any

import hiredis
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.sim.actors.clients import request
from disque_tx.sim.faults.plan import FaultPlan
from disque_tx.sim.machines.interfaces import MachineSettings
from disque_tx.sim.machines.machine import Machine
from disque_tx.sim.world.network import Network, SimConnection
from disque_tx.sim.world.world import World

SECOND = 1_000_000
LOG = "disque.aof"
PORT = 7711


class Caller:
    """A client of one machine that waits for the reply to every request."""

    def __init__(self, cluster: Cluster, machine: Machine) -> None:
        self._world = cluster.world
        self._reader = hiredis.Reader()
        self._connections: list[SimConnection] = []
        cluster.network.connect(b"client", machine.ip, machine.port, self._up, self._failed)
        self._world.run_for(10_000)

    def _up(self, connection: SimConnection) -> None:
        connection.on_data = self._reader.feed
        self._connections.append(connection)

    def _failed(self) -> None:
        raise AssertionError("the machine does not answer")

    def ask(self, *words: bytes, within_us: int = 5 * SECOND) -> Any:
        """The reply; ``False`` if it does not arrive in time."""
        self._connections[0].write(request(*words))
        end_us = self._world.now_us + within_us
        reply: Any = False
        while reply is False and self._world.now_us < end_us:
            self._world.run_for(1_000)
            reply = self._reader.gets()
        return reply


class Cluster:
    """``size`` machines that form a cluster through CLUSTER MEET."""

    def __init__(self, seed: int, size: int, settings: MachineSettings | None = None) -> None:
        self.world = World(seed)
        self.network = Network(self.world)
        self.machines = [
            Machine(
                self.world,
                self.network,
                b"10.0.0.%d" % number,
                PORT,
                settings or MachineSettings(),
            )
            for number in range(1, size + 1)
        ]
        for machine in self.machines:
            machine.start()
        first = self.caller(0)
        for machine in self.machines[1:]:
            assert first.ask(b"CLUSTER", b"MEET", machine.ip, b"%d" % PORT) == b"OK"
        self.world.run_for(8 * SECOND)

    def caller(self, number: int) -> Caller:
        return Caller(self, self.machines[number])

    def sees(self, number: int) -> list[tuple[bytes, bool, int]]:
        """Address, link and flags of all other nodes, as one machine has them."""
        process = self.machines[number].process
        assert process is not None
        membership = process.node.membership
        return sorted(
            (entry.ip, entry.connected, int(entry.flags))
            for entry in membership.nodes.values()
            if entry is not membership.myself
        )


class ClusterTests(SynchronousTestCase):
    """The real node in a simulated cluster."""

    def test_job_survives(self) -> None:
        """Three machines form a cluster; a job with three copies survives the machine that accepted
        it."""
        cluster = Cluster(1, 3)
        for number in range(3):
            others = [m.ip for m in cluster.machines if m is not cluster.machines[number]]
            self.assertEqual([(ip, True, 0) for ip in others], cluster.sees(number))
        job_id = cluster.caller(0).ask(
            *(b"ADDJOB", b"q", b"body", b"1000", b"REPLICATE", b"3", b"RETRY", b"2")
        )
        cluster.machines[0].kill()
        words = (b"GETJOB", b"TIMEOUT", b"20000", b"FROM", b"q")
        reply = cluster.caller(1).ask(*words, within_us=20 * SECOND)
        self.assertEqual([[b"q", job_id, b"body"]], reply)
        self.assertEqual([], cluster.world.failures)
        for kind in ("PING", "PONG", "MEET", "REPLJOB", "GOTJOB"):
            self.assertGreater(cluster.world.counters[f"bus.{kind}.delivered"], 0, kind)

    def test_same_seed(self) -> None:
        """A seed determines the run: the same trace again, and another one for another seed."""
        hashes = []
        for seed in (5, 5, 6):
            cluster = Cluster(seed, 3)
            plan = FaultPlan(cluster.world, cluster.network, cluster.machines, 1.0)
            plan.schedule(cluster.world.now_us, cluster.world.now_us + 10 * SECOND)
            cluster.world.run_for(10 * SECOND)
            hashes.append(cluster.world.trace_hash())
        self.assertEqual(hashes[0], hashes[1])
        self.assertNotEqual(hashes[0], hashes[2])

    def test_paused(self) -> None:
        """A frozen process answers the requests it got meanwhile when it resumes; the others had
        marked it failed."""
        cluster = Cluster(2, 3)
        caller = cluster.caller(0)
        cluster.machines[0].pause(8 * SECOND)
        self.assertIs(False, caller.ask(b"PING", within_us=7 * SECOND))
        self.assertNotEqual(0, cluster.sees(1)[0][2])
        cluster.world.run_for(SECOND)
        self.assertEqual(b"PONG", caller.ask(b"PING"))
        cluster.world.run_for(8 * SECOND)
        self.assertEqual(0, cluster.sees(1)[0][2])

    def test_fault(self) -> None:
        """An exception in the program is a failure of the run, with the machine and the
        traceback."""
        cluster = Cluster(1, 1)
        process = cluster.machines[0].process
        assert process is not None

        def broken() -> None:
            raise RuntimeError("on purpose")

        process.feed(broken)
        cluster.world.run_for(SECOND)
        (failure,) = cluster.world.failures
        self.assertIn("10.0.0.1", failure)
        self.assertIn("RuntimeError: on purpose", failure)

    def test_turns(self) -> None:
        """Checkers are called at the end of turns."""
        cluster = Cluster(1, 1)
        seen: list[object] = []
        cluster.machines[0].on_turn.append(seen.append)
        cluster.caller(0).ask(b"QLEN", b"q")
        self.assertIn(cluster.machines[0].process, seen)


class LogTests(SynchronousTestCase):
    """Jobs on the disk."""

    def alone(self, seed: int, policy: str) -> tuple[Cluster, Caller]:
        settings = MachineSettings(appendonly=True, appendfsync=policy)
        cluster = Cluster(seed, 1, settings)
        return cluster, cluster.caller(0)

    def test_power(self) -> None:
        """With ``always`` every confirmed job survives a power failure."""
        for seed in range(10):
            cluster, caller = self.alone(seed, "always")
            machine = cluster.machines[0]
            ids = [caller.ask(b"ADDJOB", b"q", b"%d" % n, b"0", b"RETRY", b"1") for n in range(5)]
            machine.kill(power=True)
            cluster.world.run_for(SECOND)
            machine.start()
            process = machine.process
            assert process is not None
            self.assertEqual(set(ids), set(process.replayed()))
            self.assertEqual(set(ids), {job.id for job in process.node.jobs.table.values()})
            self.assertEqual(0, machine.alive_since_us)

    def test_forgotten(self) -> None:
        """Without a log, or when the disk is lost, a machine counts as having lost its memory."""
        cluster, _ = self.alone(1, "everysec")
        machine = cluster.machines[0]
        machine.kill(power=True)
        self.assertGreater(machine.alive_since_us, cluster.world.now_us)
        machine.start()
        self.assertEqual(cluster.world.now_us, machine.alive_since_us)
        cluster.world.run_for(SECOND)
        machine.kill()
        machine.start()
        self.assertEqual(cluster.world.now_us - SECOND, machine.alive_since_us)

    def test_sync_fails(self) -> None:
        """With ``always`` a failed sync ends the process, and the client gets no reply."""
        cluster, caller = self.alone(1, "always")
        machine = cluster.machines[0]
        machine.disk.sync_fails = True
        self.assertIs(False, caller.ask(b"ADDJOB", b"q", b"x", b"0"))
        self.assertIsNone(machine.process)

    def test_full(self) -> None:
        """With ``everysec`` clients get errors on a full disk until there is room again."""
        cluster, caller = self.alone(1, "everysec")
        machine = cluster.machines[0]
        machine.disk.full = True
        caller.ask(b"ADDJOB", b"q", b"x", b"0")
        cluster.world.run_for(SECOND)
        self.assertIn("MISCONF", str(caller.ask(b"ADDJOB", b"q", b"y", b"0")))
        machine.disk.full = False
        cluster.world.run_for(3 * SECOND)
        self.assertEqual(40, len(caller.ask(b"ADDJOB", b"q", b"z", b"0")))
        process = machine.process
        assert process is not None
        self.assertEqual(2, len(process.replayed()))

    def test_torn(self) -> None:
        """A truncated record is cut off; if the rest is damaged, the machine counts as having lost
        its disk."""
        for damage, kept in ((b"*2\r\n$7\r\nLOADJOB\r\n$900\r\nabc", 1), (b"rubbish", 0)):
            cluster, caller = self.alone(1, "always")
            caller.ask(b"ADDJOB", b"q", b"x", b"0", b"RETRY", b"1")
            machine = cluster.machines[0]
            machine.kill()
            machine.disk.append(LOG, damage)
            machine.start()
            process = machine.process
            assert process is not None
            self.assertEqual(kept, len(process.replayed()))
            self.assertEqual(1 - kept, cluster.world.counters["start.refused"])

    def test_stop(self) -> None:
        """An orderly stop sends errors to waiting clients, and queued jobs are queued again."""
        settings = MachineSettings(appendonly=True, appendfsync="no", enqueue_once=True)
        cluster = Cluster(1, 1, settings)
        machine = cluster.machines[0]
        cluster.caller(0).ask(b"ADDJOB", b"q", b"x", b"0", b"RETRY", b"0")
        machine.stop()
        machine.start()
        self.assertEqual(1, cluster.caller(0).ask(b"QLEN", b"q"))


class PlanTests(SynchronousTestCase):
    """The plan of faults."""

    def test_heal(self) -> None:
        """After any faults all machines run and are connected again."""
        cluster = Cluster(11, 3, MachineSettings(appendonly=True, appendfsync="always"))
        plan = FaultPlan(cluster.world, cluster.network, cluster.machines, 1.0)
        start_us = cluster.world.now_us
        plan.schedule(start_us, start_us + 20 * SECOND)
        cluster.world.run_for(20 * SECOND)
        plan.heal()
        cluster.world.run_for(60 * SECOND)
        self.assertGreater(len(plan.history), 5)
        self.assertEqual([], cluster.world.failures)
        for number in range(3):
            self.assertEqual([True, True], [up for _, up, _ in cluster.sees(number)])

    def test_allow_and_skip(self) -> None:
        """Only allowed faults are drawn, and skipped ones do not happen; the rest does."""
        histories = []
        for skip in ((), (0,)):
            cluster = Cluster(3, 2)
            plan = FaultPlan(cluster.world, cluster.network, cluster.machines, 0.5)
            plan.allow = {"clock_step", "slow_link"}
            plan.skip = set(skip)
            plan.schedule(cluster.world.now_us, cluster.world.now_us + 20 * SECOND)
            cluster.world.run_for(20 * SECOND)
            histories.append(plan.history)
        self.assertEqual({"clock_step", "slow_link"}, {name for _, name, _ in histories[0]})
        self.assertEqual(histories[0][1:], histories[1])

    def test_pressure(self) -> None:
        """Memory usage is raised to each of the node's levels, and lowered again."""
        cluster = Cluster(1, 1)
        machine = cluster.machines[0]
        process = machine.process
        assert process is not None
        caller = cluster.caller(0)
        for _ in range(200):
            caller.ask(b"ADDJOB", b"q", b"x" * 500, b"0")
        levels = []
        for percent in (74, 75, 95, 100, 0):
            machine.memory_pressure(percent)
            levels.append(process.node.memory.level())
        self.assertEqual([0, 1, 2, 2, 0], levels)
