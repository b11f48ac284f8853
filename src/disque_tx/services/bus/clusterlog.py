"""Log lines about other nodes, which join, fail, come back and leave; and about strangers, which
must not be able to fill the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.messages.nodes import FAIL, HANDSHAKE, LEAVING, NOADDR, PFAIL, NodeEntry
from disque_tx.services.net.listening import shown_address

if TYPE_CHECKING:
    from disque_tx.core.node import Node
    from disque_tx.services.machine.log import DaemonLog

#: What is logged when a flag is set, and when it is cleared.
_TEXTS: Final = (
    (PFAIL, "does not answer", "answers again"),
    (FAIL, "failed: a majority of the nodes does not reach it", "is back"),
    (NOADDR, "is not where it was: another node answers at its address", "has an address again"),
    (LEAVING, "is leaving the cluster", "stays in the cluster"),
)
_NOTED: Final = PFAIL | FAIL | NOADDR | LEAVING

#: How often the same is logged about a node ID, and about a stranger's address.
_TWIN_PERIOD_MS: Final = 60_000
PERIOD_MS: Final = 10_000
_ADDRESSES_MAX: Final = 1_000
_SETTLE: Final = (
    "A nodes file was copied: stop the copy, remove its nodes file and its log, and start it again"
    " (docs/how-to/run-a-cluster.md)."
)


class ClusterLog:
    """Logs what changes in the cluster: it compares the node table with its state at the last
    update."""

    def __init__(self, node: Node, log: DaemonLog) -> None:
        self._node = node
        self._membership = node.membership
        self._log = log
        self._handshakes: list[NodeEntry] = []
        self._quiet_until_ms: dict[bytes, int] = {}
        self._strangers = StrangerLog(log, "Cluster bus", _TWIN_PERIOD_MS)
        # IDs of nodes whose clocks differed at the last update.
        self._apart: set[bytes] = set()
        #: By node ID: flags and address.
        self._known: dict[bytes, tuple[int, str]] = self._now()

    def _now(self) -> dict[bytes, tuple[int, str]]:
        return {
            entry.id: (entry.flags & _NOTED, _address(entry))
            for entry in self._membership.nodes.values()
            if not entry.flags & HANDSHAKE
        }

    def update(self) -> None:
        """Log what is different now."""
        self._report_answers()
        self._report_other_clusters()
        self._report_duplicate_ids()
        self._report_clocks()
        known = self._now()
        if known == self._known:
            return
        before, self._known = self._known, known
        for node_id in before.keys() - known.keys():
            self._log.notice(f"Node {node_id.decode()} is no longer a member of the cluster")
        for node_id, (now, address) in known.items():
            flags, earlier = before.get(node_id, (0, ""))
            entry = self._membership.nodes[node_id]
            if node_id not in before:
                self._log_node(entry, address, "is a member of the cluster")
            elif address and earlier and address != earlier:
                self._log_node(entry, address, f"has a new address, it was {earlier}")
            changed = now ^ flags
            for flag, set_text, cleared_text in _TEXTS:
                # For a node that failed, it is not also logged that it answers again.
                if changed & flag and not (flag == PFAIL and now & FAIL):
                    text = set_text if now & flag else cleared_text
                    self._log_node(entry, address or earlier, text)

    def _report_clocks(self) -> None:
        """Log it when the clock of a node begins or ends to differ from those of most others."""
        clocks = self._node.state.clocks
        clocks.update(self._node.now_ms)
        apart = set(clocks.apart)
        if clocks.ahead_ms:
            apart.add(self._node.id)
        if apart == self._apart:
            return
        for node_id in apart - self._apart:
            if node_id == self._node.id:
                ahead_ms = int(clocks.ahead_ms)
                way = "ahead of" if ahead_ms > 0 else "behind"
                self._log.warning(
                    f"The clock of this node is {abs(ahead_ms) // 1000} s {way} those of most other"
                    " nodes. It makes no occurrences of recurring jobs until it is set right: check"
                    " its time service (NTP)."
                )
            else:
                self._log.warning(
                    f"The clock of node {node_id.decode()} differs by seconds from those of most"
                    " other nodes: check its time service (NTP)."
                )
        for node_id in self._apart - apart:
            whose = "this node" if node_id == self._node.id else f"node {node_id.decode()}"
            self._log.notice(f"The clock of {whose} agrees with those of most other nodes again")
        self._apart = apart

    def _report_duplicate_ids(self) -> None:
        """Log nodes whose ID another process has, again and again while it lasts."""
        identity = self._membership.identity
        for entry in self._membership.nodes.values():
            if entry.contested:
                self._warn(
                    entry.id,
                    f"Node {entry.id.decode()} at {entry.ip.decode()}:{entry.port} has a duplicate:"
                    f" another process at {entry.duplicate_ip.decode()} uses its ID, and its"
                    f" messages are ignored. {_SETTLE}",
                )
        if identity.suspended:
            self._warn(
                self._node.id,
                "This node stands aside, and refuses ADDJOB and GETJOB: a process that was started"
                f" earlier has its ID, {self._node.id.decode()}. {_SETTLE}",
            )
        elif identity.contested:
            self._warn(
                self._node.id,
                f"Another process{_at(identity.duplicate_ip)} also has the ID of this node,"
                f" {self._node.id.decode()}. {_SETTLE}",
            )

    def _warn(self, node_id: bytes, text: str) -> None:
        """At most once a minute about one ID."""
        now_ms = int(self._node.now_ms)
        if now_ms >= self._quiet_until_ms.get(node_id, now_ms):
            self._quiet_until_ms[node_id] = now_ms + _TWIN_PERIOD_MS
            self._log.warning(text)

    def _report_answers(self) -> None:
        """Log nodes that were to be met and did not answer in time."""
        if not self._handshakes and not self._membership.handshakes:
            return
        nodes = self._membership.nodes
        oldest_ms = self._node.now_ms - self._node.cluster.node_timeout_ms
        for entry in self._handshakes:
            # One that turned out to be a known node disappears, too, but at once.
            given_up = entry.flags & HANDSHAKE and entry.id not in nodes
            if given_up and entry.created_ms < oldest_ms:
                self._log.notice(
                    f"No node answered at {entry.ip.decode()}:{entry.port}. Check the address, that"
                    " its cluster bus can be reached from here, and whether one side uses TLS."
                )
        self._handshakes = [
            entry
            for entry in nodes.values()
            if entry.flags & HANDSHAKE and not entry.discovered  # those are tried again and again
        ]

    def _report_other_clusters(self) -> None:
        """Log who was refused because it belongs to another cluster."""
        seen = self._membership.cluster_name.seen
        for node_id, ip in seen.items():
            self._strangers.warn(
                f"node {node_id.decode('latin-1')} at {ip.decode('latin-1')}",
                "refused, because it has another cluster-name, or another password where both nodes"
                " use cluster-discovery. It belongs to another cluster, unless one of the two is"
                " not configured like its others.",
                int(self._node.now_ms),
            )
        seen.clear()

    def _log_node(self, entry: NodeEntry, address: str, text: str) -> None:
        self._log.notice(f"Node {entry.id.decode()} ({address or 'unknown address'}) {text}")


def _address(entry: NodeEntry) -> str:
    """Where clients find the node; empty when that is unknown."""
    return shown_address(entry.ip.decode(), int(entry.port)) if entry.ip else ""


def _at(ip: bytes) -> str:
    return f", at {ip.decode()}," if ip else ""


class StrangerLog:
    """Log lines about strangers: at most one about each in ``period_ms``."""

    def __init__(self, log: DaemonLog, about: str, period_ms: int = PERIOD_MS) -> None:
        self._log = log
        self._about = about
        self._period_ms = period_ms
        self._quiet_until_ms: dict[str, int] = {}

    def warn(self, who: str, text: str, now_ms: int) -> None:
        """Write a line, unless there was one about this address or node a moment ago."""
        quiet = self._quiet_until_ms
        if now_ms < quiet.get(who, now_ms):
            return
        if len(quiet) >= _ADDRESSES_MAX:
            quiet.clear()
        quiet[who] = now_ms + self._period_ms
        self._log.warning(f"{self._about}, {who}: {text}")
