"""A node with a bus on real sockets; the test controls time, log and reactor."""

from __future__ import annotations

import socket
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred

from disque_tx.messages.bus import Gossip, Message
from disque_tx.messages.nodes import NodeEntry
from disque_tx.services.bus.service import Bus
from disque_tx.wire.bus.parser import PEER_BYTES_MAX, BusParser, encode
from tests.acceptance.daemon import free_port
from tests.services.nodebench import NodeCase, drive

OTHER = b"2" * 40


def gossip_message(kind: int, sender: bytes = OTHER, port: int = 7712) -> Gossip:
    """A PING, PONG or MEET of another node, ready to be encoded."""
    message = Gossip(kind, [])
    message.sender = sender
    message.port = port
    return message


class BusCase(NodeCase):
    """Tests on a node with a listening bus; ``self.call`` connects to it, ``self.called`` accepts a
    connection from it."""

    def setUp(self) -> None:
        super().setUp()
        self.settings.bind = ["127.0.0.1"]
        self.settings.port = free_port()
        self.settings.cluster_bus_port = free_port()
        self.looked_up: list[bytes] = []
        self.bus = self.make_bus()
        self.runtime.turns.links = self.bus.links
        self.addCleanup(self.stop)
        self.addCleanup(lambda: drive(self.reactor))

    def make_bus(self) -> Bus:
        """A bus that is not listening yet."""
        return Bus(
            self.runtime, self.settings, self.platform(self.look_up), self.hub, first_epoch=1_000
        )

    def look_up(self, work: Any, *args: Any) -> Deferred[Any]:
        """Run at once what would run in a thread."""
        self.looked_up.append(args[0])
        return maybeDeferred(work, *args)

    def start(self) -> None:
        """Listen and serve."""
        self.bus.open()
        self.bus.startService()

    def stop(self) -> None:
        """Close everything that is still open."""
        if self.bus.running:
            self.successResultOf(self.bus.stopService())
        self.bus.close()

    def settle(self, ms: int = 0) -> None:
        """Process all events, ``ms`` later."""
        self.reactor.advance(ms / 1000)
        drive(self.reactor)

    # -- other nodes -------------------------------------------------------------------------

    def call(self) -> socket.socket:
        """A connection that another node opens to this one."""
        other = socket.create_connection(("127.0.0.1", self.settings.cluster_bus_port), 5)
        self.addCleanup(other.close)
        self.settle()
        return other

    def entry(self, bus_port: int, node_id: bytes = OTHER) -> NodeEntry:
        """An entry for another node in the node table."""
        entry = NodeEntry(node_id, b"127.0.0.1", 7712, 0, 0)
        entry.bus_port = bus_port
        self.node.membership.add(entry)
        return entry

    def called(self) -> tuple[NodeEntry, socket.socket]:
        """Another node that this one knows and has connected to, and its end of the connection."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            entry = self.entry(server.getsockname()[1])
            self.tick()
            other, _name = server.accept()
        self.addCleanup(other.close)
        other.settimeout(5)
        self.settle()
        return entry, other

    def tick(self) -> None:
        """Run the cluster's periodic work."""
        with self.runtime.turn() as node:
            node.cluster.tick()
        self.settle()

    def send(self, other: socket.socket, *messages: Message) -> None:
        """Another node sends messages."""
        other.sendall(b"".join(encode(message) for message in messages))
        self.settle()

    def received_types(self, other: socket.socket) -> list[int]:
        """Types of the messages that reached another node; -1 is the end of the connection."""
        self.settle()
        other.setblocking(False)
        parser = BusParser(PEER_BYTES_MAX)
        types: list[int] = []
        try:
            while data := other.recv(1 << 20):
                parser.feed(data)
                while (message := parser.next()) is not None:
                    types.append(int(message.type))
        except BlockingIOError:
            return types
        except ConnectionResetError:
            pass
        return [*types, -1]

    def peek(self, other: socket.socket) -> bytes:
        """The bytes that reached another node and that it has not read."""
        other.setblocking(False)
        try:
            return other.recv(1 << 20, socket.MSG_PEEK)
        except BlockingIOError:
            return b""
