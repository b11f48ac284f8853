"""The operator of policies: sets and deletes them on nodes at random, for queues that no other
client uses, so that they change nothing but the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from disque_tx.messages.bustypes import CAN_TABLES
from disque_tx.sim.actors.actors import Actor
from disque_tx.sim.stage.history import PolicyChange

if TYPE_CHECKING:
    from disque_tx.sim.machines.machine import Machine
    from disque_tx.sim.stage.stage import Stage

_PATTERNS: Final = (b"policies:*", b"policies:a", b"policies:[ab]?")
_SETTINGS: Final = (b"ttl", b"max-deliveries", b"dead-ttl")
_REST_US: Final = 1_000_000
_DELETES: Final = 0.25


class PolicyOperator(Actor):
    """Every value that it sets is another one, so that its change can be recognised."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._made = 0

    def act(self) -> None:
        random = self.random
        pattern = random.choice(_PATTERNS)
        names = random.sample(_SETTINGS, random.randint(1, len(_SETTINGS)))
        if random.random() < _DELETES:
            words = [b"DEL", pattern, *names]
            change = PolicyChange(pattern, names, b"")
        else:
            self._made += 1
            value = b"%d" % self._made
            words = [b"SET", pattern, *(word for name in names for word in (name, value))]
            change = PolicyChange(pattern, names, value)
        self.run.history.policies.append(change)
        self.client.ask(lambda reply: self._answered(change, reply), b"QPOLICY", *words)

    def _answered(self, change: PolicyChange, reply: Any) -> None:
        if reply == b"OK" or (isinstance(reply, int) and reply > 0):
            machine = next(m for m in self.run.machines if m.ip == self.client.node)
            change.answered = True
            change.counters = _counters(machine, change)
            change.disk = machine.disk.replaced
            change.node = machine.ip
            self.run.world.counters["policies.changed"] += 1
        if self.random.random() < 0.5:
            self.client.leave()
        self.rest(_REST_US)


def _counters(machine: Machine, change: PolicyChange) -> dict[bytes, int]:
    """By setting, the counter of the change, unless something later is there already."""
    if machine.process is None:
        return {}
    table = machine.process.node.policy_table.registers
    found = {name: table.get(change.pattern, name) for name in change.names}
    return {
        name: int(register.counter)
        for name, register in found.items()
        if register is not None
        and register.value == change.value
        and (register.deleted_s == 0) == bool(change.value)
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
