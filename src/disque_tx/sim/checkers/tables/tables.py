"""The tables that all nodes share: the same on all nodes, and nothing of them is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.messages.bustypes import CAN_TABLES
from disque_tx.messages.tables import POLICIES
from disque_tx.sim.actors.policies import table_of, tables
from disque_tx.sim.actors.tables import values_of
from disque_tx.sim.stage.checker import Checker

if TYPE_CHECKING:
    from disque_tx.sim.stage.history import TableChange
    from disque_tx.sim.stage.stage import Stage


class SameTables(Checker):
    """When all is healed, all nodes that have tables have the same ones; so have their digests, and
    what is in force."""

    def judge(self, run: Stage) -> list[str]:
        """Nodes whose tables are others."""
        breaches: list[str] = []
        found = tables(run)
        first = next(iter(found.values()), [])
        for ip, table in found.items():
            if table != first:
                breaches.append(f"{ip.decode()} has other tables: {table}, not {first}")
        for machine, node in run.nodes():
            there = {key: value for key, (value,) in values_of(node, POLICIES).items()}
            policies = node.policies
            in_force = {
                (pattern, name): value
                for pattern in policies.patterns()
                for name, value in policies.values(pattern).items()
            }
            if there != in_force:
                breaches.append(f"{machine.ip.decode()}: {in_force} are in force, not {there}")
        return breaches


class ChangesKept(Checker):
    """A change that was answered is there, or a later one, as long as the disk of the node is the
    same; so nothing that was deleted comes back, not even when deletions are forgotten."""

    def judge(self, run: Stage) -> list[str]:
        """Changes that are lost."""
        machines = {machine.ip: machine for machine in run.machines}
        deleted = {
            (change.table, change.pattern, name)
            for change in run.history.table_changes
            if not change.value
            for name in change.names
        }
        breaches: list[str] = []
        for change in run.history.table_changes:
            if not change.answered:
                continue
            machine = machines[change.node]
            if machine.process is None or machine.disk.replaced != change.disk:
                continue
            registers = table_of(machine.process.node, change.table).registers
            for name, version in change.versions.items():
                register = registers.get(change.pattern, name)
                if register is None:
                    lost = (change.table, change.pattern, name) not in deleted
                else:
                    lost = (register.generation, register.counter) < version
                if lost:
                    what = f"{name!r} of {change.pattern!r} as change {version} left it"
                    breaches.append(f"{change.node.decode()} has lost {what}")
        return breaches


#: A change and a repair that are asked for so closely may be executed in any order, at two nodes
#: that do not know of each other's yet.
_TOGETHER_US: Final = 1_000_000


class LastChangeCounts(Checker):
    """Without faults, what was set last is in force in the end, also when the tables were repaired
    meanwhile, unless that was at the same time; and a repair of tables that nobody changes any more
    changes nothing that they hold, under any fault before."""

    def judge(self, run: Stage) -> list[str]:
        """What is not as it was set."""
        breaches = [
            f"a repair at {repair.asked_us / 1e6:.3f} s left {values_of(node, repair.table)} on"
            f" {machine.ip.decode()} of {repair.values}"
            for repair in run.history.repairs
            if repair.values is not None
            for machine, node in run.nodes()
            if node.membership.features & CAN_TABLES
            and values_of(node, repair.table) != repair.values
        ]
        if run.plan.history or run.lost:
            return breaches
        last: dict[tuple[int, bytes, bytes], TableChange] = {}
        for change in run.history.table_changes:
            last.update({(change.table, change.pattern, name): change for name in change.names})
        for (table, pattern, name), change in last.items():
            if not change.answered or _disturbed(run, change):
                continue
            for machine, node in run.nodes():
                if machine.ip == change.node:
                    register = table_of(node, table).registers.get(pattern, name)
                    if register is not None and not change.is_in(register):
                        what = f"{name!r} of {pattern!r}: {register.value!r}"
                        breaches.append(f"{what} is in force, {change.value!r} was set last")
        return breaches


def _disturbed(run: Stage, change: TableChange) -> bool:
    """Whether a repair was asked for at about the same time."""
    since_us, until_us = change.asked_us - _TOGETHER_US, change.answered_us + _TOGETHER_US
    return any(
        repair.table == change.table and since_us <= repair.asked_us <= until_us
        for repair in run.history.repairs
    )
