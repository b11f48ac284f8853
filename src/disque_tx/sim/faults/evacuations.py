"""Nodes that give their jobs away, and are gone then with all they have; new ones come in their
places."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from disque_tx.core.jobs.job import DELAYED
from disque_tx.core.node import Node
from disque_tx.messages.bustypes import CAN_HAND_OVER
from disque_tx.messages.records import ACKED, QUEUED, WAIT_REPL
from disque_tx.sim.faults.targets import Targets
from disque_tx.sim.machines.machine import Machine
from disque_tx.sim.machines.process import Process
from disque_tx.sim.world.network import End

_LOOK_US: Final = 250_000
#: A node without jobs that wait for clients is empty in that time.
_IN_TIME_US: Final = 30_000_000
#: How long the place of a node that is gone stays empty at the most.
_EMPTY_US: Final = 6_000_000


def evacuated(number: int) -> Callable[[Targets, Random], End | None]:
    """The fault: ``number`` machines give their jobs away at once, if all have been up for a while,
    and enough stay that these can reach. Originals cannot do that. When one is empty it is gone,
    and its disk; later an empty one with another ID comes in its place. What is not empty when the
    fault ends stays."""

    def begin(targets: Targets, random: Random) -> End | None:
        staying = [m for m in targets.machines if m.process is not None and not _leaves(m.process)]
        if not targets.all_up() or len(staying) < number + 2:
            return None
        able = [m for m in staying if m.settings.features & CAN_HAND_OVER and _reach(m) > number]
        if len(able) < number:
            return None
        chosen = random.sample(able, number)
        targets.record("evacuated", *[machine.ip for machine in chosen])
        ends = [_Evacuated(targets, machine, random).end for machine in chosen]

        def end() -> None:
            for one in ends:
                one()

        return end

    return begin


def _reach(machine: Machine) -> int:
    """How many others can take its jobs."""
    return len(machine.process.node.membership.reachable) if machine.process is not None else 0


def _leaves(process: Process) -> bool:
    return process.node.membership.leaving


class _Evacuated:
    """One machine."""

    def __init__(self, targets: Targets, machine: Machine, random: Random) -> None:
        self._targets = targets
        self._machine = machine
        self._process = machine.process
        self._empty_us = random.randint(0, _EMPTY_US)
        self._over = False
        self._begun_us = targets.world.now_us
        if self._process is not None:
            with self._process.turn() as node:
                node.membership.set_leaving(True)
                node.evacuation.begin()
            self._process.turn_over()
        targets.world.at(_LOOK_US, self._look)

    def _look(self) -> None:
        process = self._machine.process
        if self._over or process is None or process is not self._process:
            return
        if process.node.evacuation.left > 0 or process.frozen:
            self._targets.world.at(_LOOK_US, self._look)
            return
        self._over = True
        self._targets.held_when_empty += held(process.node)
        self._machine.remove_empty()
        self._targets.world.at(1 + self._empty_us, lambda: self._targets.bring_back(self._machine))

    def end(self) -> None:
        """The fault ends: the node stays."""
        process = self._machine.process
        if self._over or process is None or process is not self._process:
            return
        self._over = True
        lasted_us = self._targets.world.now_us - self._begun_us
        if not process.frozen and lasted_us > _IN_TIME_US:
            self._targets.not_emptied.append(
                f"{self._machine.name}: {int(process.node.evacuation.left)} jobs left,"
                f" {process.node.evacuation.obstacle}"
            )
        with process.turn() as node:
            node.membership.set_leaving(False)
        process.turn_over()


def held(node: Node) -> list[str]:
    """The jobs of a node that would be lost with it, or acknowledgements that others need. A client
    whose job still waits for copies has no answer, and no promise."""
    return [
        f"{node.id.decode()[:8]}: {job.id.decode()}"
        for job in node.jobs.table.values()
        if job.state != WAIT_REPL
        and (job.retry_s > 0 or job.state in (ACKED, QUEUED) or job.place == DELAYED)
    ]
