"""The cluster parts of several nodes in one process, connected by queues instead of sockets."""

from __future__ import annotations

from collections import deque
from random import Random

from disque_tx.core.base.outbox import Outbox
from disque_tx.core.base.part import Turn
from disque_tx.core.cluster import Cluster
from disque_tx.core.nodes.membership import Membership
from disque_tx.core.nodes.peers import Peers
from disque_tx.messages.bus import BusSink, Gossip, Message, NodeFailed, NodeForgotten
from disque_tx.messages.nodes import MYSELF, Link, NodeEntry

PORT = 7711
TICK_MS = 100
#: Large enough that no test depends on the clock starting near zero.
START_MS = 1_000_000


class Pipe(BusSink):
    """One direction of a connection. ``sent``: every message ever sent, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: deque[Message] = deque()
        self.sent: list[Message] = []

    def send(self, message: Message) -> None:
        self.waiting.append(message)
        self.sent.append(message)


class Wire:
    """A connection: ``near`` is the caller's link, ``far`` the link of the node that was called."""

    def __init__(self, caller: Peer, entry: NodeEntry, called: Peer, now_ms: int) -> None:
        self.caller = caller
        self.called = called
        caller.links += 1
        self.there, self.back = Pipe(), Pipe()
        self.near = Link(self.there, entry, called.ip, caller.ip, now_ms, caller.links)
        self.far = Link(self.back, None, caller.ip, called.ip, now_ms, caller.links)
        self.closed = False


class Peer:
    """The cluster part of a node. ``silent``: it neither receives nor sends messages, but its
    connections stay open; ``dead``: connections to its address are refused."""

    def __init__(self, number: int, random: Random, turn: Turn) -> None:
        self.id = b"%040x" % (0xA000 + number)
        self.ip = b"10.0.0.%d" % number
        self.random = random
        self.membership = Membership(NodeEntry(self.id, b"", PORT, MYSELF, 0), self._new_id)
        self.outbox = Outbox()
        peers = Peers(self.membership)
        self.cluster = Cluster(turn, self.membership, peers, self.outbox, random.random)
        self.links = 0
        self.silent = False
        self.dead = False

    def _new_id(self) -> bytes:
        return b"%040x" % self.random.getrandbits(160)

    def meet(self, other: Peer, now_ms: int) -> None:
        """CLUSTER MEET."""
        self.membership.meet(other.ip, PORT, 0, now_ms)

    def flags_of(self, other: Peer) -> int:
        """The flags that this node holds for the other one."""
        return int(self.membership.nodes[other.id].flags)

    def known_ids(self) -> set[bytes]:
        """The IDs of all nodes in the table."""
        return set(self.membership.nodes)

    def receive(self, link: Link, message: Message, now_ms: int) -> None:
        """Process one received message."""
        if self.cluster.bind(link, message):
            if isinstance(message, Gossip):
                self.cluster.receive(link, message)
            elif isinstance(message, NodeFailed):
                self.cluster.failed(message)
            elif isinstance(message, NodeForgotten):
                self.cluster.forgotten(message)


class Net:
    """``nodes`` peers, none of which knows another. Connections open and close instantly, and
    messages arrive within the same tick unless the connection is cut. ``log``: every message with
    its sender and receiver. ``swallowing``: addresses at which connections are neither made nor
    refused."""

    def __init__(self, nodes: int, seed: int = 1) -> None:
        random = Random(seed)
        self.turn = Turn()
        self.turn.now_ms = START_MS
        self.nodes = [
            Peer(number + 1, Random(random.random()), self.turn) for number in range(nodes)
        ]
        self.swallowing: set[bytes] = set()
        self.wires: list[Wire] = []
        self.log: list[tuple[Peer, Peer, Message]] = []
        self._cuts: set[frozenset[Peer]] = set()

    @property
    def now_ms(self) -> int:
        """The time, which is the same for all."""
        return int(self.turn.now_ms)

    # -- faults ------------------------------------------------------------------------------

    def cut(self, a: Peer, b: Peer) -> None:
        """Drop all messages between the two, in both directions, without closing connections."""
        self._cuts.add(frozenset((a, b)))

    def heal(self) -> None:
        """Undo all cuts."""
        self._cuts.clear()

    def kill(self, peer: Peer) -> None:
        """The process ends: its connections close, and new connections are refused."""
        peer.dead = True
        for wire in list(self.wires):
            if peer in (wire.caller, wire.called):
                self._close(wire)

    def passes(self, a: Peer, b: Peer) -> bool:
        """Whether messages can be delivered between the two."""
        return not (a.silent or b.silent or frozenset((a, b)) in self._cuts)

    # -- time --------------------------------------------------------------------------------

    def run(self, ms: int) -> None:
        """Let time pass."""
        end_ms = self.now_ms + ms
        while self.now_ms < end_ms:
            self.turn.now_ms += TICK_MS
            for peer in self.nodes:
                if not peer.dead and not peer.silent:
                    peer.cluster.tick()
            self.settle()

    def settle(self) -> None:
        """Deliver messages until none are left."""
        busy = True
        while busy:
            for peer in self.nodes:
                self._perform(peer)
            busy = False
            for wire in list(self.wires):
                busy = self._deliver(wire) or busy

    def join(self) -> None:
        """Introduce every node to the first one; gossip does the rest."""
        for peer in self.nodes[1:]:
            peer.meet(self.nodes[0], self.now_ms)
            self.run(1_100)
        self.run(10_000)

    def _perform(self, peer: Peer) -> None:
        outbox = peer.outbox
        hangups, outbox.hangups = outbox.hangups, []
        for link in hangups:
            for wire in [w for w in self.wires if link in (w.near, w.far)]:
                self._close(wire)
        connects, outbox.connects = outbox.connects, []
        for entry in connects:
            self._connect(peer, entry)

    def _connect(self, caller: Peer, entry: NodeEntry) -> None:
        if entry.ip in self.swallowing:
            return
        for called in self.nodes:
            if called.ip == entry.ip and not called.dead and self.passes(caller, called):
                wire = Wire(caller, entry, called, self.now_ms)
                self.wires.append(wire)
                caller.cluster.link_up(entry, wire.near)
                return
        caller.cluster.link_failed(entry)

    def _close(self, wire: Wire) -> None:
        wire.closed = True
        self.wires.remove(wire)
        wire.caller.cluster.link_lost(wire.near)
        wire.called.cluster.link_lost(wire.far)

    def _deliver(self, wire: Wire) -> bool:
        if wire.closed or not self.passes(wire.caller, wire.called):
            return False
        ends = (
            (wire.there, wire.caller, wire.called, wire.far),
            (wire.back, wire.called, wire.caller, wire.near),
        )
        busy = False
        for pipe, sender, receiver, link in ends:
            while pipe.waiting:
                busy = True
                message = pipe.waiting.popleft()
                self.log.append((sender, receiver, message))
                receiver.receive(link, message, self.now_ms)
        return busy
