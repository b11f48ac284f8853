"""The operator of both shared tables: sets and deletes schedules that make nothing during the run,
and repairs the tables, while they are changed and once they are not changed any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from disque_tx.core.tables.definition import DEFINITION
from disque_tx.messages.bustypes import CAN_TABLES
from disque_tx.messages.tables import POLICIES, SCHEDULES
from disque_tx.sim.actors.clients import LOST, SimClient
from disque_tx.sim.actors.policies import TableActor, tables_differ
from disque_tx.sim.stage.history import TableChange, TableRepair

if TYPE_CHECKING:
    from disque_tx.core.node import Node
    from disque_tx.sim.machines.machine import Machine
    from disque_tx.sim.stage.stage import Stage

#: So many that some stay deleted.
_NAMES: Final = tuple(b"table:%d" % number for number in range(10))
_WORDS: Final = {POLICIES: b"QPOLICY", SCHEDULES: b"SCHEDULE"}
#: A year: longer than any run lasts, by whatever clock.
_EVERY_S: Final = b"31536000"
_DELETES: Final = 0.3
_REPAIRS: Final = 0.15
_AGAIN_US: Final = 1_000_000
#: After so many of these times without any change, no request is still on its way.
_QUIET_LOOKS: Final = 10


class TableOperator(TableActor):
    """Sets and deletes schedules, and repairs one of the tables now and then, if that is in the
    workload."""

    def act(self) -> None:
        random = self.random
        if self.workload.repairs and random.random() < _REPAIRS:
            repair(self.run, self.client, random.choice((POLICIES, SCHEDULES)), self._repaired)
            return
        name, now_us = random.choice(_NAMES), self.run.world.now_us
        if random.random() < _DELETES:
            change = TableChange(name, [DEFINITION], b"", now_us, SCHEDULES)
            self.change(change, b"SCHEDULE", b"DEL", name)
            return
        self._made += 1
        body = b"%d" % self._made
        change = TableChange(name, [DEFINITION], body, now_us, SCHEDULES)
        self.change(change, b"SCHEDULE", b"SET", name, b"EVERY", _EVERY_S, b"QUEUE", b"table", body)

    def _repaired(self, reply: Any) -> None:
        self.client.leave()
        self.rest(_AGAIN_US)


def repair(run: Stage, client: SimClient, table: int, then: Any) -> TableRepair:
    """Send REPAIR, and write it down."""
    repaired = TableRepair(table, run.world.now_us)
    run.history.repairs.append(repaired)

    def done(reply: Any) -> None:
        if reply is not LOST:
            repaired.answered_us = client.sent_us
            run.world.counters["tables.repaired"] += 1
        then(reply)

    client.ask(done, _WORDS[table], b"REPAIR")
    return repaired


class LastRepair:
    """Repairs both tables in the end, once nobody changes them and all nodes have the same, at two
    nodes at the same time. ``over``: all that is done, and the nodes have the same tables again."""

    def __init__(self, run: Stage, able: list[Machine]) -> None:
        self._run = run
        self._clients = [
            SimClient(run, f"repairs at {machine.name}", machine, run.password)
            for machine in able[:2]
        ]
        self._waiting = -1
        self._quiet = 0
        run.world.at(_AGAIN_US, self._look)

    @property
    def over(self) -> bool:
        """See above."""
        return self._waiting == 0

    def _look(self) -> None:
        run = self._run
        quiet = not run.busy and run.history.schedules.ended and not tables_differ(run)
        self._quiet = self._quiet + 1 if quiet else 0
        if self._quiet < _QUIET_LOOKS:
            run.world.at(_AGAIN_US, self._look)
            return
        self._waiting = len(self._clients)
        for client in self._clients:
            self._policies(client)

    def _policies(self, client: SimClient) -> None:
        repaired = repair(self._run, client, POLICIES, lambda _: self._schedules(client))
        repaired.values = values(self._run, POLICIES)

    def _schedules(self, client: SimClient) -> None:
        repaired = repair(self._run, client, SCHEDULES, self._done)
        repaired.values = values(self._run, SCHEDULES)

    def _done(self, reply: Any) -> None:
        self._waiting -= 1


def values(run: Stage, table: int) -> dict[tuple[bytes, ...], tuple[bytes, ...]]:
    """What the nodes that have tables have in one of them, once all have the same."""
    able = (node for _, node in run.nodes() if node.membership.features & CAN_TABLES)
    return values_of(next(able), table)


def values_of(node: Node, table: int) -> dict[tuple[bytes, ...], tuple[bytes, ...]]:
    """What is in force on a node, but for what a repair may change: up to when schedules are
    done."""
    if table == POLICIES:
        return {
            (one.pattern, one.name): (one.value,)
            for one in node.policy_table.registers.all()
            if not one.deleted_s
        }
    return {
        (name,): (*definition.content(), b"%d" % definition.paused)
        for name, definition in node.timetable.definitions.items()
    }
