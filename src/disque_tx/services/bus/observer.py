"""Tells the operator what changes in the cluster: who joins, fails, comes back, leaves, is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from disque_tx.nodetable import FAIL, HANDSHAKE, LEAVING, NOADDR, PFAIL, NodeEntry
from disque_tx.services.net.listening import shown_address

if TYPE_CHECKING:
    from disque_tx.core.node import Node
    from disque_tx.services.host.log import DaemonLog

#: What is told when a flag is set, and when it is taken back.
_TOLD: Final = (
    (PFAIL, "does not answer", "answers again"),
    (FAIL, "failed: a majority of the nodes does not reach it", "is back"),
    (NOADDR, "is not where it was: another node answers at its address", "has an address again"),
    (LEAVING, "is leaving the cluster", "stays in the cluster"),
)
_NOTED: Final = PFAIL | FAIL | NOADDR | LEAVING

_TWIN_PERIOD_MS: Final = 60_000
_SETTLE: Final = (
    "A nodes file was copied: stop the copy, remove its nodes file and its log, and start it again"
    " (docs/how-to/run-a-cluster.md)."
)


class Observer:
    """Compares the node table with what it was when it last looked."""

    def __init__(self, node: Node, log: DaemonLog) -> None:
        self._node = node
        self._membership = node.membership
        self._log = log
        self._greeted: list[NodeEntry] = []
        self._quiet_until_ms: dict[bytes, int] = {}
        #: By node ID: flags and address.
        self._known: dict[bytes, tuple[int, str]] = self._now()

    def _now(self) -> dict[bytes, tuple[int, str]]:
        return {
            entry.id: (entry.flags & _NOTED, _address(entry))
            for entry in self._membership.nodes.values()
            if not entry.flags & HANDSHAKE
        }

    def look(self) -> None:
        """Write down what is different now."""
        self._look_for_answers()
        self._look_for_twins()
        known = self._now()
        if known == self._known:
            return
        before, self._known = self._known, known
        for node_id in before.keys() - known.keys():
            self._log.notice(f"Node {node_id.decode()} is no member of the cluster any more")
        for node_id, (now, address) in known.items():
            flags, earlier = before.get(node_id, (0, ""))
            entry = self._membership.nodes[node_id]
            if node_id not in before:
                self._say(entry, address, "is a member of the cluster")
            elif address and earlier and address != earlier:
                self._say(entry, address, f"has a new address, it was {earlier}")
            changed = now ^ flags
            for flag, set_text, cleared_text in _TOLD:
                # One that failed is not also said to answer again.
                if changed & flag and not (flag == PFAIL and now & FAIL):
                    text = set_text if now & flag else cleared_text
                    self._say(entry, address or earlier, text)

    def _look_for_twins(self) -> None:
        """Tell of nodes whose ID another process has, again and again while it lasts."""
        standing = self._membership.standing
        for entry in self._membership.nodes.values():
            if entry.doubled:
                self._complain(
                    entry.id,
                    f"Node {entry.id.decode()} at {entry.ip.decode()}:{entry.port} has a twin:"
                    f" another process speaks under its ID from {entry.twin_ip.decode()}, and is"
                    f" not heeded. {_SETTLE}",
                )
        if standing.aside:
            self._complain(
                self._node.id,
                "This node stands aside, and refuses ADDJOB and GETJOB: a process that was started"
                f" earlier has its ID, {self._node.id.decode()}. {_SETTLE}",
            )
        elif standing.doubled:
            self._complain(
                self._node.id,
                f"Another process also has the ID of this node, {self._node.id.decode()}"
                f"{_from(standing.twin_ip)}. {_SETTLE}",
            )

    def _complain(self, node_id: bytes, text: str) -> None:
        """At most once a minute about one ID."""
        now_ms = int(self._node.now_ms)
        if now_ms >= self._quiet_until_ms.get(node_id, now_ms):
            self._quiet_until_ms[node_id] = now_ms + _TWIN_PERIOD_MS
            self._log.warning(text)

    def _look_for_answers(self) -> None:
        """Tell of those who were met and did not answer in time."""
        if not self._greeted and not self._membership.handshakes:
            return
        nodes = self._membership.nodes
        oldest_ms = self._node.now_ms - self._node.cluster.node_timeout_ms
        for entry in self._greeted:
            # One that turned out to be a known node disappears, too, but at once.
            given_up = entry.flags & HANDSHAKE and entry.id not in nodes
            if given_up and entry.created_ms < oldest_ms:
                self._log.notice(
                    f"No node answered at {entry.ip.decode()}:{entry.port}. Check the address, that"
                    " its cluster bus can be reached from here, and whether one side uses TLS."
                )
        self._greeted = [entry for entry in nodes.values() if entry.flags & HANDSHAKE]

    def _say(self, entry: NodeEntry, address: str, text: str) -> None:
        self._log.notice(f"Node {entry.id.decode()} ({address or 'unknown address'}) {text}")


def _address(entry: NodeEntry) -> str:
    """Where clients find the node; empty when nobody knows."""
    return shown_address(entry.ip.decode(), int(entry.port)) if entry.ip else ""


def _from(ip: bytes) -> str:
    return f" and speaks from {ip.decode()}" if ip else ""
