"""The contract of a transport, for the fast one and for Twisted's own."""

from __future__ import annotations

import socket
from typing import Any

from twisted.internet import tcp
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IConsumer, IPushProducer, ITransport
from twisted.internet.protocol import Factory
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from disque_tx.services.net.transport import address_of
from tests.services.doubles import Producer, Recorder, Refusing
from tests.services.nodebench import NodeCase, drive

LARGE = bytes(range(256)) * 40_000


class Contract:
    """What a protocol relies on; ``peer`` is the other end."""

    transport: Any
    protocol: Recorder
    peer: socket.socket
    reactor: MemoryReactorClock

    def open(self) -> None:
        """Set up ``protocol`` and ``peer`` over a pair of sockets."""
        raise NotImplementedError

    def settle(self) -> None:
        """Process all events."""
        drive(self.reactor)

    def received(self) -> bytes:
        """All bytes that reach the other end, read while the transport continues to write."""
        self.peer.setblocking(False)
        data = b""
        while True:
            self.settle()
            try:
                piece = self.peer.recv(1 << 20)
            except BlockingIOError:
                return data
            if not piece:
                return data + b"<end>"
            data += piece


class ContractTests(Contract):
    """Mixed into a test case for each transport."""

    def test_interfaces(self: Any) -> None:
        """Third-party protocols can be served."""
        self.assertTrue(ITransport.providedBy(self.transport))
        self.assertTrue(IConsumer.providedBy(self.transport))

    def test_order(self: Any) -> None:
        """Bytes are sent in the order of the writes, whether the socket accepted them at once or
        not."""
        for data in (b"first", LARGE, b"between", LARGE):
            self.transport.write(data)
        self.transport.writeSequence([b"la", b"st"])
        self.assertTrue(self.received() == b"first" + LARGE + b"between" + LARGE + b"last")

    def test_receives(self: Any) -> None:
        """All bytes arrive, however many, followed by the end."""
        self.peer.sendall(b"x" * 150_000)
        self.settle()
        self.peer.close()
        self.settle()
        self.assertEqual(150_000, len(self.protocol.received))
        self.assertEqual([ConnectionDone], self.protocol.lost)

    def test_half_closed(self: Any) -> None:
        """Bytes sent before the other side stopped sending arrive before the end is reported."""
        self.peer.sendall(b"x" * 150_000)
        self.peer.shutdown(socket.SHUT_WR)
        self.settle()
        self.assertEqual(150_000, len(self.protocol.received))
        self.assertEqual([ConnectionDone], self.protocol.lost)

    def test_lose_flushes(self: Any) -> None:
        """loseConnection sends all output first."""
        self.transport.write(LARGE)
        self.transport.loseConnection()
        self.assertTrue(self.received() == LARGE + b"<end>")
        self.assertEqual([ConnectionDone], self.protocol.lost)

    def test_lose_twice(self: Any) -> None:
        """The end is reported to the protocol once."""
        self.transport.loseConnection()
        self.transport.loseConnection()
        self.settle()
        self.transport.abortConnection()
        self.settle()
        self.assertEqual([ConnectionDone], self.protocol.lost)

    def test_abort(self: Any) -> None:
        """abortConnection discards unsent output."""
        self.transport.write(LARGE)
        self.transport.abortConnection()
        self.settle()
        self.assertEqual([ConnectionAborted], self.protocol.lost)

    def test_write_after_the_end(self: Any) -> None:
        """Writing to a closed connection does nothing."""
        self.transport.abortConnection()
        self.settle()
        self.transport.write(b"too late")
        self.settle()
        self.assertEqual([ConnectionAborted], self.protocol.lost)

    def test_broken(self: Any) -> None:
        """A socket error during a write is reported as a lost connection, once."""
        self.transport.write(LARGE)
        self.peer.close()
        self.settle()
        self.transport.write(b"more")
        self.settle()
        self.assertEqual(1, len(self.protocol.lost))
        self.assertTrue(issubclass(self.protocol.lost[0], (ConnectionLost, ConnectionDone)))

    def test_producer(self: Any) -> None:
        """A producer pauses while the other side does not read, and resumes afterwards."""
        producer = Producer()
        self.transport.registerProducer(producer, True)
        self.transport.write(LARGE)
        self.assertEqual(["pause"], producer.asked)
        self.assertTrue(self.received() == LARGE)
        self.assertEqual(["pause", "resume"], producer.asked)

    def test_pull_producer(self: Any) -> None:
        """A pull producer is called at once."""
        producer = Producer()
        self.transport.registerProducer(producer, False)
        self.settle()
        self.assertEqual("resume", producer.asked[0])
        self.transport.unregisterProducer()

    def test_producer_is_stopped(self: Any) -> None:
        """A producer is stopped when the connection is closed."""
        producer = Producer()
        self.transport.registerProducer(producer, True)
        self.transport.abortConnection()
        self.settle()
        self.assertEqual(["stop"], producer.asked)

    def test_second_producer(self: Any) -> None:
        """A second producer is refused, because the output of two would mix."""
        self.transport.registerProducer(Producer(), True)
        with self.assertRaises(RuntimeError):
            self.transport.registerProducer(Producer(), True)
        self.transport.unregisterProducer()


class TwistedTransportTests(ContractTests, SynchronousTestCase):
    """The contract holds for Twisted's own transport."""

    def setUp(self) -> None:
        """A connection of Twisted's, driven by hand."""
        self.reactor = MemoryReactorClock()
        self.peer, its = socket.socketpair()
        self.addCleanup(self.peer.close)
        its.setblocking(False)
        self.protocol = Recorder()
        self.transport = tcp.Connection(its, self.protocol, self.reactor)
        self.transport.connected = 1
        self.transport.startReading()
        self.protocol.makeConnection(self.transport)
        self.addCleanup(its.close)


class FastTransportTests(ContractTests, NodeCase):
    """The contract holds for the fast transport."""

    def setUp(self) -> None:
        """A connection of a hub."""
        super().setUp()
        self.peer, its = socket.socketpair()
        self.addCleanup(self.peer.close)
        self.protocol = Recorder()
        self.hub.adopt(its, Factory.forProtocol(lambda: self.protocol))
        self.transport = self.protocol.transport

    def test_verified(self) -> None:
        """The methods have the right signatures."""
        verifyObject(ITransport, self.transport)
        verifyObject(IConsumer, self.transport)

    def test_unsent(self) -> None:
        """Bytes that the socket did not accept count as the client's output."""
        self.transport.write(LARGE)
        unsent = self.transport.unsent_bytes()
        self.assertGreater(unsent, len(LARGE) // 2)
        self.assertTrue(self.received() == LARGE)
        self.assertEqual(0, self.transport.unsent_bytes())

    def test_lose_waits_for_the_producer(self) -> None:
        """loseConnection lets a producer finish, as the interface requires."""
        self.transport.registerProducer(Producer(), True)
        self.transport.loseConnection()
        self.settle()
        self.assertEqual([], self.protocol.lost)
        self.transport.write(b"last words")
        self.transport.unregisterProducer()
        self.assertEqual(b"last words<end>", self.received())
        self.assertEqual([ConnectionDone], self.protocol.lost)

    def test_paused(self) -> None:
        """A protocol that cannot keep up receives nothing until it resumes, and loses nothing."""
        verifyObject(IPushProducer, self.transport)
        self.transport.pauseProducing()
        self.peer.sendall(b"later")
        self.settle()
        self.assertEqual(b"", self.protocol.received)
        self.transport.resumeProducing()
        self.settle()
        self.assertEqual(b"later", self.protocol.received)

    def test_turns(self) -> None:
        """Every batch of input is one turn, and every turn ends."""
        self.peer.sendall(b"x")
        self.settle()
        self.assertEqual((1, False), (self.commits.commits, self.runtime.turns.active))

    def test_error_in_a_protocol(self) -> None:
        """An exception in a protocol closes its own connection; the hub continues, and the error is
        logged."""
        other, its = socket.socketpair()
        self.addCleanup(other.close)
        second = Recorder()
        self.hub.adopt(its, Factory.forProtocol(lambda: second))
        self.protocol.error = ZeroDivisionError()
        self.peer.sendall(b"x")
        other.sendall(b"y")
        self.hub.doRead()
        self.assertEqual(([ConnectionAborted], b"y"), (self.protocol.lost, second.received))
        self.assertRaises(ZeroDivisionError, self.reactor.advance, 0)

    def test_refused(self) -> None:
        """A factory may refuse a connection."""
        other, its = socket.socketpair()
        self.addCleanup(other.close)
        self.assertFalse(self.hub.adopt(its, Refusing()))
        self.assertEqual(b"", other.recv(1))

    def test_gone_already(self) -> None:
        """A connection may be closed before it is processed."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            client = socket.create_connection(server.getsockname())
            its, _name = server.accept()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.close()
            self.assertFalse(self.hub.adopt(its, Factory.forProtocol(Recorder)))
            self.settle()
        self.assertEqual(-1, its.fileno())

    def test_stop(self) -> None:
        """Stopping the hub closes every connection, and nothing is left in the reactor."""
        self.hub.stop()
        self.assertEqual([ConnectionAborted], self.protocol.lost)
        self.assertEqual([], self.reactor.getReaders())

    def test_keepalive(self) -> None:
        """The operating system detects dead peers (client protocol, section 2)."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            client = socket.create_connection(server.getsockname())
            self.addCleanup(client.close)
            its, _name = server.accept()
            protocol = Recorder()
            self.hub.adopt(its, Factory.forProtocol(lambda: protocol))
            transport: Any = protocol.transport
            transport.set_keepalive(90)
            transport.setTcpNoDelay(True)
            options = [
                its.getsockopt(socket.IPPROTO_TCP, option)
                for option in (
                    socket.TCP_KEEPIDLE,
                    socket.TCP_KEEPINTVL,
                    socket.TCP_KEEPCNT,
                    socket.TCP_NODELAY,
                )
            ]
        self.assertEqual([90, 30, 3, 1], options)


class AddressTests(SynchronousTestCase):
    """Addresses as Twisted programs know them."""

    def test_families(self) -> None:
        """Each family has its own class."""
        with socket.socket() as sock:
            self.assertEqual(IPv4Address("TCP", "1.2.3.4", 5), address_of(sock, ("1.2.3.4", 5)))
        with socket.socket(socket.AF_INET6) as sock:
            self.assertEqual(IPv6Address("TCP", "::1", 5, 0, 0), address_of(sock, ("::1", 5, 0, 0)))
        with socket.socket(socket.AF_UNIX) as sock:
            self.assertEqual(UNIXAddress(None), address_of(sock, ""))


class FastClientTests(NodeCase):
    """RESP clients on the fast acceptor."""

    def test_closed_in_a_turn(self) -> None:
        """A client that is killed in a turn is not served any more in the same turn."""
        killer, victim = self.dial(), self.dial()
        killer.sendall(b"CLIENT KILL ID 2\r\n")
        victim.sendall(b"PING\r\n")
        drive(self.reactor)
        self.assertEqual(b":1\r\n", killer.recv(100))
        self.assertEqual([1], list(self.server.clients))
