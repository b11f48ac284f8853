"""Whole nodes that know DEMAND and exchange messages directly; turns end as in the daemon."""

from __future__ import annotations

from collections import deque
from itertools import permutations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.base.values import Value, ValueReplies
from disque_tx.core.base.client import Client
from disque_tx.core.getting.getting import GetRequest
from disque_tx.core.node import Node
from disque_tx.core.nodes.duplicateids import START_SPAN
from disque_tx.core.nodes.membership import Membership
from disque_tx.messages.bus import BusSink, JobsMessage, Message
from disque_tx.messages.bustypes import ALL_FEATURES, DEMAND
from disque_tx.messages.demands import DemandMessage
from disque_tx.messages.nodes import MYSELF, Link, NodeEntry
from tests.core.bench import NOW_MS, UNIX_S, NumberedIds, add_request
from tests.core.peerbench import sent

STEP_MS = 20


class Direction(BusSink):
    """Messages from one node to another, in order; none while it is ``cut``."""

    def __init__(self, flow: Flow, sender: int, receiver: int) -> None:
        super().__init__()
        self.cut = False
        self._flow = flow
        self._ends = (sender, receiver)

    def send(self, message: Message) -> None:
        if not self.cut:
            copy = sent(message) if isinstance(message, JobsMessage) else message
            copy.sender = message.sender
            self._flow.waiting.append((*self._ends, copy))
            self._flow.sent.append((*self._ends, copy))


class Flow:
    """``nodes``: every one has a link to every other. ``sent``: all messages, by sender and
    receiver. ``originals``: nodes that show no features."""

    def __init__(self, count: int, originals: tuple[int, ...] = ()) -> None:
        self.now_ms = NOW_MS
        self.ids = [b"%x" % (10 + number) * 40 for number in range(count)]
        self.nodes: list[Node] = []
        self.waiting: deque[tuple[int, int, Message]] = deque()
        self.sent: list[tuple[int, int, Message]] = []
        self.links: dict[tuple[int, int], Link] = {}
        self._originals = originals
        self._stopped: set[int] = set()
        self._epochs = 0
        #: From which number on each node numbers its links.
        self._first_epochs: dict[int, int] = {}
        for node_id in self.ids:
            self.nodes.append(self._new(node_id))
        pairs = list(permutations(range(count), 2))
        for here, there in pairs:
            self._introduce(here, there)
        self.begin()
        for here, there in pairs:
            self.connect(here, there)
        self.tick()

    def _new(self, node_id: bytes) -> Node:
        membership = Membership(NodeEntry(node_id, b"", 7711, MYSELF, 0), lambda: b"f" * 40)
        if self.ids.index(node_id) in self._originals:
            membership.features = 0
        return Node(membership, NumberedIds(), lambda: 0.5)

    def join(self) -> None:
        """A new node comes, which all others that run know, and which knows them."""
        new = len(self.nodes)
        self.ids.append(b"%x" % (10 + new) * 40)
        self.nodes.append(self._new(self.ids[new]))
        others = [at for at in range(new) if at not in self._stopped]
        for other in others:
            self._introduce(new, other)
            self._introduce(other, new)
        self.begin()
        for other in others:
            self.connect(new, other)
            self.connect(other, new)

    def restart(self, at: int) -> None:
        """A node is started again, with its ID and without jobs; all connections are new."""
        others = [other for other in range(len(self.nodes)) if other not in (at, *self._stopped)]
        for other in others:
            self.disconnect(other, at)
            self.disconnect(at, other)
        self.nodes[at] = self._new(self.ids[at])
        self._first_epochs[at] = self._first_epochs.get(at, 0) + 2 * START_SPAN
        for other in others:
            self._introduce(at, other)
        self.begin()
        for other in others:
            self.connect(other, at)
            self.connect(at, other)

    def _introduce(self, here: int, there: int) -> None:
        entry = NodeEntry(self.ids[there], b"10.0.0.%d" % (there + 1), 7711, 0, self.now_ms)
        entry.numbers = there not in self._originals
        self.nodes[here].membership.add(entry)

    def entry(self, here: int, there: int) -> NodeEntry:
        """What one node knows of another."""
        return self.nodes[here].membership.nodes[self.ids[there]]

    def connect(self, here: int, there: int) -> None:
        """One node makes a link to another, which has shown what it can do."""
        self._epochs += 1
        epoch = self._first_epochs.get(here, 0) + self._epochs
        entry = self.entry(here, there)
        way = Direction(self, here, there)
        entry.link = Link(way, entry, entry.ip, b"", self.now_ms, epoch)
        entry.link.features = 0 if there in self._originals else ALL_FEATURES
        far = Link(Direction(self, there, here), None, entry.ip, b"", self.now_ms, 1)
        far.peer_id = self.ids[here]
        far.number = self.entry(there, here).newest_link = epoch
        self.links[(here, there)] = far
        self.nodes[here].membership.refresh()

    def disconnect(self, here: int, there: int) -> None:
        """The link that one node made to another breaks, and what is under way on it is lost."""
        self.waiting = deque(m for m in self.waiting if m[:2] != (here, there))
        link = self.entry(here, there).link
        assert link is not None
        self.nodes[here].cluster.link_lost(link)
        self.nodes[there].cluster.link_lost(self.links[(here, there)])

    def stop(self, at: int) -> None:
        """Nothing happens at a node any more."""
        self._stopped.add(at)

    def running(self) -> list[Node]:
        """The nodes that have not stopped."""
        return [node for at, node in enumerate(self.nodes) if at not in self._stopped]

    def begin(self) -> None:
        """A turn begins on every node."""
        for node in self.running():
            node.begin(self.now_ms, UNIX_S * 1_000_000 + self.now_ms * 1_000)

    def tick(self) -> None:
        """Every node looks at its links."""
        for node in self.running():
            for watcher in node.cluster.watchers:
                watcher.links_changed()
        self.run(2 * STEP_MS)

    def settle(self) -> None:
        """End the turns, and deliver messages until none are left."""
        while True:
            for node in self.running():
                node.serve()
                node.finish()
            if not self.waiting:
                return
            sender, receiver, message = self.waiting.popleft()
            self.nodes[receiver].receive(self.links[(sender, receiver)], message)

    def run(self, ms: int) -> None:
        """Let time pass."""
        for _ in range(ms // STEP_MS):
            self.now_ms += STEP_MS
            self.begin()
            for node in self.running():
                node.run_due()
                node.federation.run_due()
            self.settle()


class FlowTestCase(SynchronousTestCase):
    """Jobs that are added at one node and wanted at another."""

    nodes = 3
    originals: tuple[int, ...] = ()

    def setUp(self) -> None:
        self.flow = Flow(self.nodes, self.originals)

    def client(self) -> Client:
        """A client that just sent a request."""
        return Client(1, ValueReplies(), b"10.0.0.9:1", self.flow.now_ms)

    def wait(self, at: int, *queues: bytes) -> Client:
        """GETJOB of a new client at one node."""
        client = self.client()
        self.flow.nodes[at].get_jobs(client, list(queues) or [b"q"], 1, 0, False, False)
        self.flow.settle()
        return client

    def wait_matching(self, at: int, patterns: list[bytes], excepts: list[bytes]) -> Client:
        """GETJOB MATCH of a new client at one node."""
        client = self.client()
        self.flow.nodes[at].get_matching(client, GetRequest([], patterns, excepts))
        self.flow.settle()
        return client

    def leave(self, at: int, client: Client) -> None:
        """A client disconnects."""
        self.flow.nodes[at].client_gone(client)
        self.flow.settle()

    body = b"body"

    def add(self, at: int, queue: bytes = b"q", count: int = 1, **options: int) -> None:
        """ADDJOBs of one turn at one node."""
        for _ in range(count):
            settings: dict[str, int] = {"replicate": 1, "ttl_s": 3600, **options}
            request = add_request(queue, self.body, **settings)
            self.flow.nodes[at].add_job(self.client(), request)
        self.flow.settle()

    def take(self, at: int, count: int, queue: bytes = b"q") -> int:
        """GETJOB COUNT NOHANG at one node; how many jobs there were."""
        client = self.client()
        self.flow.nodes[at].get_jobs(client, [queue], count, 0, True, False)
        self.flow.settle()
        (jobs,) = self.replies(client)
        return 0 if jobs is None else len(jobs)  # type: ignore[arg-type]

    def replies(self, client: Client) -> list[Value]:
        """What a client received."""
        assert isinstance(client.replies, ValueReplies)
        return client.replies.values

    def served(self, *clients: Client) -> list[bool]:
        """Which of the clients received a job."""
        return [bool(self.replies(client)) for client in clients]

    def length(self, at: int, queue: bytes = b"q") -> int:
        """How many jobs are queued at a node."""
        found = self.flow.nodes[at].queues.get(queue)
        return 0 if found is None else int(found.jobs.size)

    def told(self, sender: int, receiver: int) -> list[tuple[bytes, int, int]]:
        """What one node has told another since the last call: words, credit, clients that wait."""
        found = []
        for message_sender, message_receiver, message in self.flow.sent:
            if (message_sender, message_receiver) == (sender, receiver):
                if isinstance(message, DemandMessage):
                    found += [
                        (b" ".join(one.words), int(one.credit), int(one.waiting))
                        for one in message.entries
                    ]
        self.flow.sent = [
            m for m in self.flow.sent if m[:2] != (sender, receiver) or m[2].type != DEMAND
        ]
        return found

    def wanted(self, at: int) -> dict[bytes, dict[bytes, int]]:
        """Which jobs other nodes can use, as one node knows it: queue, node, number."""
        return {
            name: {node_id: int(one.credit) for node_id, one in peers.credits.items()}
            for name, peers in self.flow.nodes[at].queues.wanted.items()
        }
