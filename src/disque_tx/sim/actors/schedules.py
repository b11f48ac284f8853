"""The operator of schedules, who sets, changes, pauses and deletes them, and those who take the
jobs that they make. Both go on until no schedule is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import hiredis

from disque_tx.core.tables.definition import DEFINITION, Definition
from disque_tx.messages.bustypes import CAN_TABLES
from disque_tx.sim.actors.actors import Actor
from disque_tx.sim.actors.clients import LOST
from disque_tx.sim.stage.history import WatchedSchedule
from disque_tx.sim.stage.workloads import SCHEDULE_QUEUE

if TYPE_CHECKING:
    from disque_tx.core.node import Node
    from disque_tx.sim.machines.interfaces import Running
    from disque_tx.sim.machines.machine import Machine
    from disque_tx.sim.stage.stage import Stage

_NAMES: Final = (b"one", b"two", b"three")
_REST_US: Final = 2_000_000
_TAKEN: Final = 100
_LOOK_US: Final = 100_000
#: Copies of each job.
REPLICATE: Final = 2


class ScheduleOperator(Actor):
    """Asks nodes that have tables only; the others stand for originals."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.record = self.run.history.schedules
        self.record.used = True
        self.record.ended = False
        self._left: list[bytes] = []
        self._found: dict[bytes, list[Definition]] = {}
        for machine in self.run.machines:
            machine.on_turn.append(self._turn)
        self.run.world.at(_LOOK_US, self._check)

    def _check(self) -> None:
        """Write down what the nodes know."""
        nodes = [node for _, node in self.run.nodes() if node.membership.features & CAN_TABLES]
        tables = [node.timetable.definitions for node in nodes]
        staying = sum(not node.membership.leaving for _, node in self.run.nodes())
        if staying < min(REPLICATE, len(self.run.machines)):
            self.record.short_us.append(self.run.world.now_us)
        for _, node in self.run.nodes():
            table = node.timetable
            for name, definition in table.definitions.items():
                if name not in _NAMES:
                    continue
                watched = self._watched(node, name, definition)
                last_s = int(table.last_s(name))
                if last_s > watched.last_s:
                    watched.last_s = last_s
                    watched.known_us.append((last_s, self.run.world.now_us))
                if not definition.paused and all(
                    name in one and one[name].counter == definition.counter for one in tables
                ):
                    watched.force_us = self.run.world.now_us
        if not self.record.ended:
            self.run.world.at(_LOOK_US, self._check)

    def _turn(self, process: Running) -> None:
        """A turn is over: a definition may be in force for less time than between two looks."""
        definitions = process.node.timetable.definitions
        found = list(definitions.values())
        if found == self._found.get(process.ip):
            return
        self._found[process.ip] = found
        for name, definition in definitions.items():
            if name in _NAMES:
                self._watched(process.node, name, definition)

    def _watched(self, node: Node, name: bytes, definition: Definition) -> WatchedSchedule:
        """The record of a definition. A node that got an old disk back counts on from there, so
        two may have the same number, and differ in their beginning."""
        generation = _generation(node, name)
        key = (name, generation, int(definition.counter), definition.node, int(definition.start_s))
        fresh = WatchedSchedule(name, definition, generation)
        return self.record.watched.setdefault(key, fresh)

    def _wake(self) -> None:
        if self.run.busy:
            self.act()
        elif not self.record.ended:
            self._end()

    def act(self) -> None:
        random = self.random
        name = random.choice(_NAMES)
        word = random.choice((b"SET", b"SET", b"SET", b"PAUSE", b"RESUME", b"DEL", b"LIST"))
        words = [b"SCHEDULE", word, name]
        if word == b"LIST":
            words.pop()
        elif word == b"SET":
            copies = min(REPLICATE, len(self.run.machines))
            words += [b"EVERY", b"%d" % random.randint(1, 3), b"MISSED", b"all"]
            words += [b"QUEUE", SCHEDULE_QUEUE, name, b"RETRY", b"2", b"REPLICATE", b"%d" % copies]
        self._send(self._done, *words)

    def _send(self, then: Any, *words: bytes) -> None:
        self.client.ask(then, *words)

    def _done(self, reply: Any) -> None:
        if reply is not LOST and not isinstance(reply, hiredis.ReplyError):
            self.run.world.counters["schedules.changed"] += 1
        self.rest(_REST_US)

    def _end(self) -> None:
        """Delete all schedules, and look whether any came back."""
        if self._left:
            self._send(self._deleted, b"SCHEDULE", b"DEL", self._left[-1])
            return
        found = {name for _, n in self.run.nodes() for name in n.timetable.names()}
        self._left = sorted(found.intersection(_NAMES))
        self.record.ended = not self._left
        if self._left:
            self.rest(_LOOK_US)

    def _deleted(self, reply: Any) -> None:
        if isinstance(reply, int):
            self._left.pop()
        self.rest(_LOOK_US)


def _generation(node: Node, name: bytes) -> int:
    """That of the register with the definition of a schedule."""
    register = node.timetable.registers.get(name, DEFINITION)
    return int(register.generation) if register is not None else 0


class Taker(Actor):
    """Takes the jobs of schedules from one node, and acknowledges them."""

    def __init__(self, run: Stage, machine: Machine) -> None:
        name = f"occurrences at {machine.name}"
        super().__init__(run, name, run.workload, machine)

    def _wake(self) -> None:
        if not self.run.over:
            self.act()

    def act(self) -> None:
        count = b"%d" % _TAKEN
        self.client.ask(self._got, b"GETJOB", b"NOHANG", b"COUNT", count, b"FROM", SCHEDULE_QUEUE)

    def _got(self, reply: Any) -> None:
        if not isinstance(reply, list) or not reply:
            self.rest(_LOOK_US * 3)
            return
        taken = self.run.history.schedules.taken
        for _, job_id, _ in reply:
            taken[job_id] = taken.get(job_id, 0) + 1
        self.client.ask(lambda _: self.rest(_LOOK_US), b"ACKJOB", *[row[1] for row in reply])


def schedule_actors(run: Stage) -> list[Actor]:
    """Who sets schedules and takes their jobs; nobody, unless the workload has schedules and any
    node can have some."""
    able = [machine for number, machine in enumerate(run.machines) if run.shape.has_own(number)]
    if not run.workload.schedules or not able:
        return []
    operator = ScheduleOperator(run, "schedules", run.workload, able[0])
    return [operator, *(Taker(run, machine) for machine in run.machines)]
