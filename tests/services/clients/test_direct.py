"""Connections of protocols that work within turns, and the node as plugins see it."""

from __future__ import annotations

from typing import Any

from twisted.internet.address import IPv4Address, UNIXAddress
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from zope.interface.verify import verifyObject

from disque_tx.commands.direct import DirectNode, DirectProtocol
from disque_tx.errors import CommandError
from disque_tx.plugins.interfaces import IHost
from disque_tx.plugins.values import JobEvent, Role
from tests.core.bench import add_request
from tests.services.rootbench import RootCase


class Shout(DirectProtocol):
    """Answers each line in capitals. ``ended``: the connection is gone."""

    def __init__(self, node: DirectNode) -> None:
        super().__init__()
        self.node = node
        self.waiting = b""
        self.ended = 0
        self.unread_max = 10

    def feed(self, data: bytes) -> None:
        self.waiting += data

    def step(self) -> bool:
        line, end, rest = self.waiting.partition(b"\n")
        if not end:
            return False
        self.waiting = rest
        self.write(b"+" + line.upper() + b"\r\n")
        return True

    def unread(self) -> int:
        return len(self.waiting)

    def closed(self) -> None:
        self.ended += 1


class DirectCase(RootCase):
    """A started node with such a listener."""

    def setUp(self) -> None:
        super().setUp()
        self.root = self.started()
        self.host = self.root.plugin_host
        self.made: list[Shout] = []
        self.factory = self.host.direct_clients("shout", self.make_shout, b"NO\r\n")

    def make_shout(self, node: DirectNode) -> Shout:
        """The protocol of a connection."""
        self.made.append(Shout(node))
        return self.made[-1]

    def connect(self, ip: str = "127.0.0.1") -> tuple[Any, StringTransport]:
        """A client at this address."""
        peer = IPv4Address("TCP", ip, 5001)
        transport = StringTransport(peerAddress=peer)
        connection = self.factory.buildProtocol(peer)
        connection.makeConnection(transport)
        return connection, transport

    def stats(self) -> tuple[int, ...]:
        """Connected now and ever, bytes received and sent."""
        stats = self.root.server.stats.protocol("shout")
        counts = (stats.connected, stats.connections, stats.input_bytes, stats.output_bytes)
        return tuple(map(int, counts))


class DirectTests(DirectCase):
    """One listener."""

    def test_served(self) -> None:
        """A client is served, listed by the name of its protocol, and counted; when it is gone, its
        protocol is told once, and it is neither listed nor counted as connected."""
        connection, transport = self.connect()
        connection.dataReceived(b"one\ntw")
        connection.dataReceived(b"o\n")
        self.assertEqual(b"+ONE\r\n+TWO\r\n", transport.value())
        listed = self.ask(self.dial(), "CLIENT LIST")
        self.assertIn(b"addr=127.0.0.1:5001", listed)
        self.assertIn(b"name=shout", listed)
        self.assertEqual((1, 1, 8, 12), self.stats())
        connection.connectionLost(Failure(ConnectionDone()))
        self.assertEqual((1, (0, 1, 8, 12)), (self.made[0].ended, self.stats()))
        self.assertNotIn(b"name=shout", self.ask(self.dial(), "CLIENT LIST"))
        connection.connectionLost(Failure(ConnectionDone()))
        self.assertEqual((1, (0, 1, 8, 12)), (self.made[0].ended, self.stats()))

    def test_password(self) -> None:
        """Once there is a password, only clients of this host are served; others get the words of
        the protocol for that, are counted, and the operator learns why."""
        self.settings.requirepass = b"secret"
        _, local = self.connect()
        _, other = self.connect("192.0.2.1")
        self.assertEqual((b"", False), (local.value(), local.disconnecting))
        self.assertEqual((b"NO\r\n", True), (other.value(), other.disconnecting))
        self.assertEqual(1, len(self.made))
        self.assertEqual((1, 1), self.stats()[:2])
        self.assertEqual(1, self.root.server.stats.rejected_connections)
        self.assertIn(
            "# Refused 192.0.2.1:5001: with 'requirepass', clients of shout, which knows no"
            " password, must come from this host\n",
            self.logged(),
        )

    def test_too_many(self) -> None:
        """A client above the limit is refused in the words of the protocol."""
        self.settings.maxclients = 1
        self.connect()
        connection, transport = self.connect()
        self.assertEqual((b"NO\r\n", True), (transport.value(), transport.disconnecting))
        connection.dataReceived(b"x\n")
        connection.connectionLost(Failure(ConnectionDone()))
        self.assertEqual((1, (1, 1, 0, 0)), (len(self.made), self.stats()))

    def test_too_much(self) -> None:
        """A client that sends more than may wait is disconnected, one byte less is kept."""
        connection, transport = self.connect()
        connection.dataReceived(b"x" * 10)
        self.assertFalse(transport.disconnected)
        connection.dataReceived(b"x")
        self.assertTrue(transport.disconnected)
        self.assertIn("sent too much while it waited: the connection is closed", self.logged())


class HostTests(DirectCase):
    """What a plugin may ask of the node."""

    def test_roles(self) -> None:
        """A password has its role wherever it comes from; who guesses keeps out its own network."""
        verifyObject(IHost, self.host)
        self.settings.requirepass, self.settings.readonly_password = b"secret", b"look"
        here, there = IPv4Address("TCP", "192.0.2.1", 1), UNIXAddress(b"/x")
        for password, role in ((b"secret", Role.FULL), (b"look", Role.READER), (b"x", Role.NONE)):
            self.assertIs(role, self.host.authenticate(password, here))
        for _ in range(9):
            self.host.authenticate(b"guess", here)
        self.assertRaises(CommandError, self.host.authenticate, b"secret", here)
        self.assertIs(Role.FULL, self.host.authenticate(b"secret", there))

    def test_in_turn(self) -> None:
        """What is done within a turn serves clients that wait at its end."""
        client = self.dial()
        self.assertEqual(b"", self.ask(client, "GETJOB FROM q"))
        found: list[bool] = []
        node = self.root.runtime.node

        def work() -> None:
            found.append(self.root.runtime.turns.active)
            node.add_job(self.root.server.clients[1], add_request(b"q", b"body"))

        self.host.in_turn(work)
        self.assertEqual([True], found)
        self.assertIn(b"body", self.received(client))

    def test_event_files(self) -> None:
        """The finished files of the event log are those of all processes, and none without a
        log."""
        self.assertIsNone(self.host.event_files())
        self.settings.eventlog = True
        self.settings.eventlog_dir = str(self.folder / "events")
        self.assertIsNotNone(self.host.event_files())
        self.assertEqual([self.settings.eventlog_dir], self.host._event_folders())
        self.host.processes = _Processes()  # type: ignore[assignment]
        self.assertEqual(["one", "two"], self.host._event_folders())

    def test_guards(self) -> None:
        """Each plugin has one guard, whatever it is used for, and its own view of the reactor."""
        host, guard = self.host.guarded("a")
        again, same = self.host.guarded("a")
        _, other = self.host.guarded("b")
        self.assertEqual((True, False), (guard is same, guard is other))
        self.assertEqual(("a", "b"), (guard.name, other.name))
        self.assertIsNot(host.reactor, self.host.reactor)
        self.assertIs(host.node_service, again.node_service)

    def test_watched(self) -> None:
        """A watcher gets the kinds and queues that it asked for, until it is ended."""
        seen: list[JobEvent] = []
        end = self.host.watch(seen.append, (), lambda queue: queue == b"q")
        self.ask(self.dial(), "ADDJOB q body 0", "ADDJOB r body 0")
        self.assertEqual({b"q"}, {event.queue for event in seen})
        count = len(seen)
        self.assertGreater(count, 0)
        end()
        self.ask(self.dial(), "ADDJOB q body 0")
        self.assertEqual(count, len(seen))


class _Processes:
    """Two processes."""

    def event_folders(self) -> list[str]:
        """Their event logs."""
        return ["one", "two"]
