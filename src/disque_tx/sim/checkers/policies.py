"""The table of policies: the same on all nodes, and nothing of it is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from disque_tx.sim.checkers.checker import Checker
from disque_tx.sim.policies import tables

if TYPE_CHECKING:
    from disque_tx.sim.stage import Stage


class SamePolicies(Checker):
    """When all is healed, all nodes that have tables have the same one; so have their digests, and
    what is in force."""

    def judge(self, run: Stage) -> list[str]:
        """Nodes whose table is another one."""
        breaches: list[str] = []
        found = tables(run)
        first = next(iter(found.values()), [])
        for ip, table in found.items():
            if table != first:
                breaches.append(f"{ip.decode()} has other policies: {table}, not {first}")
        for machine, node in run.nodes():
            registers = node.policy_table.registers
            there = {
                (one.pattern, one.name): one.value for one in registers.all() if not one.deleted_s
            }
            policies = node.policies
            in_force = {
                (pattern, name): value
                for pattern in policies.patterns()
                for name, value in policies.values(pattern).items()
            }
            if there != in_force:
                breaches.append(f"{machine.ip.decode()}: {in_force} are in force, not {there}")
        return breaches


class PoliciesKept(Checker):
    """A change that was answered is there, or a later one, as long as the disk of the node is the
    same; so nothing that was deleted comes back."""

    def judge(self, run: Stage) -> list[str]:
        """Changes that are lost."""
        machines = {machine.ip: machine for machine in run.machines}
        deleted = {
            (change.pattern, name)
            for change in run.history.policies
            if not change.value
            for name in change.names
        }
        breaches: list[str] = []
        for change in run.history.policies:
            if not change.answered:
                continue
            machine = machines[change.node]
            if machine.process is None or machine.disk.replaced != change.disk:
                continue
            table = machine.process.node.policy_table.registers
            for name, counter in change.counters.items():
                key = (change.pattern, name)
                register = table.get(*key)
                lost = key not in deleted if register is None else register.counter < counter
                if lost:
                    what = f"{name!r} of {change.pattern!r} as change {counter} left it"
                    breaches.append(f"{change.node.decode()} has lost {what}")
        return breaches
