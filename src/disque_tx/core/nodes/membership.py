"""Who belongs to the cluster: the table of nodes, the handshakes under way, and the forgotten ones.

Cluster protocol, sections 8.2, 8.3, 8.8 to 8.10. The table changes in these ways:

1. MEET: an entry with a random ID stands for the peer until its real ID is known. It is dropped
   when the peer stays silent for too long.
2. FORGET: the entry goes, and for a minute no gossip can bring it back.
3. RESET: all others go; a hard one also gives this node a new ID.
4. LEAVING: this node stays a member, but takes no new jobs.

Gossip is not evaluated here, nor what becomes of the links of removed nodes:
see :mod:`disque_tx.core.cluster`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disque_tx.core.admission.clustername import ClusterName
from disque_tx.core.admission.forgetting import BLACKLIST_MS, Forgotten
from disque_tx.core.nodes.addresses import (
    is_loopback,
    normal_ip,
    plain_ip,
    ports_usable,
    short_bus_port,
)
from disque_tx.core.nodes.duplicateids import IdentityConflict
from disque_tx.errors import LocalError
from disque_tx.messages.bustypes import (
    ALL_FEATURES,
)
from disque_tx.messages.nodes import (
    FAIL,
    HANDSHAKE,
    LEAVING,
    MEET,
    MYSELF,
    NOADDR,
    PFAIL,
    NodeEntry,
)

HANDSHAKE_MS_MIN: Final = 1_000
_UNREACHABLE: Final = MYSELF | HANDSHAKE | LEAVING | PFAIL | FAIL | NOADDR


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

    ``nodes``: by ID. ``size``: entries without handshakes, failed and leaving ones included;
    ``handshakes``: the others. ``reachable``: those that can take copies of jobs.
    ``hosts_differ``: some members of the cluster share a host, and others are on another one.
    ``only_me``: this node's ID, as the list of holders of a job that no other node has.
    ``announced_ip``: where other nodes are to connect, empty for the address it connects from;
    set by :meth:`announce`. ``unix_ms``: the wall clock when the steady clock was zero, for times
    that others may show. ``wall_ms``: the wall clock at the beginning of the turn.
    ``changed``: the nodes file is out of date; ``must_sync``: it must reach the disk before any
    message about the change leaves; after saving, :meth:`saved` is called.
    ``siblings``: IDs of the nodes that are the other processes of this daemon.
    ``messages_sent``, ``messages_received``, ``messages_ignored``: counted by the bus;
    ``meets_refused``: introductions that were too many or not allowed. ``cluster_name``: which
    nodes belong to another cluster. ``forgotten``: which may not come back. ``identity``: whether
    another process has this node's ID. ``features``: what this node can do besides what the
    original can.

    ``new_node_id`` makes random IDs of 40 lower-case hexadecimal digits.
    """

    __slots__ = (
        "nodes",
        "myself",
        "size",
        "handshakes",
        "reachable",
        "hosts_differ",
        "only_me",
        "announced_ip",
        "unix_ms",
        "wall_ms",
        "changed",
        "must_sync",
        "siblings",
        "messages_sent",
        "messages_received",
        "messages_ignored",
        "meets_refused",
        "cluster_name",
        "identity",
        "features",
        "forgotten",
        "_new_node_id",
    )

    def __init__(self, myself: NodeEntry, new_node_id: Callable[[], bytes]) -> None:
        myself.flags |= MYSELF
        self.nodes: dict[bytes, NodeEntry] = {myself.id: myself}
        self.myself: NodeEntry = myself
        self.size: i64 = 1
        self.handshakes: i64 = 0
        self.reachable: list[NodeEntry] = []
        self.hosts_differ: bool = False
        self.only_me: tuple[bytes, ...] = (myself.id,)
        self.announced_ip: bytes = b""
        self.unix_ms: i64 = 0
        self.wall_ms: i64 = 0
        self.changed: bool = False
        self.must_sync: bool = False
        self.siblings: list[bytes] = []
        self.messages_sent: i64 = 0
        self.messages_received: i64 = 0
        self.messages_ignored: i64 = 0
        self.meets_refused: i64 = 0
        self.cluster_name: ClusterName = ClusterName()
        self.identity: IdentityConflict = IdentityConflict()
        self.features: i64 = ALL_FEATURES
        self.forgotten: Forgotten = Forgotten()
        self._new_node_id: Callable[[], bytes] = new_node_id

    @property
    def leaving(self) -> bool:
        """Whether this node is about to leave the cluster."""
        return self.myself.flags & LEAVING != 0

    # -- this node ---------------------------------------------------------------------------

    def announce(self, ip: bytes, port: i64, bus_port: i64) -> None:
        """Where others shall call; empty or 0 for what they find out themselves.

        ``ip`` must be a literal address in its normal form.
        """
        myself = self.myself
        if ip != self.announced_ip:
            self.announced_ip = myself.ip = ip
            self.changed = True
        if port:
            myself.port = port
        myself.bus_port = short_bus_port(myself.port, bus_port)

    def learn_ip(self, ip: bytes) -> None:
        """Others reach this node at ``ip``; ignored when it was configured what they shall see."""
        if ip and not self.announced_ip and ip != self.myself.ip:
            self.myself.ip = ip
            self.changed = True

    def set_leaving(self, leaving: bool) -> None:
        """Announce, or take back, that this node leaves; survives a restart (section 8.9)."""
        if leaving:
            self.myself.flags |= LEAVING
        else:
            self.myself.flags &= ~LEAVING
        self.changed = True

    # -- handshakes --------------------------------------------------------------------------

    def meet(self, ip: bytes, port: i64, bus_port: i64, now_ms: i64) -> bool:
        """Introduce this node to the node that answers there, unless that is under way (section
        8.3).

        ``bus_port`` 0 stands for ``port`` + 10000. ``False``: this is not a literal address with
        ports that exist.
        """
        return self._shake_hands(ip, port, bus_port, HANDSHAKE | MEET, now_ms)

    def introduce(self, ip: bytes, port: i64, bus_port: i64, now_ms: i64) -> bool:
        """The node there introduced itself; call it back. Otherwise like :meth:`meet`."""
        return self._shake_hands(ip, port, bus_port, HANDSHAKE, now_ms)

    def discover(self, ip: bytes, port: i64, bus_port: i64, now_ms: i64) -> NodeEntry | None:
        """Like :meth:`meet`, for discovery, which tries addresses again and again: what comes of it
        is not worth writing the nodes file. ``ip`` must be in its normal form, the ports usable.
        Returns the handshake, or ``None`` if somebody else has begun one there."""
        if self.handshake_with(ip, port, bus_port) is not None:
            return None
        entry = NodeEntry(self._new_node_id(), ip, port, HANDSHAKE | MEET, now_ms)
        entry.bus_port = short_bus_port(port, bus_port)
        entry.discovered = True
        self.add(entry)
        return entry

    def _shake_hands(self, ip: bytes, port: i64, bus_port: i64, flags: i64, now_ms: i64) -> bool:
        address = normal_ip(ip)
        if not address or not ports_usable(port, bus_port):
            return False
        if self.handshake_with(address, port, bus_port) is None:
            entry = NodeEntry(self._new_node_id(), address, port, flags, now_ms)
            entry.bus_port = short_bus_port(port, bus_port)
            self.add(entry)
            self.changed = True
        return True

    def handshake_with(self, ip: bytes, port: i64, bus_port: i64) -> NodeEntry | None:
        """The handshake under way with this address, whose spelling must be normal."""
        kept = short_bus_port(port, bus_port)
        for entry in self.nodes.values():
            if (
                entry.flags & HANDSHAKE
                and entry.port == port
                and entry.ip == ip
                and entry.bus_port == kept
            ):
                return entry
        return None

    def complete(self, entry: NodeEntry, node_id: bytes) -> None:
        """The handshake succeeded: the node there has this ID, which the table must not hold."""
        if node_id in self.nodes:
            raise LocalError(f"node {node_id.decode('latin-1')} is in the table already")
        del self.nodes[entry.id]
        entry.id = node_id
        entry.flags &= ~(HANDSHAKE | MEET)
        self.nodes[node_id] = entry
        self.forgotten.returned(node_id)
        self.changed = True
        self.refresh()

    def expire_handshakes(self, now_ms: i64, node_timeout_ms: i64) -> list[NodeEntry]:
        """Drop the handshakes that were not completed in time, and return them."""
        limit_ms = max(node_timeout_ms, HANDSHAKE_MS_MIN)
        expired = [
            entry
            for entry in self.nodes.values()
            if entry.flags & HANDSHAKE and now_ms - entry.created_ms > limit_ms
        ]
        for entry in expired:
            self.remove(entry)
        return expired

    # -- the table ---------------------------------------------------------------------------

    def refresh(self) -> None:
        """Count again, after entries or flags changed."""
        self.size = len([e for e in self.nodes.values() if not e.flags & HANDSHAKE])
        self.handshakes = len(self.nodes) - self.size
        self.reachable = [e for e in self.nodes.values() if not e.flags & _UNREACHABLE]
        # Those that cannot be reached at present may have copies, so they count.
        members = [self.host(e) for e in self.nodes.values() if not e.flags & HANDSHAKE]
        known = [host for host in members if host]
        self.hosts_differ = 1 < len(set(known)) < len(known)

    def host(self, entry: NodeEntry) -> bytes:
        """What tells the hosts of nodes apart: the address, empty while it is unknown.

        A node at a loopback address is on this host, whose other nodes may know it by another
        address.
        """
        ip = plain_ip(entry.ip)
        if is_loopback(ip):
            mine = plain_ip(self.myself.ip)
            if mine and not is_loopback(mine):
                return mine
        return ip

    def add(self, entry: NodeEntry) -> None:
        """Take in a node, from the nodes file or from gossip."""
        if entry.id in self.nodes or entry.flags & MYSELF:
            raise LocalError(f"node {entry.id.decode('latin-1')} cannot be added to the table")
        self.nodes[entry.id] = entry
        self.refresh()

    def remove(self, entry: NodeEntry) -> None:
        """Take out a node, and its reports about others (section 8.6)."""
        del self.nodes[entry.id]
        for other in self.nodes.values():
            other.reports.pop(entry.id, 0)
        self.refresh()

    def forget(self, node_id: bytes, now_ms: i64) -> NodeEntry:
        """Remove another node and ignore gossip on it for a minute (section 8.8).

        ``LocalError`` for this node or one that is not in the table.
        """
        entry = self.nodes.get(node_id)
        if entry is None or entry is self.myself:
            raise LocalError(f"node {node_id.decode('latin-1')} cannot be forgotten")
        self.forgotten.by_command[node_id.lower()] = int(now_ms) + BLACKLIST_MS
        self.remove(entry)
        self.changed = True
        return entry

    def blacklisted(self, node_id: bytes, now_ms: i64) -> bool:
        """The node was forgotten, so gossip must not add it (see ``forgetting``)."""
        forgotten = self.forgotten
        return forgotten.commanded(node_id, now_ms) or forgotten.aged(node_id, now_ms)

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

    def saved(self) -> None:
        """The nodes file holds the table as it is now."""
        self.changed = False
        self.must_sync = False

    def nodes_text(self, unix_ms: i64) -> bytes:
        """The table as CLUSTER NODES shows it.

        ``unix_ms``: the wall clock when the steady clock was zero.
        """
        return b"".join([entry.line(unix_ms) for entry in self.nodes.values()])


def membership_from_file(
    entries: list[NodeEntry], port: int, new_node_id: Callable[[], bytes]
) -> Membership:
    """The table as the nodes file described it.

    Without a MYSELF among the entries this is a new node, which knows the others nevertheless; its
    table is marked to be saved and synced (section 9). The own port is the configured one, whatever
    the file says. ``LocalError`` when the entries hold more than one MYSELF.
    """
    mine = [entry for entry in entries if entry.flags & MYSELF]
    if len(mine) > 1:
        raise LocalError(f"the nodes file names {len(mine)} nodes as myself")
    if mine:
        mine[0].port = port
        membership = Membership(mine[0], new_node_id)
    else:
        membership = Membership(NodeEntry(new_node_id(), b"", port, MYSELF, 0), new_node_id)
        membership.changed = True
        membership.must_sync = True
    for entry in entries:
        if not entry.flags & MYSELF:
            membership.add(entry)
    return membership
