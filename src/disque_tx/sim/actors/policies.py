"""The operator of policies: sets and deletes them on nodes at random, for queues that no other
client uses, so that they change nothing but the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from disque_tx.messages.bustypes import CAN_TABLES
from disque_tx.messages.tables import POLICIES
from disque_tx.sim.actors.actors import Actor
from disque_tx.sim.actors.clients import LOST
from disque_tx.sim.stage.history import TableChange, Version

if TYPE_CHECKING:
    from disque_tx.core.node import Node
    from disque_tx.core.tables.table import SharedTable
    from disque_tx.sim.machines.machine import Machine
    from disque_tx.sim.stage.stage import Stage

_PATTERNS: Final = (b"policies:*", b"policies:a", b"policies:[ab]?")
_SETTINGS: Final = (b"ttl", b"max-deliveries", b"dead-ttl")
_REST_US: Final = 1_000_000
_DELETES: Final = 0.25


class TableActor(Actor):
    """Changes tables, and writes down each change."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._made = 0

    def change(self, change: TableChange, *words: bytes) -> None:
        """Send the request that makes a change."""
        self.run.history.table_changes.append(change)
        self.client.ask(lambda reply: self._answered(change, reply), *words)

    def _answered(self, change: TableChange, reply: Any) -> None:
        if reply is not LOST:
            change.answered_us = self.client.sent_us
        if reply == b"OK" or (isinstance(reply, int) and reply > 0):
            machine = next(m for m in self.run.machines if m.ip == self.client.node)
            change.answered = True
            change.versions = _versions(machine, change)
            change.disk = machine.disk.replaced
            change.node = machine.ip
            self.run.world.counters["policies.changed"] += 1
        if self.random.random() < 0.5:
            self.client.leave()
        self.rest(_REST_US)


class PolicyOperator(TableActor):
    """Every value that it sets is another one, so that its change can be recognised."""

    def act(self) -> None:
        random = self.random
        pattern = random.choice(_PATTERNS)
        names = random.sample(_SETTINGS, random.randint(1, len(_SETTINGS)))
        now_us = self.run.world.now_us
        if random.random() < _DELETES:
            words = [b"DEL", pattern, *names]
            change = TableChange(pattern, names, b"", now_us)
        else:
            self._made += 1
            value = b"%d" % self._made
            words = [b"SET", pattern, *(word for name in names for word in (name, value))]
            change = TableChange(pattern, names, value, now_us)
        self.change(change, b"QPOLICY", *words)


def table_of(node: Node, number: int) -> SharedTable:
    """The table with this number."""
    return node.policy_table if number == POLICIES else node.timetable


def _versions(machine: Machine, change: TableChange) -> dict[bytes, Version]:
    """By setting, the version of the change, unless something later is there already."""
    if machine.process is None:
        return {}
    registers = table_of(machine.process.node, change.table).registers
    found = {name: registers.get(change.pattern, name) for name in change.names}
    return {
        name: (int(register.generation), int(register.counter))
        for name, register in found.items()
        if register is not None and change.is_in(register)
    }


def tables(run: Stage) -> dict[bytes, list[tuple[object, ...]]]:
    """By node that has tables, everything in them."""
    return {
        machine.ip: [
            one.fields()
            for table in (node.policy_table, node.timetable)
            for one in table.registers.all()
        ]
        for machine, node in run.nodes()
        if node.membership.features & CAN_TABLES
    }


def tables_differ(run: Stage) -> bool:
    """Whether nodes that should have the same table do not have it yet."""
    found = list(tables(run).values())
    return any(table != found[0] for table in found)
