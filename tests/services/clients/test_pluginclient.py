"""Clients that come by the protocols of plugins."""

from __future__ import annotations

from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.defer import CancelledError
from twisted.internet.testing import StringTransport
from zope.interface.verify import verifyObject

from disque_tx.commands.base.values import Status
from disque_tx.errors import CommandError
from disque_tx.plugins.interfaces import IConnection
from disque_tx.plugins.values import Role
from disque_tx.services.clients.embedded import NodeService
from disque_tx.services.clients.guard import Guard
from disque_tx.services.clients.pluginclient import CALLS_MAX, PluginClient, network_of_peer
from disque_tx.services.clients.roles import Passwords
from disque_tx.services.machine.guesses import Guesses
from tests.services.nodebench import FIRST_ID, BenchClock, NodeCase


class PluginClientCase(NodeCase):
    """Tests on clients of a plugin."""

    def setUp(self) -> None:
        super().setUp()
        self.passwords = Passwords(self.settings, Guesses(lambda: 0))
        self.service = NodeService(self.runtime)
        self.guard = Guard("gopher", self.log, BenchClock(self.reactor).steady_ms)

    def visit(self, host: str = "127.0.0.1") -> tuple[PluginClient, StringTransport]:
        """An admitted client, and its end of the connection."""
        transport = StringTransport(peerAddress=IPv4Address("TCP", host, 5001))
        client = PluginClient(
            self.service, self.admission, self.passwords, self.guard, transport, "gopher"
        )
        return client, transport


class PluginClientTests(PluginClientCase):
    """A plugin's client has the rights and duties of every other one."""

    def test_listed(self) -> None:
        """Operators see it in CLIENT LIST, by the name of its protocol at first."""
        client, _transport = self.visit()
        verifyObject(IConnection, client)
        self.assertIn(b"addr=127.0.0.1:5001 fd=-1 name=gopher ", self.turn(b"CLIENT LIST"))
        client.rename(b"console")
        self.assertRaises(CommandError, client.rename, b"two words")
        self.successResultOf(client.call(Role.FULL, b"QLEN", b"q"))
        line = self.turn(b"CLIENT LIST")
        self.assertIn(b"name=console ", line)
        self.assertIn(b"cmd=qlen", line)

    def test_descriptor(self) -> None:
        """A client whose connection has a descriptor of its own is listed with it."""
        transport = StringTransport(peerAddress=IPv4Address("TCP", "127.0.0.1", 5001))
        transport.fd = 9  # type: ignore[attr-defined]
        PluginClient(self.service, self.admission, self.passwords, self.guard, transport, "gopher")
        self.assertIn(b" fd=9 ", self.turn(b"CLIENT LIST"))

    def test_killed(self) -> None:
        """CLIENT KILL closes its connection."""
        _client, transport = self.visit()
        self.assertEqual(b":1\r\n", self.turn(b"CLIENT KILL ID 1"))
        self.assertTrue(transport.disconnected)

    def test_counted(self) -> None:
        """``maxclients`` and protected mode hold for it."""
        with self.assertRaisesRegex(CommandError, "DENIED"):
            self.visit("192.0.2.1")
        self.settings.maxclients = 1
        client, _transport = self.visit()
        with self.assertRaisesRegex(CommandError, "max number of clients"):
            self.visit()
        client.closed()
        self.visit()

    def test_gone(self) -> None:
        """A client that goes away while it waits takes no job with it."""
        client, _transport = self.visit()
        call = client.call(Role.FULL, b"GETJOB", b"FROM", b"q")
        client.closed()
        client.closed()
        self.failureResultOf(call, CancelledError)
        self.assertEqual(({}, {}), (self.server.clients, self.runtime.calls))
        self.assertEqual(b"+%s\r\n:1\r\n" % FIRST_ID, self.turn(b"ADDJOB q b 0", b"QLEN q"))

    def test_roles(self) -> None:
        """What the role does not allow is refused before it runs."""
        client, _transport = self.visit()
        refused = self.failureResultOf(client.call(Role.READER, b"ADDJOB", b"q", b"b", b"0"))
        self.assertEqual("NOPERM", refused.value.code)
        added = self.successResultOf(client.call(Role.FULL, b"ADDJOB", b"q", b"b", b"0"))
        self.assertEqual(Status(FIRST_ID), added)
        self.assertIs(Role.FULL, client.authenticate(None))

    def test_networks(self) -> None:
        """Who guesses passwords keeps out its own network, not others, and clients of Unix sockets
        are one network."""
        for peer, network in (
            (IPv4Address("TCP", "192.0.2.7", 1), "192.0.2.7/32"),
            (IPv6Address("TCP", "2001:db8::7", 1), "2001:db8::/64"),
            (IPv4Address("TCP", "127.0.0.5", 1), "loopback"),
            (UNIXAddress(b"/x"), "unix"),
        ):
            self.assertEqual(network, network_of_peer(peer))

    def test_monitored(self) -> None:
        """MONITOR shows where its requests come from."""
        watching, transport = self.connect()
        watching.dataReceived(b"MONITOR\r\n")
        client, _ = self.visit()
        client.call(Role.FULL, b"QLEN", b"q")
        self.assertIn(b'[127.0.0.1:5001] "QLEN" "q"', transport.value())

    def test_idle(self) -> None:
        """``timeout`` and the statistics of bytes see its traffic."""
        client, _transport = self.visit()
        self.reactor.advance(10)
        with self.runtime.turn():
            pass
        client.received(100)
        client.sent(7)
        stats = self.server.stats
        self.assertEqual((100, 7), (stats.net_input_bytes, stats.net_output_bytes))
        self.assertEqual(self.node.now_ms, client.client.seen_ms)
        self.assertEqual(0, self.runtime.output_bytes(client.client))

    def test_counted_by_protocol(self) -> None:
        """INFO shows what the clients of each protocol did, and CONFIG RESETSTAT begins anew."""
        client, _transport = self.visit()
        client.received(100)
        client.sent(7)
        client.call(Role.FULL, b"PING")
        for words in ((b"NONSENSE",), (b"QLEN",)):
            self.failureResultOf(client.call(Role.FULL, *words))
        self.failureResultOf(client.call(Role.NONE, b"PING"))
        text = self.turn(b"PING", b"NONSENSE", b"INFO protocols").decode()
        gopher = "connected=1,connections=1,commands=1,errors=3,input_bytes=100,output_bytes=7"
        self.assertIn(f"protocol_gopher:{gopher}\r\n", text)
        # INFO itself is not counted before it was executed.
        self.assertIn("protocol_resp:connected=1,connections=1,commands=1,errors=1,input_", text)
        text = self.turn(b"CONFIG RESETSTAT", b"INFO protocols").decode()
        self.assertIn("protocol_gopher:connected=1,connections=0,commands=0,errors=0,input", text)
        client.closed()
        self.assertIn("protocol_gopher:connected=0,", self.turn(b"INFO protocols").decode())

    def test_slow(self) -> None:
        """The slow log shows whose command it was."""
        self.server.slowlog.slower_than_us = 0
        client, _transport = self.visit()
        client.rename(b"console")
        client.call(Role.FULL, b"QLEN", b"q")
        log = self.successResultOf(client.call(Role.FULL, b"SLOWLOG", b"GET", b"1"))
        self.assertEqual([[b"QLEN", b"q"], b"127.0.0.1:5001", b"console"], log[0][3:])
        self.turn(b"PING")
        log = self.successResultOf(client.call(Role.FULL, b"SLOWLOG", b"GET", b"1"))
        self.assertEqual([[b"PING"]], log[0][3:])

    def test_secrets(self) -> None:
        """Who may only read is not shown the password that allows more."""
        self.control.settings[b"requirepass"] = b"secret"  # type: ignore[attr-defined]
        client, _transport = self.visit()
        words = (b"CONFIG", b"GET", b"requirepass")
        for role, shown in ((Role.READER, b"(redacted)"), (Role.FULL, b"secret")):
            found = self.successResultOf(client.call(role, *words))
            self.assertEqual({b"requirepass": shown}, found)


class PauseTests(PluginClientCase):
    """CLIENT PAUSE holds the clients of plugins, too."""

    def pause(self, duration_ms: int) -> None:
        """Pause all clients."""
        self.turn(b"CLIENT PAUSE %d" % duration_ms)

    def resume(self) -> None:
        """The pause is over."""
        self.server.paused_until_ms = 0
        with self.runtime.turn():
            self.runtime.resume_all()

    def test_held(self) -> None:
        """Calls wait until the pause is over, and are executed in order then."""
        client, _transport = self.visit()
        self.pause(60_000)
        added = client.call(Role.FULL, b"ADDJOB", b"q", b"b", b"0")
        length = client.call(Role.FULL, b"QLEN", b"q")
        self.assertNoResult(added)
        self.assertEqual(0, self.node.queues.get(b"q") is not None)
        self.resume()
        self.assertEqual(Status(FIRST_ID), self.successResultOf(added))
        self.assertEqual(1, self.successResultOf(length))

    def test_gone_meanwhile(self) -> None:
        """Nothing is executed for a client that went away during the pause."""
        client, _transport = self.visit()
        self.pause(60_000)
        added = client.call(Role.FULL, b"ADDJOB", b"q", b"b", b"0")
        client.closed()
        self.failureResultOf(added, CancelledError)
        self.resume()
        self.assertEqual(b":0\r\n", self.turn(b"QLEN q"))

    def test_bounded(self) -> None:
        """A client that goes on sending during a pause is cut off, like every other one that does
        not wait for answers."""
        client, transport = self.visit()
        self.pause(60_000)
        calls = [client.call(Role.FULL, b"PING") for _ in range(CALLS_MAX)]
        refused = self.failureResultOf(client.call(Role.FULL, b"PING"))
        self.assertEqual("TRYLATER", refused.value.code)
        self.assertTrue(transport.disconnected)
        for call in calls:
            call.addErrback(lambda _: None)
        client.closed()

    def test_slices(self) -> None:
        """After the pause, one turn does not execute more than others may."""
        client, _transport = self.visit()
        self.pause(60_000)
        calls = [client.call(Role.FULL, b"PING") for _ in range(100)]
        self.request_ns = 1_000_000
        self.resume()
        self.assertNoResult(calls[-1])
        for _ in range(len(calls)):
            self.reactor.advance(0)
        for call in calls:
            self.assertEqual(Status(b"PONG"), self.successResultOf(call))
