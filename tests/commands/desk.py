"""A node with its commands and without sockets, for tests of single handlers."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.base.context import Handler, Server
from disque_tx.commands.base.values import Error, Status, Value, ValueReplies
from disque_tx.commands.server.memory import MemoryControl
from disque_tx.commands.table import standard_registry
from disque_tx.core.base.client import Client
from disque_tx.core.node import Node
from disque_tx.core.nodes.membership import Membership
from disque_tx.errors import CommandError
from disque_tx.messages.nodes import MYSELF, NodeEntry
from disque_tx.messages.records import IdSource

ME = b"a" * 40
NOW_MS = 50_000
UNIX_S = 1_795_176_084
OK = Status(b"OK")


class NumberedIds(IdSource):
    """Job IDs that count upwards."""

    def __init__(self) -> None:
        self.made = 0

    def next_id(self, node_id: bytes, ttl_s: int, retry_s: int) -> bytes:
        self.made += 1
        return b"D-%s-%024d-05a1" % (node_id[:8], self.made)


class DeskCase(SynchronousTestCase):
    """Calls handlers the way requests reach them, and reads the replies as values."""

    def setUp(self) -> None:
        self.node_ids = [b"%040x" % number for number in range(9, 0, -1)]
        self.membership = Membership(NodeEntry(ME, b"", 7711, MYSELF, 0), self.node_ids.pop)
        self.node = Node(self.membership, NumberedIds(), lambda: 0.5)
        self.node.begin(NOW_MS, UNIX_S * 1_000_000 + 183_936)
        self.control = MemoryControl({b"requirepass": b"", b"maxmemory": b"1073741824"})
        self.server = Server(self.node, self.control, standard_registry())
        self.client = self.connect(b"127.0.0.1:5001")

    def connect(self, addr: bytes) -> Client:
        """Another client, connected now."""
        client = Client(len(self.server.clients) + 1, ValueReplies(), addr, self.node.now_ms)
        self.server.clients[client.id] = client
        return client

    def call(self, handler: Handler, *argv: bytes) -> Value:
        """The single reply to a request of ``self.client``."""
        values = self.answers(handler, *argv)
        self.assertEqual(1, len(values))
        return values[0]

    def answers(self, handler: Handler, *argv: bytes) -> list[Value]:
        """All replies to a request of ``self.client``; errors are replies, too."""
        replies = self.client.replies
        assert isinstance(replies, ValueReplies)
        replies.clear()
        try:
            handler(self.server, self.client, list(argv))
        except CommandError as error:
            self.client.replies.error(error.reply())
        replies = self.client.replies  # HELLO replaces them
        assert isinstance(replies, ValueReplies)
        return replies.values

    def assert_refused(self, line: bytes, handler: Handler, *argv: bytes) -> None:
        """The reply to the request is exactly this error."""
        self.assertEqual(Error(line), self.call(handler, *argv))
