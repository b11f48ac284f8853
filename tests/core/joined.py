"""Several whole nodes that exchange messages directly, in order and without encoding them."""

from __future__ import annotations

from collections import deque
from random import Random

from disque_tx.commands.base.values import ValueReplies
from disque_tx.core.base.client import Client
from disque_tx.core.node import Node
from disque_tx.core.nodes.membership import Membership
from disque_tx.messages.bus import BusSink, JobsMessage, Message
from disque_tx.messages.nodes import MYSELF, Link, NodeEntry
from disque_tx.messages.records import IdSource
from tests.core.bench import NOW_MS, UNIX_S, add_request
from tests.core.peerbench import sent

STEP_MS = 20


class OneId(IdSource):
    """The same ID for every job: there is only one."""

    def __init__(self, job_id: bytes) -> None:
        self.job_id = job_id

    def next_id(self, node_id: bytes, ttl_s: int, retry_s: int) -> bytes:
        return self.job_id


class _Direction(BusSink):
    """One direction of the connection between two nodes."""

    def __init__(self, waiting: deque[tuple[int, int, Message]], to: int, by: int) -> None:
        super().__init__()
        self._waiting = waiting
        self._to = to
        self._by = by

    def send(self, message: Message) -> None:
        copy = sent(message) if isinstance(message, JobsMessage) else message
        copy.sender = message.sender
        self._waiting.append((self._to, self._by, copy))


class ConnectedNodes:
    """``nodes``: every node has a link to every other one. ``job_id``: the ID of any job they
    add."""

    def __init__(self, ids: list[bytes], job_id: bytes, random: Random) -> None:
        self.now_ms = NOW_MS
        self.ids = ids
        self.nodes: list[Node] = []
        self._waiting: deque[tuple[int, int, Message]] = deque()
        self._links: dict[tuple[int, int], Link] = {}
        for here, node_id in enumerate(ids):
            myself = NodeEntry(node_id, b"", 7711, MYSELF, 0)
            membership = Membership(myself, lambda: b"f" * 40)
            self.nodes.append(Node(membership, OneId(job_id), random.random))
            for there in range(len(ids)):
                if there != here:
                    self._link(membership, here, there)
            membership.refresh()
        self.begin()

    def _link(self, membership: Membership, here: int, there: int) -> None:
        entry = NodeEntry(self.ids[there], b"10.0.0.%d" % (there + 1), 7711, 0, self.now_ms)
        entry.numbers = True
        entry.newest_link = 1
        membership.add(entry)
        way = _Direction(self._waiting, there, here)
        entry.link = Link(way, entry, entry.ip, b"", self.now_ms, 1)
        back = Link(_Direction(self._waiting, there, here), None, entry.ip, b"", self.now_ms, 1)
        back.peer_id = entry.id
        self._links[(here, there)] = back

    def begin(self) -> None:
        """A turn begins on every node."""
        for node in self.nodes:
            node.begin(self.now_ms, UNIX_S * 1_000_000 + self.now_ms * 1_000)

    def settle(self) -> None:
        """Deliver all messages, including those sent in reply."""
        while self._waiting:
            here, there, message = self._waiting.popleft()
            self.nodes[here].receive(self._links[(here, there)], message)

    def step(self) -> None:
        """Advance the clock by one step."""
        self.now_ms += STEP_MS
        self.begin()
        for node in self.nodes:
            node.run_due()
        self.settle()

    def add(self, at: int, copies: int, retry_s: int) -> None:
        """ADDJOB on one node."""
        client = Client(1, ValueReplies(), b"10.0.0.9:1", self.now_ms)
        request = add_request(replicate=copies, ttl_s=3_600, retry_s=retry_s)
        self.nodes[at].add_job(client, request)
        self.settle()

    def get(self, at: int) -> None:
        """GETJOB NOHANG on one node."""
        client = Client(2, ValueReplies(), b"10.0.0.9:2", self.now_ms)
        self.nodes[at].get_jobs(client, [b"q"], 1, 0, True, False)
        self.settle()
