"""One run: a cluster, clients, faults, all from one seed; then healing, draining, judgement.

1. Nodes start and meet. Clients connect, and act as the drawn workload describes.
2. For some time faults strike. Then everything is repaired, the operator removes nodes that do not
   exist any more, and consumers on every node take what is left.
3. When nothing is left to be done, or after too long a time, the checkers judge.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from disque_tx.messages.bustypes import CAN_TABLES
from disque_tx.messages.records import ACKED
from disque_tx.sim.actors.actors import Actor, Consumer, Producer
from disque_tx.sim.actors.bursts import BurstProducer
from disque_tx.sim.actors.healing import Healing
from disque_tx.sim.actors.keys import KeyBurstProducer, KeyProducer, KeyUser
from disque_tx.sim.actors.operator import Operator, Stranger
from disque_tx.sim.actors.overview import EndingsWatcher, QueueFlusher
from disque_tx.sim.actors.policies import PolicyOperator, tables_differ
from disque_tx.sim.actors.schedules import schedule_actors
from disque_tx.sim.actors.tables import LastRepair, TableOperator
from disque_tx.sim.stage.checker import Checker
from disque_tx.sim.stage.shape import Shape
from disque_tx.sim.stage.stage import Stage
from disque_tx.sim.stage.workleft import views_differ, waits_for_copies, work_left
from disque_tx.sim.stage.workload import Workload

_SECOND: Final = 1_000_000
#: After healing: until all acknowledgements are collected, whose attempts are three minutes apart
#: in the end, and a holder that does not exist any more is waited for ten attempts.
DRAIN_S_MAX: Final = 1_500


class SimulatedRun(Stage):
    """``verdicts``: what each checker found, by its name, once it is over."""

    def __init__(
        self,
        seed: int,
        checkers: list[Checker],
        shape: Shape | None = None,
        keep_trace: bool = False,
    ) -> None:
        super().__init__(seed, shape, keep_trace)
        self.checkers = checkers
        self.actors: list[Actor] = []
        self.verdicts: dict[str, list[str]] = {}
        self.last_repair: LastRepair | None = None

    def execute(self, drain_s: int = DRAIN_S_MAX) -> list[str]:
        """All of it; returns the breaches, none when all promises were kept.

        ``drain_s``: how long it may take until nothing is left to be done, after the faults,
        besides what rates of queues need.
        """
        world = self.world
        self.copies.watch(self.machines, bool(self.shape.hosts))
        self.transfers.watch(self.machines)
        for checker in self.checkers:
            checker.watch(self)
        for machine in (*self.machines, *self.strangers):
            machine.start()
        healing = Healing(self)
        if not self.workload.named:
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
        until_us = world.now_us + (drain_s + self._limited_s()) * _SECOND
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
        if _producer(workload) is Producer:
            machine = self.machines[0] if workload.apart else None
            self.actors.append(BurstProducer(self, "bursts", workload, machine))
        if _producer(workload) is KeyUser:
            self.actors.append(KeyBurstProducer(self, "bursts", workload))
        if workload.waits:
            self.actors += [EndingsWatcher(self, f"w{number}", workload) for number in range(3)]
        if workload.flushes:
            self.actors.append(QueueFlusher(self, "flusher", workload))
        able = [machine for machine in self.machines if machine.settings.features & CAN_TABLES]
        if workload.tables:
            self.actors.append(TableOperator(self, "tables", workload))
        if workload.repairs and able:
            self.last_repair = LastRepair(self, able)
        self.actors += schedule_actors(self)
        if self.password:
            self.actors.append(Stranger(self, "stranger", workload))

    def _limited_s(self) -> int:
        """How long it takes at least to deliver what waits in queues with a rate."""
        jobs = {
            job.id: job.queue
            for _, node in self.nodes()
            for job in node.jobs.table.values()
            if work_left(self, node, job)
        }
        waiting = Counter(jobs.values())
        rates = [one for one in self.workload.policies if one[1] == b"rate"]
        return max((waiting[queue] // int(rate) for queue, _, rate in rates), default=0)

    def _work_left(self) -> bool:
        """Whether some node still has to do something."""
        if tables_differ(self) or not self.history.schedules.ended:
            return True
        if self.last_repair is not None and not self.last_repair.over:
            return True
        if self.workload.named and views_differ(self):
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
