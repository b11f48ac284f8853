"""Nodes that find each other by a name become one cluster, and never one with another cluster."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Final

from disque_tx.core.nodes.discovery import ADDRESSES_MAX, TRIES_MAX
from disque_tx.messages.nodes import FAIL, HANDSHAKE, PFAIL
from disque_tx.sim.stage.checker import WatchingChecker
from disque_tx.sim.stage.naming import INTERVAL_MS

if TYPE_CHECKING:
    from disque_tx.core.node import Node
    from disque_tx.sim.machines.machine import Machine
    from disque_tx.sim.stage.stage import Stage

_LOOK_US: Final = 500_000
#: Three intervals of lookups, by clocks that drift.
_JOINED_US: Final = 3 * INTERVAL_MS * 1_002
#: A fault that only keeps nodes apart disturbs none that are on one side.
_CUTTING: Final = "parted"


class _EachLook(WatchingChecker):
    """Looks in runs in which nodes find each other by a name."""

    period_us = _LOOK_US

    def __init__(self) -> None:
        self._breaches: list[str] = []

    def concerns(self, run: Stage) -> bool:
        return run.workload.named

    def judge(self, run: Stage) -> list[str]:
        """What was wrong, the first few."""
        return self._breaches[:10]


class OneCluster(_EachLook):
    """Two nodes that run and can reach each other are members of one cluster, and linked, within
    three intervals after the start of either, after the end of a partition between them, or of
    anything else that disturbs the network, as long as the name does not lie in that time."""

    def __init__(self) -> None:
        super().__init__()
        self._since: dict[tuple[bytes, bytes], int] = {}
        self._faults = 0
        self._disturbed_us = 0

    def look(self, run: Stage) -> None:
        now_us = run.world.now_us
        calm_us = self._calm_us(run)
        for (here, node), (there, other) in permutations(run.nodes(), 2):
            pair = (here.ip, there.ip)
            if _is_apart(run, here, there):
                self._since[pair] = now_us
            since_us = max(self._since.get(pair, 0), here.started_us, there.started_us, calm_us)
            late_us = now_us - since_us - _JOINED_US
            if late_us > 0 and not _is_member(node, other.id):
                self._breaches.append(
                    f"{here.name} does not reach {there.name} at {now_us / 1e6:.3f} s, although"
                    f" nothing is in the way since {since_us / 1e6:.3f} s"
                )

    def _calm_us(self, run: Stage) -> int:
        """Since when nothing but cuts between nodes disturbs the cluster, and the name does not
        lie; now, if something does."""
        plan, names = run.plan, run.plan.names
        new = {name for _, name, _ in plan.history[self._faults :]} - {_CUTTING}
        self._faults = len(plan.history)
        if new or plan.active() - {_CUTTING} or (names is not None and names.lies):
            self._disturbed_us = run.world.now_us
        return self._disturbed_us


def _is_apart(run: Stage, here: Machine, there: Machine) -> bool:
    for machine in (here, there):
        if machine.process is None or machine.process.frozen:
            return True
    network = run.network
    return network.is_cut(here.ip, there.ip) or network.is_cut(there.ip, here.ip)


def _is_member(node: Node, other_id: bytes) -> bool:
    entry = node.membership.nodes.get(other_id)
    if entry is None or entry.link is None:
        return False
    return not entry.flags & (HANDSHAKE | PFAIL | FAIL)


class OthersRefused(_EachLook):
    """No node of another cluster becomes a member, whatever the name says; and what a name can do
    to a node is bounded: addresses that are kept, and tries at a time."""

    def look(self, run: Stage) -> None:
        ours = {node.id for _, node in run.nodes()}
        theirs = [m.process.node for m in run.strangers if m.process is not None]
        foreign = {node.id for node in theirs}
        for nodes, others in (([node for _, node in run.nodes()], foreign), (theirs, ours)):
            for node in nodes:
                self._compare(run, node, others)

    def _compare(self, run: Stage, node: Node, others: set[bytes]) -> None:
        where = f"{node.id.decode()[:8]} at {run.world.now_us / 1e6:.3f} s"
        table = node.membership.nodes
        if not others.isdisjoint(table):
            self._breaches.append(f"a node of another cluster is a member: {where}")
        if node.cluster.discovery.addresses > ADDRESSES_MAX:
            self._breaches.append(f"more addresses than are allowed: {where}")
        tries = sum(entry.discovered and entry.flags & HANDSHAKE != 0 for entry in table.values())
        if tries > TRIES_MAX:
            self._breaches.append(f"{tries} tries of discovery at a time: {where}")
