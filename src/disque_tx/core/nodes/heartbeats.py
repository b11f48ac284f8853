"""Received heartbeats: what PING, PONG, MEET and FAIL change (cluster protocol, sections 7.1, 7.2
and 8.5).

The order of the steps in :meth:`Heartbeats.receive` is that of the original: it decides which node
counts as known in which step. Whether the sender may use the link was decided before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disque_tx.core.admission.forgetting import Forgetting
from disque_tx.core.nodes import clocks, failure
from disque_tx.core.nodes.addresses import (
    Strangers,
    is_loopback,
    normal_ip,
    plain_ip,
    ports_usable,
    short_bus_port,
)
from disque_tx.core.nodes.duplicateids import is_that_node, record_number
from disque_tx.core.nodes.gossip import news
from disque_tx.core.nodes.links import Links
from disque_tx.core.nodes.membership import Membership
from disque_tx.core.nodes.peers import Peers
from disque_tx.messages.bus import Gossip, GossipEntry, Message, NodeFailed, NodeForgotten
from disque_tx.messages.bustypes import CAN_BULK, CAN_NAME, MEET, PING, PONG
from disque_tx.messages.nodes import (
    FAIL,
    HANDSHAKE,
    LEAVING,
    MYSELF,
    NOADDR,
    PFAIL,
    Link,
    NodeEntry,
)

#: Handshakes that others may have under way here; those of CLUSTER MEET count, but have no limit.
HANDSHAKES_MAX: Final = 64
#: More entries than a node sends at once that knows fewer than ten thousand others.
_GOSSIP_MAX: Final = 1_000


class Heartbeats:
    """``strangers``: which unknown nodes may introduce themselves. ``random``: a number in [0, 1)
    per call."""

    __slots__ = ("strangers", "_membership", "_peers", "_links", "_random")

    def __init__(
        self, membership: Membership, peers: Peers, links: Links, random: Callable[[], float]
    ) -> None:
        self.strangers: Strangers = Strangers()
        self._membership: Membership = membership
        self._peers: Peers = peers
        self._links: Links = links
        self._random: Callable[[], float] = random

    def receive(self, link: Link, message: Gossip, now_ms: i64, node_timeout_ms: i64) -> None:
        """A PING, PONG or MEET, in the order of section 7.1 of the cluster protocol."""
        sender = self._peers.entry(message.sender)
        entry = link.entry
        if sender is not None:
            self._membership.identity.receive(message, now_ms)
            moved = not _is_at(sender, _address(link, message), message)
            known = is_that_node(sender, link, message.epoch, moved, now_ms, node_timeout_ms)
            if not known:
                self._refuse_duplicate(link, message)
                return
        if entry is None:
            if message.type != PONG and not self._answer(link, message, sender, now_ms):
                return
            if sender is not None and message.type == PING:
                record_number(sender, link, message.epoch)
                self._update_address(sender, link, message)
        elif entry.flags & HANDSHAKE:
            self._complete_handshake(entry, sender, link, message, now_ms)
            return
        else:
            self._pong(entry, message, now_ms)
        if sender is not None:
            sender.numbers = message.epoch != 0
            self._update_features(link, message)
            self._copy_leaving(sender, message)
        if sender is not None or message.type == MEET:
            self._read_gossip(sender, message.entries, now_ms, node_timeout_ms)

    def _refuse_duplicate(self, link: Link, message: Gossip) -> None:
        """Another process has the ID of a node that is alive: it gets a PONG with that news."""
        entry = link.entry
        if entry is None:
            if message.type != PONG:
                self._peers.answer(link, news(PONG, self._membership, self._random))
        elif entry.flags & HANDSHAKE:
            entry.answered_by = message.sender
            self._links.drop(entry)

    def _answer(self, link: Link, message: Gossip, sender: NodeEntry | None, now_ms: i64) -> bool:
        """Reply to a PING or MEET with PONG; ``False`` if its sender gets no reply."""
        membership = self._membership
        if sender is None and not membership.cluster_name.is_same(message):
            self._refuse_stranger(link, message)
            return False
        introduced = message.type == MEET and sender is None
        if introduced and not self._admit(link, message, now_ms):
            membership.meets_refused += 1
            return False
        reached_at = normal_ip(plain_ip(link.local_ip))
        if message.type == MEET or self._is_better(reached_at):
            membership.learn_ip(reached_at)
        self._peers.answer(link, news(PONG, membership, self._random))
        return True

    def _refuse_stranger(self, link: Link, message: Gossip) -> None:
        """A node of another cluster introduces itself or calls back. Only one that compares names,
        too, may have a PONG: any other would take it for a welcome."""
        self._membership.cluster_name.refuse(message.sender, link.peer_ip)
        knows_names = message.epoch != 0 and message.features & CAN_NAME != 0
        if knows_names and self.strangers.welcome(plain_ip(link.peer_ip)):
            self._peers.answer(link, news(PONG, self._membership, self._random))

    def _is_better(self, ip: bytes) -> bool:
        """Whether more nodes can use this address of ours than the one that is known."""
        known = self._membership.myself.ip
        return not known or (is_loopback(known) and not is_loopback(ip))

    def _admit(self, link: Link, message: Message, now_ms: i64) -> bool:
        """Begin a handshake with a stranger, unless it is one too many or not welcome."""
        if not self.strangers.welcome(plain_ip(link.peer_ip)):
            return False
        membership = self._membership
        ip = _address(link, message)
        if membership.handshake_with(ip, message.port, message.bus_port) is not None:
            return True
        if membership.handshakes >= HANDSHAKES_MAX:
            return False
        if not self.strangers.admits(plain_ip(link.peer_ip), now_ms):
            return False
        return membership.introduce(ip, message.port, message.bus_port, now_ms)

    def _complete_handshake(
        self,
        entry: NodeEntry,
        sender: NodeEntry | None,
        link: Link,
        message: Gossip,
        now_ms: i64,
    ) -> None:
        """The PONG that completes a handshake; of a known node, only the address is news."""
        entry.answered_by = message.sender
        if sender is not None:
            self._links.drop(entry)
            if not (entry.discovered and _is_well(sender)):
                self._update_address(sender, link, message)
            return
        if not self._membership.cluster_name.is_same(message):
            self._membership.cluster_name.refuse(message.sender, link.peer_ip)
            self._links.drop(entry)
            return
        if entry.discovered and self._membership.forgotten.commanded(message.sender, now_ms):
            self._links.drop(entry)
            return
        self._membership.complete(entry, message.sender)
        entry.numbers = message.epoch != 0
        self._update_features(link, message)
        self._pong(entry, message, now_ms)

    def _update_features(self, link: Link, message: Message) -> None:
        """What the other side can do is known from now on; only a node of ours shows any."""
        link.features = message.features if message.epoch else 0
        link.sink.bulk = link.features & self._membership.features & CAN_BULK != 0

    def _pong(self, entry: NodeEntry, message: Gossip, now_ms: i64) -> None:
        """A PONG came on our own link to the node."""
        clocks.record(entry, message.clock_ms, now_ms)
        entry.pong_received_ms = now_ms
        entry.ping_sent_ms = 0
        if failure.clear_failure(entry):
            self._membership.changed = True

    def _update_address(self, entry: NodeEntry, link: Link, message: Message) -> None:
        """The address of a node is where it connects from, or what it announces (cluster protocol,
        section 8.7)."""
        ip = _address(link, message)
        if _is_at(entry, ip, message):
            return
        if not ip or not ports_usable(message.port, message.bus_port):
            return
        bus_port = short_bus_port(message.port, message.bus_port)
        self._links.readdress(entry, ip, message.port, bus_port)

    def _copy_leaving(self, sender: NodeEntry, message: Message) -> None:
        leaving = message.flags & LEAVING
        if sender.flags & LEAVING != leaving:
            sender.flags = (sender.flags & ~LEAVING) | leaving
            self._membership.changed = True

    def _read_gossip(
        self,
        sender: NodeEntry | None,
        entries: list[GossipEntry],
        now_ms: i64,
        node_timeout_ms: i64,
    ) -> None:
        """Evaluate gossip (cluster protocol, section 8.5). ``sender``: ``None`` for a stranger."""
        membership = self._membership
        for reported in entries[:_GOSSIP_MAX]:
            about = membership.nodes.get(reported.id)
            if about is membership.myself:
                continue
            if about is not None:
                if sender is not None and self._update_report(sender, about, reported, now_ms):
                    self._fail_if_majority(about, now_ms, node_timeout_ms)
                moved = reported.ip.lower() != about.ip.lower() or reported.port != about.port
                if moved and failure.failing(about):
                    self._try_meet(reported, now_ms)
            elif sender is not None:
                if not membership.blacklisted(reported.id, now_ms):
                    if not reported.flags & NOADDR:
                        self._try_meet(reported, now_ms)
                elif reported.flags & (FAIL | PFAIL) and membership.forgotten.aged(
                    reported.id, now_ms
                ):
                    self._peers.tell_forgotten(sender, reported.id)

    def _try_meet(self, reported: GossipEntry, now_ms: i64) -> None:
        if self._membership.handshakes < HANDSHAKES_MAX:
            self._membership.meet(reported.ip, reported.port, reported.bus_port, now_ms)

    def _update_report(
        self, sender: NodeEntry, about: NodeEntry, reported: GossipEntry, now_ms: i64
    ) -> bool:
        """Record whether the sender reports the node as failing, and return it."""
        if reported.flags & (PFAIL | FAIL):
            about.reports[sender.id] = int(now_ms)
            return True
        about.reports.pop(sender.id, 0)
        if about.suspected_ms != 0:
            about.suspected_ms = now_ms
        return False

    def _fail_if_majority(self, about: NodeEntry, now_ms: i64, node_timeout_ms: i64) -> None:
        """Mark a node as failed, and broadcast it, if a majority reports it (cluster protocol,
        section 8.6)."""
        voters = failure.voters(about, self._membership.nodes.values())
        if failure.majority_agrees(about, voters, now_ms, node_timeout_ms):
            failure.mark_failed(about, now_ms)
            self._membership.changed = True
            self._peers.broadcast(NodeFailed(about.id))

    def forgotten(self, message: NodeForgotten, now_ms: i64, forgetting: Forgetting) -> None:
        """FORGET: another node of ours has forgotten a node that had failed for long (section
        21.10)."""
        about = self._peers.entry(message.about)
        if about is not None:
            if about.flags & PFAIL:
                # Who has forgotten it reports it no more: this node would never see a majority.
                failure.mark_failed(about, now_ms)
                self._membership.changed = True
            forgetting.tell(about)
        else:
            self._membership.forgotten.age(message.about, now_ms)

    def failed(self, message: NodeFailed, now_ms: i64) -> None:
        """FAIL: by a known node, a majority marked another one as failed (cluster protocol, section
        7.2)."""
        about = self._peers.entry(message.about)
        if self._peers.entry(message.sender) is None or about is None:
            return
        if not about.flags & (MYSELF | FAIL):
            failure.mark_failed(about, now_ms)
            self._membership.changed = True


def _address(link: Link, message: Message) -> bytes:
    """The address that the sender announces, or connects from; empty when neither is one."""
    return normal_ip(message.ip) or normal_ip(plain_ip(link.peer_ip))


def _is_well(entry: NodeEntry) -> bool:
    """Whether the node answers at the address where it is known: it may have several."""
    link = entry.link
    return link is not None and link.peer_id != b"" and not failure.failing(entry)


def _is_at(entry: NodeEntry, ip: bytes, message: Message) -> bool:
    """Whether the node is known to be at this address, with the ports of the message."""
    bus_port = short_bus_port(message.port, message.bus_port)
    return entry.ip == ip and entry.port == message.port and entry.bus_port == bus_port
