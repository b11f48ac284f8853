"""When all is healed, every node sees the same cluster: everybody, linked, nobody failing, and as
leaving who is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.nodetable import LEAVING, MYSELF, flags_text
from disque_tx.sim.checker import Checker

if TYPE_CHECKING:
    from disque_tx.sim.run import Run

#: When nodes that met a moment ago, and have no trouble, know each other.
_GOSSIP_US: Final = 7_900_000


class SameViews(Checker):
    """Node tables, when the first node has met all others, and after the end."""

    def __init__(self) -> None:
        self._breaches: list[str] = []

    def watch(self, run: Run) -> None:
        """Gossip must have told everybody of everybody before the first fault."""
        run.world.at(_GOSSIP_US, lambda: self._breaches.extend(self._compare(run)))

    def judge(self, run: Run) -> list[str]:
        """Nodes that see another cluster than there is."""
        return self._breaches + self._compare(run)

    def _compare(self, run: Run) -> list[str]:
        nodes = {m.ip: m.process.node for m in run.machines if m.process is not None}
        if len(nodes) < len(run.machines):
            return ["not every node runs"]
        members = {node.id: ip for ip, node in nodes.items()}
        leaving = {node.id for node in nodes.values() if node.membership.leaving}
        breaches: list[str] = []
        for ip, node in nodes.items():
            table = node.membership.nodes
            if set(table) != set(members):
                breaches.append(f"{ip.decode()} knows {len(table)} nodes of {len(members)}")
            for entry in table.values():
                fine = entry.connected and entry.flags == (LEAVING if entry.id in leaving else 0)
                if entry.id in members and not entry.flags & MYSELF and not fine:
                    breaches.append(
                        f"{ip.decode()} sees {members[entry.id].decode()} as"
                        f" {flags_text(entry.flags).decode()}, link {entry.connected}"
                    )
        return breaches
