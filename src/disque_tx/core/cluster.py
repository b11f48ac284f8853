"""The cluster as this node sees it: which nodes are watched, which may use a link, what
operators ask for.

Cluster protocol, sections 7.1, 7.2 and 8. Ten times a second :meth:`Cluster.tick` looks at every
node of the table; in between, messages of others change it. Four things differ from the original:

1. Connections that fail are repeated less and less often (see ``links``).
2. A peer uses one ID per link, and never this node's.
3. Introductions have a limit, and one that was not answered is repeated (see ``strangers``).
4. Gossip includes failing nodes even while there is no link to them (see ``gossip``).

All times are those of the steady clock, so steps of the wall clock change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disque_tx.core.admission.forgetting import Forgetting
from disque_tx.core.base.outbox import Outbox
from disque_tx.core.base.part import Turn
from disque_tx.core.keys.keepermap import KeeperMap
from disque_tx.core.nodes import failure, gossip
from disque_tx.core.nodes.addresses import Network, normal_ip, plain_ip
from disque_tx.core.nodes.discovery import Discovery
from disque_tx.core.nodes.duplicateids import has_duplicate
from disque_tx.core.nodes.heartbeats import Heartbeats
from disque_tx.core.nodes.links import Links, LinkWatcher
from disque_tx.core.nodes.membership import Membership
from disque_tx.core.nodes.peers import Peers
from disque_tx.core.tables.exchange import Exchanges
from disque_tx.messages.bus import Gossip, Message, NodeFailed, NodeForgotten
from disque_tx.messages.bustypes import MEET, PING, PONG
from disque_tx.messages.nodes import FAIL, HANDSHAKE, MYSELF, NOADDR, PFAIL, Link, NodeEntry
from disque_tx.messages.nodes import MEET as INTRODUCE

NODE_TIMEOUT_MS: Final = 15_000
_TICKS_PER_S: Final = 10
_MEET_AGAIN_MS: Final = 1_000


class Cluster:
    """``node_timeout_ms``: how long a node may be silent.

    ``random``: a number in [0, 1) per call. ``tables``: what goes with every PING, ``None`` for
    nothing. ``keys``: the map of keepers, which must learn of changes. Links to make and to close
    go to the outbox; whoever makes them reports by :meth:`link_up` or :meth:`link_failed`, and by
    :meth:`link_lost`.
    """

    __slots__ = (
        "membership",
        "discovery",
        "forgetting",
        "node_timeout_ms",
        "watchers",
        "_peers",
        "_links",
        "_heartbeats",
        "_keys",
        "_random",
        "_tables",
        "_ticks",
        "_turn",
    )

    def __init__(
        self,
        turn: Turn,
        membership: Membership,
        peers: Peers,
        outbox: Outbox,
        random: Callable[[], float],
        *,
        tables: Exchanges | None = None,
        keys: KeeperMap | None = None,
    ) -> None:
        self._turn: Turn = turn
        self.membership: Membership = membership
        self.node_timeout_ms: i64 = NODE_TIMEOUT_MS
        #: Told of changes of links, after the keepers of keys.
        self.watchers: list[LinkWatcher] = []
        self._peers: Peers = peers
        self._links: Links = Links(membership, outbox, random)
        self._heartbeats: Heartbeats = Heartbeats(membership, peers, self._links, random)
        #: What other nodes are found without an operator.
        self.discovery: Discovery = Discovery(membership, self._links, random)
        #: When nodes that failed are forgotten.
        self.forgetting: Forgetting = Forgetting()
        self._random: Callable[[], float] = random
        self._tables: Exchanges | None = tables
        self._keys: KeeperMap | None = keys
        self._ticks: i64 = 0

    @property
    def meet_allow(self) -> list[Network]:
        """Networks from which unknown nodes may introduce themselves, empty for all."""
        return self._heartbeats.strangers.networks

    @meet_allow.setter
    def meet_allow(self, networks: list[Network]) -> None:
        self._heartbeats.strangers.networks = networks

    # -- time --------------------------------------------------------------------------------

    def tick(self) -> None:
        """What the cluster needs every 100 ms (section 8.4)."""
        now_ms = self._turn.now_ms
        membership = self.membership
        for entry in membership.expire_handshakes(now_ms, self.node_timeout_ms):
            self._links.hang_up(entry)
        self.discovery.tick(now_ms, self.node_timeout_ms)
        entries = list(membership.nodes.values())
        for entry in entries:
            if entry.link is None and not entry.flags & (MYSELF | NOADDR):
                self._links.call(entry, now_ms)
        if self._ticks % _TICKS_PER_S == 0:
            self._each_second(entries)
        self._ticks += 1
        for entry in entries:
            entry.contested = has_duplicate(entry, now_ms, self.node_timeout_ms)
            if entry.flags & NOADDR:
                self._miss(entry)
            elif not entry.flags & (MYSELF | HANDSHAKE):
                self._watch(entry)
        membership.identity.tick(now_ms, self.node_timeout_ms)
        membership.refresh()
        if self._keys is not None:
            self._keys.refresh()
        self._links_changed()

    def _links_changed(self) -> None:
        for watcher in self.watchers:
            watcher.links_changed()

    def _each_second(self, entries: list[NodeEntry]) -> None:
        now_ms = self._turn.now_ms
        for entry in self.forgetting.due(entries, now_ms):
            entries.remove(entry)
            self._forget_everywhere(entry)
        quiet = gossip.longest_silent(entries, self._random)
        if quiet is not None:
            self._ping(quiet, PING)
        for entry in entries:
            link = entry.link
            if link is not None and entry.flags & INTRODUCE:
                if now_ms - link.created_ms >= _MEET_AGAIN_MS:
                    self._ping(entry, MEET)

    def _forget_everywhere(self, entry: NodeEntry) -> None:
        """Forget a node that has failed for long, and have the other nodes do so."""
        membership = self.membership
        self.forgetting.count += 1
        self._links.drop(entry)
        membership.changed = True
        membership.forgotten.age(entry.id, self._turn.now_ms)
        for other in membership.nodes.values():
            self._peers.tell_forgotten(other, entry.id)

    def _watch(self, entry: NodeEntry) -> None:
        """Ping a node that was silent, mistrust its link, then itself."""
        now_ms = self._turn.now_ms
        if failure.link_is_stale(entry, now_ms, self.node_timeout_ms):
            self._links.hang_up(entry)
        if gossip.silent(entry, now_ms, self.node_timeout_ms):
            self._ping(entry, PING)
        else:
            self._suspect(entry)

    def _miss(self, entry: NodeEntry) -> None:
        """Another node has the address of this one, so it cannot be pinged. It is suspected all the
        same, unless it calls in time."""
        if entry.ping_sent_ms == 0:
            entry.ping_sent_ms = self._turn.now_ms
        else:
            self._suspect(entry)

    def _suspect(self, entry: NodeEntry) -> None:
        """Suspect a node that does not answer. After long it counts as failed though nobody else
        reports it: then nobody needs to be informed, either."""
        now_ms, timeout_ms = self._turn.now_ms, self.node_timeout_ms
        if failure.overdue(entry, now_ms, timeout_ms):
            entry.flags |= PFAIL
        if entry.flags & (PFAIL | FAIL) == PFAIL:
            if entry.suspected_ms == 0:
                entry.suspected_ms = now_ms
            elif now_ms - entry.suspected_ms > failure.UNCONTRADICTED * timeout_ms:
                nodes = self.membership.nodes.values()
                if failure.majority_answers(entry, nodes, now_ms - timeout_ms):
                    failure.mark_failed(entry, now_ms)
                    self.membership.changed = True

    def _ping(self, entry: NodeEntry, kind: i64) -> None:
        """PING or MEET a node that has a link; the time counts from the first one unanswered."""
        link = entry.link
        if link is not None:
            if kind == PING and entry.ping_sent_ms == 0:
                entry.ping_sent_ms = self._turn.now_ms
            self._peers.answer(link, gossip.news(kind, self.membership, self._random))
            if kind == PING and self._tables is not None:
                self._tables.greet(link)

    # -- links -------------------------------------------------------------------------------

    def link_up(self, entry: NodeEntry, link: Link) -> None:
        """The link that was asked for is made; send the first PING, if it is still wanted."""
        if self._links.up(entry, link):
            self._ping(entry, MEET if entry.flags & INTRODUCE else PING)

    def link_failed(self, entry: NodeEntry) -> None:
        """The link that was asked for cannot be made."""
        self._links.failed(entry, self._turn.now_ms, self.node_timeout_ms)
        if entry.discovered and entry.flags & HANDSHAKE:
            if self.membership.nodes.get(entry.id) is entry:
                self._links.drop(entry)  # there is a time for the next try

    def link_lost(self, link: Link) -> None:
        """A link broke, of whichever side; harmless for one that was to be closed anyway."""
        self._links.lost(link, self._turn.now_ms, self.node_timeout_ms)
        for watcher in self.watchers:
            watcher.link_lost(link)

    def duplicate_ids(self) -> int:
        """How many nodes, this one among them, have an ID that another process uses, too."""
        others = len([entry for entry in self.membership.nodes.values() if entry.contested])
        return others + (1 if self.membership.identity.contested else 0)

    # -- whose message it is -----------------------------------------------------------------

    def bind(self, link: Link, message: Message) -> bool:
        """Whether its sender may send the message on this link.

        To be asked for every message, before anything else is done with it. A peer that uses this
        node's ID, or another one than before, loses its link (section 2).
        """
        entry = link.entry
        if entry is not None:
            is_that_node = self._bind_own(link, entry, message)
        elif message.sender == self.membership.myself.id:
            self._met_myself(link, message.epoch)
            is_that_node = False
        else:
            is_that_node = self._bind_accepted(link, message.sender)
        if is_that_node:
            known = self._peers.entry(message.sender)
            if known is not None:
                self._links.reset_backoff(known)
        return is_that_node

    def _bind_own(self, link: Link, entry: NodeEntry, message: Message) -> bool:
        """On a link that this node made, only the node at its other end may send, and only PONG."""
        if entry.link is not link or message.type != PONG:
            return False
        sender = message.sender
        if entry.flags & HANDSHAKE:
            if sender == self.membership.myself.id or not sender.isalnum():
                self._links.drop(entry)  # the nodes file never names such a node
                return False
        elif sender != entry.id:
            # Unless it is known, it is perhaps about to be.
            met = self.membership.handshake_with(entry.ip, entry.port, entry.bus_port)
            self._links.lose_address(entry)
            self._links.renew(self._peers.entry(sender) or met, link)
            return False
        link.peer_id = sender
        return True

    def _bind_accepted(self, link: Link, sender: bytes) -> bool:
        """On an accepted link, strangers may send, until a known node does."""
        if link.peer_id:
            if link.peer_id != sender:
                self._links.close(link)
                return False
        elif self._peers.entry(sender) is not None:
            link.peer_id = sender
        return True

    def _met_myself(self, link: Link, number: i64) -> None:
        """The other end of a link to this node itself: there was no other node to meet. ``number``:
        that of the link, by which a handshake with an address that others know is found."""
        self._links.close(link)
        for other in list(self.membership.nodes.values()):
            made = other.link
            if other.discovered and made is not None and made.epoch == number:
                other.answered_by = self.membership.myself.id
                self._links.drop(other)
                return
        myself = self.membership.myself
        ip = normal_ip(plain_ip(link.local_ip))
        entry = self.membership.handshake_with(ip, myself.port, myself.bus_port)
        if entry is not None:
            self._links.drop(entry)

    # -- messages ------------------------------------------------------------------------

    def refused(self, link: Link, message: Message) -> None:
        """A message that :meth:`bind` refused; perhaps of another process with this node's ID."""
        membership = self.membership
        if message.sender == membership.myself.id and isinstance(message, Gossip):
            membership.identity.own_id_seen(link, message, self._turn.now_ms)

    def receive(self, link: Link, message: Gossip) -> None:
        """A PING, PONG or MEET that :meth:`bind` let through (section 7.1)."""
        before = link.features
        met = link.entry is not None and link.entry.flags & HANDSHAKE != 0
        self._heartbeats.receive(link, message, self._turn.now_ms, self.node_timeout_ms)
        if link.entry is not None and link.features != before:
            if self._tables is not None:
                self._tables.greet(link)
            self._links_changed()
        entry = link.entry
        if met and entry is not None and entry.link is link and not entry.flags & HANDSHAKE:
            # Our first message may have come before the node knew this one: who made the link, and
            # may send it jobs, it learns from one after that.
            self._ping(entry, PING)

    def failed(self, message: NodeFailed) -> None:
        """A FAIL that :meth:`bind` let through (section 7.2)."""
        self._heartbeats.failed(message, self._turn.now_ms)

    def forgotten(self, message: NodeForgotten) -> None:
        """A FORGET that :meth:`bind` let through (section 21.10)."""
        self._heartbeats.forgotten(message, self._turn.now_ms, self.forgetting)

    # -- what operators ask for --------------------------------------------------------------

    def meet_resolved(self, ip: bytes, port: i64) -> bool:
        """The host name given to CLUSTER MEET has this address; see :meth:`Membership.meet`."""
        return self.membership.meet(ip, port, 0, self._turn.now_ms)

    def forget(self, node_id: bytes) -> None:
        """CLUSTER FORGET; ``LocalError`` as :meth:`Membership.forget`."""
        self._links.hang_up(self.membership.forget(node_id, self._turn.now_ms))

    def reset(self, hard: bool) -> None:
        """CLUSTER RESET: no node but this one is known any more, and our links are gone."""
        for entry in self.membership.reset(hard):
            self._links.hang_up(entry)
