"""All nodes see one cluster, send no more than a budget, and serve nobody without the password."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.nodetable import LEAVING, MYSELF, flags_text
from disque_tx.sim.run import Checker

if TYPE_CHECKING:
    from disque_tx.sim.run import Run

#: When nodes that met a moment ago, and have no trouble, know each other.
_GOSSIP_US: Final = 7_900_000


class SameViews(Checker):
    """When all is healed, every node sees the same cluster: all members, linked, none failing, and
    those marked as leaving that are."""

    def __init__(self) -> None:
        self._breaches: list[str] = []

    def watch(self, run: Run) -> None:
        """Every node must know every other by gossip before the first fault."""
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


#: Bytes per node pair and second for being a cluster: pings with gossip, and their answers.
IDLE_BYTES_PER_S: Final = 6_000
#: Bytes per ADDJOB and other node.
JOB_BYTES: Final = 40_000
#: Bytes per GETJOB, ACKJOB and other request, and other node.
REQUEST_BYTES: Final = 3_000


class WithinBudget(Checker):
    """What the nodes send to each other stays within a budget, per job and when nothing happens.

    The budget is generous: it is there to find storms, not to save bytes. Whoever waits for copies
    on a stalled network sends a job again at growing intervals, an acknowledgement is repeated for
    as long as a holder is away; everything else is a handful of messages per job and node.
    """

    def judge(self, run: Run) -> list[str]:
        """A run that sent too much."""
        others = len(run.machines) - 1
        pairs = len(run.machines) * others
        seconds = run.world.now_us / 1e6
        budget = pairs * seconds * IDLE_BYTES_PER_S
        budget += len(run.history.added) * others * JOB_BYTES
        budget += run.requests * others * REQUEST_BYTES
        sent = run.world.counters["bus.bytes"]
        if sent > budget:
            return [f"{sent} bytes on the bus, where the budget of such a run is {int(budget)}"]
        return []


class PasswordRequired(Checker):
    """Without the password a client gets nothing but errors, at any node and under any fault."""

    def judge(self, run: Run) -> list[str]:
        """Answers that were no errors."""
        return [f"answered without a password: {what}" for what in run.history.admitted]
