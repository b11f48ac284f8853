"""RESP connections on any Twisted transport."""

from __future__ import annotations

from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.interfaces import IPushProducer
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from disque_tx.services.clients.protocol import describe
from tests.services.nodebench import FIRST_ID, NodeCase


class DescribeTests(SynchronousTestCase):
    """Addresses in the output of CLIENT LIST and MONITOR (client protocol, section 8)."""

    def test_families(self) -> None:
        """Each address family has its own form."""
        host = IPv4Address("TCP", "0.0.0.0", 7711)
        self.assertEqual(
            (b"1.2.3.4:5", b"1.2.3.4:5", False), describe(IPv4Address("TCP", "1.2.3.4", 5), host)
        )
        self.assertEqual(
            (b"[::1]:5", b"[::1]:5", False), describe(IPv6Address("TCP", "::1", 5), host)
        )
        self.assertEqual(
            (b"/run/d:0", b"unix:/run/d", True), describe(UNIXAddress(None), UNIXAddress("/run/d"))
        )


class ProtocolTests(NodeCase):
    """A connection from start to end."""

    def test_pieces(self) -> None:
        """Requests may be cut anywhere."""
        client, transport = self.connect()
        for byte in b"*2\r\n$4\r\nPING\r\n$2\r\nhi\r\nPING\r\n":
            client.dataReceived(bytes([byte]))
        self.assertEqual(b"$2\r\nhi\r\n+PONG\r\n", transport.value())

    def test_one_write(self) -> None:
        """Requests that arrive together are one turn and one commit."""
        self.turn(b"PING", b"PING", b"ADDJOB q b 0")
        self.assertEqual(1, self.commits.commits)

    def test_refused(self) -> None:
        """A refused connection gets an error with the reason, and is not listed as a client."""
        client, transport = self.connect(IPv4Address("TCP", "10.0.0.1", 5))
        self.assertTrue(transport.value().startswith(b"-DENIED "))
        self.assertTrue(transport.disconnecting)
        client.dataReceived(b"ADDJOB q b 0\r\n")
        client.connectionLost()
        self.assertEqual(({}, 0), (self.server.clients, self.commits.commits))

    def test_quit(self) -> None:
        """The transport sends pending output and closes."""
        client, transport = self.connect()
        client.dataReceived(b"QUIT\r\n")
        self.assertEqual((b"+OK\r\n", True), (transport.value(), transport.disconnecting))
        self.assertIsNone(transport.producer)

    def test_killed(self) -> None:
        """A killed client's connection is aborted."""
        _client, transport = self.connect()
        self.assertEqual(b":1\r\n", self.turn(b"CLIENT KILL ID 1"))
        self.assertTrue(transport.disconnected)

    def test_gone(self) -> None:
        """No state is kept for a disconnected client, and no job is delivered to it."""
        client, _transport = self.connect()
        client.dataReceived(b"MONITOR\r\nGETJOB FROM q\r\n")
        client.connectionLost()
        self.assertEqual(({}, []), (self.server.clients, self.server.monitors))
        self.assertEqual(b"+%s\r\n:1\r\n" % FIRST_ID, self.turn(b"ADDJOB q b 0", b"QLEN q"))


class FullSocketTests(NodeCase):
    """The protocol acts as its transport's producer."""

    def test_producer(self) -> None:
        """The protocol has all methods of a producer."""
        client, transport = self.connect()
        verifyObject(IPushProducer, client)
        self.assertEqual((client, True), (transport.producer, transport.streaming))

    def test_paused(self) -> None:
        """While the transport is full, replies are kept, and count as the client's output."""
        client, transport = self.connect()
        client.pauseProducing()
        client.dataReceived(b"PING\r\nPING\r\n")
        self.assertEqual(b"", transport.value())
        self.assertEqual(14, client.output_bytes())
        client.resumeProducing()
        self.assertEqual(b"+PONG\r\n+PONG\r\n", transport.value())
        self.assertEqual(0, client.output_bytes())

    def test_resumed_within_a_turn(self) -> None:
        """Nothing is sent before the end of the turn."""
        client, transport = self.connect()
        client.pauseProducing()
        with self.runtime.turn():
            client.dataReceived(b"ADDJOB q b 0\r\n")
            client.resumeProducing()
            self.assertEqual(b"", transport.value())
        self.assertEqual(b"+%s\r\n" % FIRST_ID, transport.value())

    def test_closes_when_sent(self) -> None:
        """A connection is closed after the transport has taken all output."""
        client, transport = self.connect()
        client.pauseProducing()
        client.dataReceived(b"QUIT\r\n")
        self.assertFalse(transport.disconnecting)
        client.resumeProducing()
        self.assertEqual((b"+OK\r\n", True), (transport.value(), transport.disconnecting))

    def test_buffers(self) -> None:
        """The buffer sizes in CLIENT LIST."""
        client, _transport = self.connect()
        client.pauseProducing()
        client.dataReceived(b"PING\r\nADDJOB q")
        self.assertEqual((8, 7), client.buffers()[:2])
        client.connectionLost()
        self.assertEqual((0, 0, 0), client.buffers())
