"""Makes one cluster of all machines again, as an operator would."""

from __future__ import annotations

from functools import partial

from disque_tx.core.node import Node
from disque_tx.messages.nodes import HANDSHAKE
from disque_tx.sim.machines.machine import Machine
from disque_tx.sim.machines.process import Process


class MembershipRepair:
    """A node that came back under another ID is introduced again, and all others forget its old
    ID. Nodes that find each other by a name need no operator, and get none."""

    def __init__(self, machines: list[Machine]) -> None:
        self._machines = machines

    def run(self) -> None:
        """Let all running nodes forget old IDs and meet the nodes they do not know."""
        machines = [machine for machine in self._machines if not machine.settings.discovery_ms]
        running = [machine for machine in machines if machine.process is not None]
        stale = [old for machine in running for old in machine.identities[:-1]]
        for machine in running:
            process = machine.process
            if process is not None:
                others = [other for other in running if other is not machine]
                process.feed(partial(_forget, process, stale))
                process.feed(partial(_introduce, process, others))


def _forget(process: Process, stale: list[bytes]) -> None:
    node = process.node
    for old in stale:
        if old in node.membership.nodes and old != node.id:
            process.world.trace("forget", process.ip.decode(), old.decode())
            node.cluster.forget(old)


def _introduce(process: Process, others: list[Machine]) -> None:
    node = process.node
    for other in others:
        if not knows(node, other.identities[-1]):
            process.world.trace("meet", process.ip.decode(), other.name)
            node.cluster.meet_resolved(other.host, other.port)


def knows(node: Node, other_id: bytes) -> bool:
    """Whether the node has the other one in its table, and a way to reach it."""
    entry = node.membership.nodes.get(other_id)
    return entry is not None and not entry.flags & HANDSHAKE and bool(entry.ip)
