"""One run: a cluster, clients, faults, all from one seed; then healing, draining, judgement.

1. Nodes start and meet. Clients connect, and act as the drawn workload describes.
2. For some time faults strike. Then everything is repaired, the operator removes nodes that do not
   exist any more, and consumers on every node take what is left.
3. When nothing is left to be done, or after too long a time, the checkers judge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

import attrs

from disque_tx.busmessages import (
    CAN_BULK,
    CAN_KEYS,
    CAN_LOADED,
    CAN_MATCH,
    CAN_QUERY,
    CAN_REPAIR,
    CAN_TABLES,
)
from disque_tx.core.node import Node
from disque_tx.messages import ACKED, ACTIVE, QUEUED, WAIT_REPL
from disque_tx.sim.actors import Actor, Consumer, Producer
from disque_tx.sim.faults import FaultPlan
from disque_tx.sim.healing import Healing
from disque_tx.sim.history import Added, Copies, History
from disque_tx.sim.keys import KeyProducer, KeyUser
from disque_tx.sim.machine import Machine, MachineSettings
from disque_tx.sim.network import Network
from disque_tx.sim.operator import Operator, Stranger
from disque_tx.sim.overview import EndingsWatcher, QueueFlusher
from disque_tx.sim.policies import PolicyOperator, tables_differ
from disque_tx.sim.schedules import ScheduleOperator
from disque_tx.sim.schedules import begin as begin_schedules
from disque_tx.sim.shape import Shape, draw_shape
from disque_tx.sim.workloads import Workload, workload_called
from disque_tx.sim.world import World

if TYPE_CHECKING:
    from disque_tx.core.job import Job

_SECOND: Final = 1_000_000
_PORT: Final = 7711
PASSWORD: Final = b"open sesame"
#: After healing: until all acknowledgements are collected, whose attempts are three minutes apart
#: in the end, and a holder that does not exist any more is waited for ten attempts.
DRAIN_S_MAX: Final = 1_500


class Run:
    """``busy``: clients act. ``over``: the checkers judge. ``requests``: how many were sent.
    ``lost``: how many of them no client saw the answer to.
    ``evicts``: memory was short at some time, so that acknowledged jobs may have been dropped.
    ``verdicts``: what each checker found, by its name, once it is over.
    ``schedules``: who sets schedules, ``None`` for nobody.
    ``early``: IDs that were delivered before the client that added the job had its answer."""

    def __init__(
        self,
        seed: int,
        checkers: list[Checker],
        shape: Shape | None = None,
        keep_trace: bool = False,
    ) -> None:
        self.world = World(seed)
        self.world.keep_trace = keep_trace
        self.shape = shape or draw_shape(self.world)
        self.workload: Workload = workload_called(self.shape.workload)
        self.history = History()
        self.requests = 0
        self.lost = 0
        self.busy = True
        self.over = False
        self.pace_us = self.shape.pace_ms * 1000
        self.queues = self.shape.queues
        self.password = PASSWORD if self.shape.password else b""
        self.network = Network(self.world)
        settings = MachineSettings(
            appendonly=self.shape.appendonly,
            appendfsync=self.shape.appendfsync,
            node_timeout_ms=3_000,
            password=self.password,
            policies=self.workload.policies,
        )
        self.machines = [self._machine(n, settings) for n in range(self.shape.nodes)]
        self.plan = FaultPlan(self.world, self.network, self.machines, self.shape.intensity)
        self.plan.allow = set(self.shape.faults)
        self.copies = Copies()
        self.checkers = checkers
        self.actors: list[Actor] = []
        self.verdicts: dict[str, list[str]] = {}
        self.schedules: ScheduleOperator | None = None

    def _machine(self, number: int, settings: MachineSettings) -> Machine:
        """Several of them share a host when the shape has hosts, and not all may have the messages
        that are ours."""
        own_features = CAN_TABLES | CAN_BULK | CAN_QUERY | CAN_MATCH | CAN_LOADED | CAN_REPAIR
        features = own_features if self.shape.has_own(number) else 0
        if self.workload.keys or self.workload.key_pool:
            features = own_features | CAN_KEYS
        ip, hosts = b"10.0.0.%d" % (number + 1), self.shape.hosts
        host = b"10.1.0.%d" % (number % hosts + 1) if hosts else ip
        port = _PORT + number // hosts if hosts else _PORT
        own = attrs.evolve(settings, features=features)
        machine = Machine(self.world, self.network, ip, port, own, host)
        if self.workload.schedules:
            machine.clocks.set_right()
        return machine

    def nodes(self) -> Iterator[tuple[Machine, Node]]:
        """The nodes that run now, and where."""
        for machine in self.machines:
            if machine.process is not None:
                yield machine, machine.process.node

    @property
    def evicts(self) -> bool:
        """Whether memory was made short."""
        return any(name.startswith("memory") for _, name, _ in self.plan.history)

    @property
    def early(self) -> Collection[bytes]:
        """IDs that were delivered before their ADDJOB was answered."""
        accepted = {added.job_id: added.accepted_us for added in self.history.accepted()}
        return {
            delivery.job_id
            for delivery in self.history.delivered
            if delivery.at_us <= accepted.get(delivery.job_id, -1)
        }

    def accepted(self, added: Added, node: bytes, job_id: bytes) -> None:
        """The client of a job has its ID."""
        added.accepted_us = self.world.now_us
        added.job_id = job_id
        added.node = node
        machine = next(machine for machine in self.machines if machine.ip == node)
        if machine.process is not None:
            asked = machine.process.node
            added.outside = not asked.replication.takes_jobs()
        added.holders = self.copies.seen.get(job_id) or self.copies.holders(self, job_id)

    def execute(self, drain_s: int = DRAIN_S_MAX) -> list[str]:
        """All of it; returns the breaches, none when all promises were kept.

        ``drain_s``: how long it may take until nothing is left to be done, after the faults.
        """
        world = self.world
        self.copies.watch(self)
        for checker in self.checkers:
            checker.watch(self)
        for machine in self.machines:
            machine.start()
        healing = Healing(self)
        healing.meet()
        world.run_for(8 * _SECOND)
        self._start_clients()
        end_us = world.now_us + self.shape.fault_s * _SECOND
        self.plan.schedule(world.now_us, end_us, self.shape.first)
        world.run_for(self.shape.fault_s * _SECOND)
        self.plan.heal()
        world.run_for(2 * _SECOND)
        self.busy = False
        healing.begin()
        until_us = world.now_us + drain_s * _SECOND
        quiet = 0
        while world.now_us < until_us and quiet < 3:
            world.run_for(5 * _SECOND)
            quiet = quiet + 1 if not self._work_left() else 0
        self.over = True
        self.verdicts = {type(one).__name__: one.judge(self) for one in self.checkers}
        return [*world.failures, *(breach for some in self.verdicts.values() for breach in some)]

    def _start_clients(self) -> None:
        """Start the clients, at least one of each kind."""
        workload = self.workload
        count = max(2, self.shape.clients)
        for number in range(count):
            producing = number % 2 == 0
            machine = None
            if workload.apart:
                machine = self.machines[0 if producing else -1]
            kind: Any = _producer(workload) if producing else Consumer
            name = f"{'p' if producing else 'c'}{number}"
            self.actors.append(kind(self, name, workload, machine))
        self.actors.append(Operator(self, "operator", workload))
        self.actors.append(PolicyOperator(self, "policies", workload))
        if workload.waits:
            self.actors += [EndingsWatcher(self, f"w{number}", workload) for number in range(3)]
        if workload.flushes:
            self.actors.append(QueueFlusher(self, "flusher", workload))
        begin_schedules(self)
        if self.password:
            self.actors.append(Stranger(self, "stranger", workload))

    def _work_left(self) -> bool:
        """Whether some node still has to do something."""
        if tables_differ(self) or (self.schedules is not None and not self.schedules.ended):
            return True
        for machine in self.machines:
            process = machine.process
            if process is None:
                return True
            if waits_for_copies(self, process.node):
                return True
            for job in process.node.jobs.table.values():
                if work_left(self, process.node, job) or job.state == ACKED:
                    return True
        return False


def _producer(workload: Workload) -> type[Producer]:
    """Who adds the jobs."""
    if workload.keys:
        return KeyProducer
    return KeyUser if workload.key_pool else Producer


class Checker:
    """One promise. A checker gets the run and returns one sentence for every breach it finds. Some
    look while the run goes on, all of them when it is over: healed, drained, and quiet."""

    def watch(self, run: Run) -> None:
        """The run begins: look whenever it matters. Most promises show in the end."""

    def judge(self, run: Run) -> list[str]:
        """The run is over: every breach, in one sentence each."""
        raise NotImplementedError


def work_left(run: Run, node: Node, job: Job) -> bool:
    """Whether something should still happen with the job on that node."""
    if job.state == WAIT_REPL:
        return not _without_place(run, node, job)
    return job.state == QUEUED or (job.state == ACTIVE and job.retry_s > 0)


def waits_for_copies(run: Run, node: Node) -> bool:
    """Whether the node should still place copies, or learn of some."""
    if node.replication.asynchronous:
        return True
    waits = node.waiters.copies.values()
    return any(not _without_place(run, node, wait.job) for wait in waits)


def _without_place(run: Run, node: Node, job: Job) -> bool:
    """Whether no client waits for the job's copies, and too few nodes stay in the cluster."""
    wait = node.waiters.copies.get(job.id)
    staying = sum(not other.membership.leaving for _, other in run.nodes())
    return wait is not None and wait.client is None and staying < job.repl
