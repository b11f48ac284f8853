"""Nodes that look after keys together: they exchange messages as bytes, in order, and each can be
taken away and come back."""

from __future__ import annotations

from collections import deque
from random import Random

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.base.values import Error, Status, Value, ValueReplies
from disque_tx.core.base.client import Client
from disque_tx.core.jobs.addrequest import Unique
from disque_tx.core.node import Node
from disque_tx.core.nodes.membership import Membership
from disque_tx.messages.bus import BusSink, Message
from disque_tx.messages.bustypes import CAN_KEYS, CAN_SETTLE
from disque_tx.messages.nodes import FAIL, MYSELF, Link, NodeEntry
from disque_tx.messages.records import IdSource
from disque_tx.wire.bus.parser import BusParser, encode
from tests.core.bench import NOW_MS, UNIX_S, add_request

STEP_MS = 20
A, B, C, D = (name * 40 for name in (b"a", b"b", b"c", b"d"))


class Ids(IdSource):
    """Numbers, with the beginning of the node's ID as the protocol wants it."""

    def __init__(self) -> None:
        self.last = 0

    def next_id(self, node_id: bytes, ttl_s: int, retry_s: int) -> bytes:
        self.last += 1
        return b"D-%s-%024d-%04x" % (node_id[:8], self.last, min(ttl_s // 60, 65_535) | 1)


class Way(BusSink):
    """One direction of a link."""

    def __init__(self, cluster: KeyCluster, by: bytes, to: bytes) -> None:
        super().__init__()
        self._cluster = cluster
        self.by = by
        self.to = to

    def send(self, message: Message) -> None:
        self._cluster.waiting.append((self, encode(message)))


class KeyCluster:
    """``up``: the nodes that run, by ID. ``cut``: pairs of nodes between which nothing arrives.
    ``lost``: types of messages that get lost; ``silent``: nodes from which all do, ``deaf``: to
    which."""

    def __init__(self, *ids: bytes) -> None:
        self.now_ms: int = NOW_MS
        self.random = Random(1)
        self.ids = Ids()
        self.waiting: deque[tuple[Way, bytes]] = deque()
        self.up: dict[bytes, Node] = {}
        self.members = ids
        self.lost: set[int] = set()
        self.silent: set[bytes] = set()
        self.deaf: set[bytes] = set()
        self.log: list[int] = []
        for node_id in ids:
            self.start(node_id)
        self.run(100)

    def start(self, node_id: bytes, linked: bool = True) -> Node:
        """A node without any jobs and keys starts, and makes its links."""
        membership = Membership(NodeEntry(node_id, b"", 7711, MYSELF, 0), lambda: b"f" * 40)
        node = Node(membership, self.ids, self.random.random)
        for other in self.members:
            if other != node_id:
                entry = NodeEntry(other, b"10.0.0.%d" % other[0], 7711, 0, self.now_ms)
                entry.numbers = True
                membership.add(entry)
        self.up[node_id] = node
        for other in self.up:
            if other != node_id and linked:
                self.link(node_id, other)
                self.link(other, node_id)
        self.begin()
        return node

    def link(self, by: bytes, to: bytes) -> None:
        """The link of one node to another is up."""
        entry = self.up[by].membership.nodes[to]
        entry.flags &= ~FAIL
        entry.link = Link(Way(self, by, to), entry, entry.ip, b"", self.now_ms, 1)
        entry.link.features = CAN_KEYS | CAN_SETTLE
        self.up[by].membership.refresh()
        self.up[to].membership.nodes[by].newest_link = 1

    def unlink(self, by: bytes, to: bytes) -> None:
        """It is down, and the other node counts as failed."""
        entry = self.up[by].membership.nodes[to]
        entry.link = None
        entry.flags |= FAIL
        self.up[by].membership.refresh()

    def kill(self, node_id: bytes) -> None:
        """The node is gone, with everything on its way from and to it."""
        del self.up[node_id]
        self.waiting = deque(one for one in self.waiting if node_id not in (one[0].by, one[0].to))
        for other in self.up:
            self.unlink(other, node_id)

    def part(self, *side: bytes) -> None:
        """These nodes and the others cannot reach each other any more."""
        for one in side:
            for other in self.up:
                if other not in side:
                    self.unlink(one, other)
                    self.unlink(other, one)

    def heal(self) -> None:
        """All nodes can reach each other."""
        for one in self.up:
            for other in self.up:
                if other != one and self.up[one].membership.nodes[other].link is None:
                    self.link(one, other)

    def begin(self) -> None:
        """A turn begins on every node."""
        for node in self.up.values():
            node.begin(self.now_ms, UNIX_S * 1_000_000 + self.now_ms * 1_000)

    def finish(self) -> bool:
        """The turn ends on every node; whether there are messages on their way."""
        for node in self.up.values():
            node.keys.finish()
        return bool(self.waiting)

    def settle(self) -> None:
        """End the turns of all nodes, and deliver all messages, including those sent in reply."""
        while self.finish():
            way, data = self.waiting.popleft()
            node = self.up.get(way.to)
            parser = BusParser(1 << 20)
            parser.feed(data)
            message = parser.next()
            assert message is not None
            self.log.append(int(message.type))
            if node is None or message.type in self.lost:
                continue
            if way.by in self.silent or way.to in self.deaf:
                continue
            entry = node.membership.nodes[way.by]
            link = Link(BusSink(), None, entry.ip, b"", self.now_ms, 1)
            link.peer_id = way.by
            node.receive(link, message)

    def run(self, ms: int) -> None:
        """Let time pass."""
        for _ in range(ms // STEP_MS):
            self.now_ms += STEP_MS
            self.begin()
            for node in self.up.values():
                node.keys.view.refresh()
                node.state.slices.run(self.now_ms)
                node.run_due()
                node.federation.run_due()
            self.settle()


class KeyCase(SynchronousTestCase):
    """Tests on a cluster of ``members``."""

    members: tuple[bytes, ...] = (A, B, C)

    def setUp(self) -> None:
        self.cluster = KeyCluster(*self.members)

    def begin_add(self, at: bytes, key: bytes = b"k", for_s: int = 0, **options: int) -> Client:
        """ADDJOB UNIQUE WITHNEW of a new client."""
        client = Client(1, ValueReplies(), b"10.0.0.9:1", self.cluster.now_ms)
        request = add_request(b"q", b"body", **{"ttl_s": 3_600, **options})
        request.unique = Unique(key, for_s, True)
        node = self.cluster.up[at]
        node.add_job(client, request)
        node.serve()
        return client

    def begin_get(self, at: bytes) -> Client:
        """GETJOB of a new client."""
        client = Client(2, ValueReplies(), b"10.0.0.9:2", self.cluster.now_ms)
        self.cluster.up[at].get_jobs(client, [b"q"], 1, 0, False, False)
        self.cluster.settle()
        return client

    def reply(self, client: Client) -> Value:
        """The one reply that a client has."""
        replies = client.replies
        assert isinstance(replies, ValueReplies)
        (value,) = replies.values
        return value.text if isinstance(value, Status) else value

    def error(self, client: Client) -> bytes:
        """The one error that a client has."""
        value = self.reply(client)
        assert isinstance(value, Error)
        return value.line

    def add(self, at: bytes, key: bytes = b"k", **options: int) -> tuple[bytes, int]:
        """The answer of ADDJOB: ID, and whether it is new."""
        client = self.begin_add(at, key, **options)
        self.cluster.settle()
        for _ in range(300):
            if client.replies.values:  # type: ignore[attr-defined]
                break
            self.cluster.run(STEP_MS)
        value = self.reply(client)
        assert isinstance(value, list), value
        job_id, fresh = value
        assert isinstance(job_id, bytes) and isinstance(fresh, int)
        return job_id, fresh

    def keepers(self, key: bytes = b"k") -> list[bytes]:
        """The nodes that look after the key while all can be reached."""
        return next(iter(self.cluster.up.values())).keys.view.keepers(key)
