"""One run: a cluster, clients, faults, all from one seed; then healing, draining, judgement.

1. Nodes start and meet. Clients come, and do what the drawn workload says.
2. For some time faults strike. Then everything is repaired, the operator removes nodes that do not
   exist any more, and consumers on every node take what is left.
3. When nothing is left to be done, or after too long a time, the checkers judge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

import attrs

from disque_tx.core.node import Node
from disque_tx.messages import ACKED
from disque_tx.sim.actors import Actor, Consumer, Operator, Producer
from disque_tx.sim.checkers import Checker
from disque_tx.sim.checkers.budget import WithinBudget
from disque_tx.sim.checkers.collected import Collected
from disque_tx.sim.checkers.copies import EnoughCopies
from disque_tx.sim.checkers.counted import Counted
from disque_tx.sim.checkers.drained import Drained, work_left
from disque_tx.sim.checkers.ids import UniqueIds
from disque_tx.sim.checkers.lost import NothingLost
from disque_tx.sim.checkers.once import AtMostOnce
from disque_tx.sim.checkers.replay import LogEqualsMemory
from disque_tx.sim.checkers.timing import InTime
from disque_tx.sim.checkers.unexpected import NothingUnexpected
from disque_tx.sim.checkers.views import SameViews
from disque_tx.sim.checkers.working import Heeded
from disque_tx.sim.faults import FAULTS, FaultPlan
from disque_tx.sim.healing import Healing
from disque_tx.sim.history import Added, History
from disque_tx.sim.machine import Machine, MachineSettings
from disque_tx.sim.network import Network
from disque_tx.sim.workloads import WORKLOADS, Workload
from disque_tx.sim.world import World

_SECOND: Final = 1_000_000
_PORT: Final = 7711
#: After healing: until all acknowledgements are collected, whose attempts are three minutes apart
#: in the end, and a holder that does not exist any more is waited for ten attempts.
DRAIN_S_MAX: Final = 1_500


@attrs.define
class Shape:
    """What is drawn before a run; any of it can be given instead, to make a failing run smaller.

    ``faults``: names of those that may strike. ``fault_s``: for how long. ``intensity``: 0 to 1.
    """

    nodes: int
    clients: int
    workload: str
    faults: frozenset[str]
    fault_s: int
    intensity: float
    pace_ms: int
    queues: int
    appendonly: bool
    appendfsync: str


def draw_shape(world: World) -> Shape:
    """The shape that belongs to the world's seed."""
    random = world.random("shape")
    nodes = random.choice((1, 2, 3, 3, 3, 3, 4, 5, 5, 7))
    workload = random.choice(sorted(WORKLOADS))
    names = sorted(FAULTS)
    some = random.choice((0, 1, 3, 6, len(names)))
    return Shape(
        nodes=nodes,
        clients=random.randint(1, 20),
        workload=workload,
        faults=frozenset(random.sample(names, some)),
        fault_s=random.choice((10, 20, 40)),
        intensity=random.choice((0.2, 0.5, 1.0, 2.0)),
        pace_ms=random.choice((50, 200, 600)),
        queues=random.randint(1, 3),
        appendonly=WORKLOADS[workload].logs or random.random() < 0.3,
        appendfsync=random.choice(("always", "always", "everysec", "no")),
    )


class Run:
    """``busy``: clients act. ``over``: the checkers judge. ``requests``: how many were sent.
    ``evicts``: memory was short at some time, so that acknowledged jobs may have been dropped.
    ``early``: IDs that were delivered before the client that added the job had its answer."""

    def __init__(self, seed: int, shape: Shape | None = None, keep_trace: bool = False) -> None:
        self.world = World(seed)
        self.world.keep_trace = keep_trace
        self.shape = shape or draw_shape(self.world)
        self.workload: Workload = WORKLOADS[self.shape.workload]
        self.history = History()
        self.requests = 0
        self.busy = True
        self.over = False
        self.pace_us = self.shape.pace_ms * 1000
        self.queues = self.shape.queues
        self.network = Network(self.world)
        settings = MachineSettings(
            appendonly=self.shape.appendonly,
            appendfsync=self.shape.appendfsync,
            node_timeout_ms=3_000,
        )
        self.machines = [
            Machine(self.world, self.network, b"10.0.0.%d" % (n + 1), _PORT, settings)
            for n in range(self.shape.nodes)
        ]
        self.plan = FaultPlan(self.world, self.network, self.machines, self.shape.intensity)
        self.plan.allow = set(self.shape.faults)
        self.copies = EnoughCopies()
        self.checkers: list[Checker] = [
            NothingLost(),
            NothingUnexpected(),
            AtMostOnce(),
            Heeded(),
            self.copies,
            InTime(),
            UniqueIds(),
            LogEqualsMemory(),
            WithinBudget(),
            Drained(),
            Collected(),
            SameViews(),
            Counted(),
        ]
        self.actors: list[Actor] = []

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
            added.outside = asked.membership.leaving or asked.memory.level() > 0
        added.holders = self.copies.seen.get(job_id) or self.copies.holders(self, job_id)

    def execute(self) -> list[str]:
        """All of it; returns the breaches, none when all promises were kept."""
        world = self.world
        for machine in self.machines:
            machine.start()
        for checker in self.checkers:
            checker.watch(self)
        healing = Healing(self)
        healing.meet()
        world.run_for(8 * _SECOND)
        self._people()
        self.plan.schedule(world.now_us, world.now_us + self.shape.fault_s * _SECOND)
        world.run_for(self.shape.fault_s * _SECOND)
        self.plan.heal()
        world.run_for(2 * _SECOND)
        self.busy = False
        healing.begin()
        until_us = world.now_us + DRAIN_S_MAX * _SECOND
        quiet = 0
        while world.now_us < until_us and quiet < 3:
            world.run_for(5 * _SECOND)
            quiet = quiet + 1 if not self._work_left() else 0
        self.over = True
        breaches = list(world.failures)
        for checker in self.checkers:
            breaches += checker.judge(self)
        return breaches

    def _people(self) -> None:
        """Clients come, at least one of each kind."""
        workload = self.workload
        count = max(2, self.shape.clients)
        for number in range(count):
            producing = number % 2 == 0
            machine = None
            if workload.apart:
                machine = self.machines[0 if producing else -1]
            kind: Any = Producer if producing else Consumer
            name = f"{'p' if producing else 'c'}{number}"
            self.actors.append(kind(self, name, workload, machine))
        self.actors.append(Operator(self, "operator", workload))

    def _work_left(self) -> bool:
        """Whether some node still has to do something."""
        for machine in self.machines:
            process = machine.process
            if process is None:
                return True
            if process.node.waiters.copies or process.node.replication.asynchronous:
                return True
            for job in process.node.jobs.table.values():
                if work_left(job) or job.state == ACKED:
                    return True
        return False
