"""Who belongs to the cluster: the table of nodes, the handshakes under way, and the forgotten ones.

Cluster protocol, sections 8.2, 8.3, 8.8 to 8.10. The table changes in these ways:

1. MEET: an entry with a random ID stands for the peer until it says its real one; the bus writes
   to it first. It is dropped when the peer stays silent for too long.
2. FORGET: the entry goes, and for a minute nobody's gossip can bring it back.
3. RESET: all others go; a hard one also gives this node a new ID.
4. LEAVING: this node stays a member, but takes no new jobs.

What others say about nodes is not decided here.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from typing import Final

from mypy_extensions import i64

from disque_tx.errors import LocalError
from disque_tx.nodetable import FAIL, HANDSHAKE, LEAVING, MEET, MYSELF, NOADDR, PFAIL, NodeEntry

#: The bus listens 10000 above the port for clients, and both must fit in 16 bits.
PORT_MAX: Final = 55535
BLACKLIST_MS: Final = 60_000
HANDSHAKE_MS_MIN: Final = 1_000
_UNREACHABLE: Final = MYSELF | HANDSHAKE | LEAVING | PFAIL | FAIL | NOADDR


def normal_ip(text: bytes) -> bytes:
    """The one way to write a literal IPv4 or IPv6 address; empty when ``text`` is none."""
    try:
        address = ip_address(text.decode("ascii"))
    except ValueError:
        return b""
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return b""
        if address.ipv4_mapped is not None:
            return b"::ffff:" + str(address.ipv4_mapped).encode()
    return str(address).encode()


def priority(entry: NodeEntry) -> int:
    """How well a client is advised to use the node, smaller is better (section 8.10)."""
    if entry.flags & (FAIL | LEAVING):
        return 100
    if entry.flags & PFAIL:
        return 10
    if entry.connected or entry.flags & MYSELF:
        return 1
    return 5


class Membership:
    """The node table; this node is always in it.

    ``nodes``: by ID. ``size``: entries without handshakes, failed and leaving ones included.
    ``only_me``: this node's ID, as the list of holders of a job that no other node has.
    ``changed``: the nodes file is out of date; ``must_sync``: it must reach the disk before anybody
    hears of the change; whoever saves calls :meth:`saved`. ``messages_sent``,
    ``messages_received``: counted by the bus.

    ``new_node_id`` makes random IDs of 40 lower-case hexadecimal digits.
    """

    __slots__ = (
        "nodes",
        "myself",
        "size",
        "reachable",
        "only_me",
        "changed",
        "must_sync",
        "messages_sent",
        "messages_received",
        "_new_node_id",
        "_blacklist",
    )

    def __init__(self, myself: NodeEntry, new_node_id: Callable[[], bytes]) -> None:
        myself.flags |= MYSELF
        self.nodes: dict[bytes, NodeEntry] = {myself.id: myself}
        self.myself: NodeEntry = myself
        self.size: i64 = 1
        self.reachable: list[NodeEntry] = []
        self.only_me: tuple[bytes, ...] = (myself.id,)
        self.changed: bool = False
        self.must_sync: bool = False
        self.messages_sent: i64 = 0
        self.messages_received: i64 = 0
        self._new_node_id: Callable[[], bytes] = new_node_id
        self._blacklist: dict[bytes, int] = {}

    @property
    def leaving(self) -> bool:
        """This node is about to leave the cluster."""
        return self.myself.flags & LEAVING != 0

    def refresh(self) -> None:
        """Count again, after entries or flags changed."""
        self.size = len([e for e in self.nodes.values() if not e.flags & HANDSHAKE])
        self.reachable = [e for e in self.nodes.values() if not e.flags & _UNREACHABLE]

    def add(self, entry: NodeEntry) -> None:
        """Take in a node, as it was read from the nodes file or heard of."""
        if entry.id in self.nodes or entry.flags & MYSELF:
            raise LocalError(f"node {entry.id.decode('latin-1')} cannot be added to the table")
        self.nodes[entry.id] = entry
        self.refresh()

    def meet(self, ip: bytes, port: int, now_ms: i64) -> bool:
        """Start a handshake with whoever answers there, unless one is under way (section 8.3).

        ``False``: this is not a literal address with a port in 1..55535.
        """
        address = normal_ip(ip)
        if not address or not 1 <= port <= PORT_MAX:
            return False
        for entry in self.nodes.values():
            if entry.flags & HANDSHAKE and entry.ip == address and entry.port == port:
                return True
        self.add(NodeEntry(self._new_node_id(), address, port, HANDSHAKE | MEET, now_ms))
        self.changed = True
        return True

    def expire_handshakes(self, now_ms: i64, node_timeout_ms: i64) -> list[NodeEntry]:
        """Drop the handshakes nobody completed in time, and return them."""
        limit_ms = max(node_timeout_ms, HANDSHAKE_MS_MIN)
        expired = [
            entry
            for entry in self.nodes.values()
            if entry.flags & HANDSHAKE and now_ms - entry.created_ms > limit_ms
        ]
        for entry in expired:
            del self.nodes[entry.id]
        if expired:
            self.refresh()
        return expired

    def forget(self, node_id: bytes, now_ms: i64) -> NodeEntry:
        """Remove another node and refuse to hear of it for a minute (section 8.8).

        ``LocalError`` for this node or one that is not in the table.
        """
        entry = self.nodes.get(node_id)
        if entry is None or entry is self.myself:
            raise LocalError(f"node {node_id.decode('latin-1')} cannot be forgotten")
        self._blacklist[node_id.lower()] = now_ms + BLACKLIST_MS
        del self.nodes[node_id]
        self.changed = True
        self.refresh()
        return entry

    def blacklisted(self, node_id: bytes, now_ms: i64) -> bool:
        """The node was forgotten less than a minute ago, so gossip must not add it."""
        self._blacklist = {key: end for key, end in self._blacklist.items() if end > now_ms}
        return node_id.lower() in self._blacklist

    def reset(self, hard: bool) -> list[NodeEntry]:
        """Remove and return all other nodes; a hard reset also gives this one a new ID."""
        others = [entry for entry in self.nodes.values() if entry is not self.myself]
        if hard:
            self.myself.id = self._new_node_id()
            self.only_me = (self.myself.id,)
        self.nodes = {self.myself.id: self.myself}
        self.changed = True
        self.must_sync = True
        self.refresh()
        return others

    def set_leaving(self, leaving: bool) -> None:
        """Announce, or take back, that this node leaves; survives a restart (section 8.9)."""
        if leaving:
            self.myself.flags |= LEAVING
        else:
            self.myself.flags &= ~LEAVING
        self.changed = True

    def saved(self) -> None:
        """The nodes file holds the table as it is now."""
        self.changed = False
        self.must_sync = False

    def nodes_text(self) -> bytes:
        """The table as CLUSTER NODES shows it."""
        return b"".join([entry.line() for entry in self.nodes.values()])


def membership_from_file(
    entries: list[NodeEntry], port: int, new_node_id: Callable[[], bytes]
) -> Membership:
    """The table as the nodes file described it; a new node when it described nothing.

    The own port is the configured one, whatever the file says. ``LocalError`` when the entries do
    not hold exactly one MYSELF. A new node's table is marked to be saved and synced (section 9).
    """
    if not entries:
        fresh = Membership(NodeEntry(new_node_id(), b"", port, MYSELF, 0), new_node_id)
        fresh.changed = True
        fresh.must_sync = True
        return fresh
    mine = [entry for entry in entries if entry.flags & MYSELF]
    if len(mine) != 1:
        raise LocalError(f"the nodes file names {len(mine)} nodes as myself")
    mine[0].port = port
    membership = Membership(mine[0], new_node_id)
    for entry in entries:
        if entry is not mine[0]:
            membership.add(entry)
    return membership
