"""Clients that come by the protocols of plugins."""

from __future__ import annotations

from twisted.internet.address import IPv4Address
from twisted.internet.defer import CancelledError
from twisted.internet.testing import StringTransport
from zope.interface.verify import verifyObject

from disque_tx.commands.values import Status
from disque_tx.errors import CommandError
from disque_tx.services.clients.embedded import NodeService
from disque_tx.services.clients.guests import Guest, Guests
from disque_tx.services.clients.roles import Passwords
from disque_tx.services.interfaces import IConnection, Role
from tests.services.nodebench import FIRST_ID, NodeCase


class GuestTests(NodeCase):
    """A plugin's client has the rights and duties of every other one."""

    def setUp(self) -> None:
        super().setUp()
        passwords = Passwords(self.settings, lambda: 0)
        self.guests = Guests(self.runtime, self.admission, NodeService(self.runtime), passwords)

    def guest(self, host: str = "127.0.0.1") -> tuple[Guest, StringTransport]:
        """An admitted client."""
        transport = StringTransport(peerAddress=IPv4Address("TCP", host, 5001))
        return self.guests.admit(transport, "gopher"), transport

    def test_listed(self) -> None:
        """Operators see it in CLIENT LIST, by the name of its protocol at first."""
        guest, _transport = self.guest()
        verifyObject(IConnection, guest)
        self.assertIn(b"addr=127.0.0.1:5001 fd=-1 name=gopher ", self.turn(b"CLIENT LIST"))
        guest.rename(b"console")
        self.assertRaises(CommandError, guest.rename, b"two words")
        self.successResultOf(guest.call(Role.FULL, b"QLEN", b"q"))
        line = self.turn(b"CLIENT LIST")
        self.assertIn(b"name=console ", line)
        self.assertIn(b"cmd=qlen", line)

    def test_killed(self) -> None:
        """CLIENT KILL closes its connection."""
        _guest, transport = self.guest()
        self.assertEqual(b":1\r\n", self.turn(b"CLIENT KILL ID 1"))
        self.assertTrue(transport.disconnected)

    def test_counted(self) -> None:
        """``maxclients`` and protected mode hold for it."""
        with self.assertRaisesRegex(CommandError, "DENIED"):
            self.guest("192.0.2.1")
        self.settings.maxclients = 1
        guest, _transport = self.guest()
        with self.assertRaisesRegex(CommandError, "max number of clients"):
            self.guest()
        guest.closed()
        self.guest()

    def test_gone(self) -> None:
        """A client that goes away while it waits takes no job with it."""
        guest, _transport = self.guest()
        call = guest.call(Role.FULL, b"GETJOB", b"FROM", b"q")
        guest.closed()
        guest.closed()
        self.failureResultOf(call, CancelledError)
        self.assertEqual(({}, {}), (self.server.clients, self.runtime.calls))
        self.assertEqual(b"+%s\r\n:1\r\n" % FIRST_ID, self.turn(b"ADDJOB q b 0", b"QLEN q"))

    def test_roles(self) -> None:
        """What the role does not allow is refused before it runs."""
        guest, _transport = self.guest()
        refused = self.failureResultOf(guest.call(Role.READER, b"ADDJOB", b"q", b"b", b"0"))
        self.assertEqual("NOPERM", refused.value.code)
        added = self.successResultOf(guest.call(Role.FULL, b"ADDJOB", b"q", b"b", b"0"))
        self.assertEqual(Status(FIRST_ID), added)
        self.assertIs(Role.FULL, guest.authenticate(None))

    def test_monitored(self) -> None:
        """MONITOR shows where its requests come from."""
        watching, transport = self.connect()
        watching.dataReceived(b"MONITOR\r\n")
        guest, _ = self.guest()
        guest.call(Role.FULL, b"QLEN", b"q")
        self.assertIn(b'[127.0.0.1:5001] "QLEN" "q"', transport.value())

    def test_idle(self) -> None:
        """``timeout`` and the statistics of bytes see its traffic."""
        guest, _transport = self.guest()
        self.reactor.advance(10)
        with self.runtime.turn():
            pass
        guest.received(100)
        guest.sent(7)
        stats = self.server.stats
        self.assertEqual((100, 7), (stats.net_input_bytes, stats.net_output_bytes))
        self.assertEqual(self.node.now_ms, guest.client.seen_ms)
        self.assertEqual(0, self.runtime.output_bytes(guest.client))
