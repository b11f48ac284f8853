"""Where a run takes place: the world that a seed leads to, with its network, machines, faults and
the record of what happened. Actors and checkers see this of a run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

import attrs

from disque_tx.core.node import Node
from disque_tx.messages.bustypes import (
    CAN_BULK,
    CAN_DEMAND,
    CAN_HAND_OVER,
    CAN_HEAL,
    CAN_KEYS,
    CAN_LOADED,
    CAN_MATCH,
    CAN_NAME,
    CAN_QUERY,
    CAN_REPAIR,
    CAN_SETTLE,
    CAN_TABLES,
)
from disque_tx.sim.faults.plan import FaultPlan
from disque_tx.sim.machines.daemon import Daemon
from disque_tx.sim.machines.interfaces import MachineSettings
from disque_tx.sim.machines.machine import Machine
from disque_tx.sim.stage.copies import Copies
from disque_tx.sim.stage.history import Added, RunHistory
from disque_tx.sim.stage.naming import give_names, named, strangers, with_place
from disque_tx.sim.stage.shape import Shape, draw_shape
from disque_tx.sim.stage.transfers import Transfers
from disque_tx.sim.stage.workload import Workload
from disque_tx.sim.stage.workloads import with_everything, workload_called
from disque_tx.sim.world.network import Network
from disque_tx.sim.world.world import World

_PORT: Final = 7711
#: For how long a node fails before its copies are made again, in runs in which nodes are lost.
_AGAIN_MS: Final = 4_000
PASSWORD: Final = b"open sesame"


class Stage:
    """``busy``: clients act. ``over``: the checkers judge. ``requests``: how many were sent.
    ``lost``: how many of them no client saw the answer to."""

    def __init__(self, seed: int, shape: Shape | None = None, keep_trace: bool = False) -> None:
        self.world = World(seed)
        self.world.keep_trace = keep_trace
        self.shape = shape or draw_shape(self.world)
        self.workload: Workload = workload_called(self.shape.workload)
        if self.shape.everything:
            self.workload = with_everything(self.workload, self.shape.nodes)
        self.history = RunHistory()
        self.requests = 0
        self.lost = 0
        self.busy = True
        self.over = False
        self.pace_us = self.shape.pace_ms * 1000
        self.queues = self.shape.queues
        self.password = PASSWORD if self.shape.password else b""
        self.network = Network(self.world)
        gone = self.workload.losses or self.workload.evacuates or self.workload.named
        settings = MachineSettings(
            appendonly=self.shape.appendonly,
            appendfsync=self.shape.appendfsync,
            node_timeout_ms=3_000,
            password=self.password,
            policies=self.workload.policies,
            replicate_again_ms=_AGAIN_MS if gone else 300_000,
        )
        if self.workload.named:
            settings = named(settings)
        self.machines = [self._machine(n, settings) for n in range(self.shape.nodes)]
        self.plan = FaultPlan(self.world, self.network, self.machines, self.shape.intensity)
        self.plan.allow = set(self.shape.faults)
        if self.workload.processes:
            self.plan.daemons = self._daemons()
        #: Nodes of another cluster.
        self.strangers: list[Machine] = []
        if self.workload.named:
            self.strangers = strangers(self.world, self.network, settings)
            self.plan.names = give_names(self.world, self.machines, self.strangers)
        self.copies = Copies()
        self.transfers = Transfers()

    def _machine(self, number: int, settings: MachineSettings) -> Machine:
        """Several of them share a host when the shape has hosts, and not all may have the messages
        that are ours."""
        own_features = CAN_TABLES | CAN_BULK | CAN_QUERY | CAN_MATCH | CAN_LOADED | CAN_REPAIR
        own_features |= CAN_DEMAND | CAN_HEAL | CAN_HAND_OVER | CAN_SETTLE
        features = own_features if self.shape.has_own(number) else 0
        if self.workload.keys or self.workload.key_pool or self.workload.processes:
            features = own_features | CAN_KEYS
        if self.workload.named:
            features |= CAN_NAME
            settings = with_place(self.world, settings, number)
        if self.workload.mixed and not features:
            settings = attrs.evolve(settings, replicate_again_ms=0)
        ip, hosts = b"10.0.0.%d" % (number + 1), self.shape.hosts
        host = b"10.1.0.%d" % (number % hosts + 1) if hosts else ip
        port = _PORT + number // hosts if hosts else _PORT
        own = attrs.evolve(settings, features=features)
        machine = Machine(self.world, self.network, ip, port, own, host)
        if self.workload.schedules:
            machine.clocks.set_right()
        return machine

    def _daemons(self) -> list[Daemon]:
        """Make a daemon of the machines of each host."""
        members: dict[bytes, list[Machine]] = {}
        for machine in self.machines:
            members.setdefault(machine.host, []).append(machine)
        return [Daemon(machines) for machines in members.values()]

    def nodes(self) -> Iterator[tuple[Machine, Node]]:
        """The nodes that run now, and where."""
        for machine in self.machines:
            if machine.process is not None:
                yield machine, machine.process.node

    @property
    def evicts(self) -> bool:
        """Whether memory was short at some time, so that acknowledged jobs may have been
        dropped."""
        return any(name.startswith("memory") for _, name, _ in self.plan.history)

    def delivered_early(self) -> Collection[bytes]:
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
        added.holders = self.copies.seen.get(job_id) or self.copies.holders(self.machines, job_id)
