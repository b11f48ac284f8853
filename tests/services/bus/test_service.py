"""The connections of a node to other nodes."""

from __future__ import annotations

import socket
from ipaddress import ip_network
from typing import Any

from twisted.internet.defer import Deferred, fail

from disque_tx.busmessages import (
    GOTJOB,
    MEET,
    NEEDJOBS,
    PING,
    PONG,
    REPLJOB,
    JobSignal,
    JobsMessage,
    NodeFailed,
    QueueSignal,
)
from disque_tx.errors import ConfigError
from disque_tx.messages import JobRecord, LogSink
from disque_tx.nodetable import HANDSHAKE
from disque_tx.wire.bus import STRANGER_BYTES_MAX, encode
from tests.services.bus.bench import OTHER, BusCase, said
from tests.services.nodebench import FIRST_ID


def long(name_bytes: int) -> QueueSignal:
    """A message of another node about a queue with a name of this length."""
    message = QueueSignal(NEEDJOBS, b"q" * name_bytes, 0)
    message.sender = OTHER
    return message


class InboundTests(BusCase):
    """Nodes that call, or who says that he is one."""

    def setUp(self) -> None:
        super().setUp()
        self.start()

    def test_split_anywhere(self) -> None:
        """A message may arrive byte by byte; PING is answered on the connection it came on."""
        other = self.call()
        for byte in encode(said(PING)):
            other.sendall(bytes([byte]))
            self.settle()
        self.assertEqual([PONG], self.heard(other))
        self.assertEqual(1, self.node.membership.messages_received)

    def test_many_at_once(self) -> None:
        """All messages of a read are taken, those that are of no use are counted as such."""
        useless = bytearray(encode(said(PING)))
        useless[8:10] = b"\0\2"
        other = self.call()
        other.sendall(encode(said(PING)) * 2 + useless + encode(said(PING)))
        self.assertEqual([PONG] * 3, self.heard(other))
        membership = self.node.membership
        self.assertEqual((4, 1), (membership.messages_received, membership.messages_ignored))

    def test_no_message(self) -> None:
        """What is no message ends the connection, and a stranger cannot fill the log with it."""
        for data in (b"DbuZ\xff\xff\xff\xff", b"GET / HTTP/1.0\r\n\r\n", b"DbuZ\0\0\0\x08"):
            other = self.call()
            other.sendall(data)
            self.assertEqual([-1], self.heard(other), data)
        self.assertEqual(
            1, self.logged().count("Cluster bus, 127.0.0.1: bus message of 4294967295")
        )
        self.assertEqual(1, self.logged().count("the connection is closed"))
        self.settle(10_000)
        self.call().sendall(b"again!!!")
        self.settle()
        self.assertIn("does not start with the bus signature", self.logged())

    def test_strangers_are_short(self) -> None:
        """Only a node that is known may send long messages."""
        other = self.call()
        self.send(other, long(STRANGER_BYTES_MAX))
        self.assertEqual([-1], self.heard(other))
        self.entry(1)
        other = self.call()
        self.send(other, said(PING))
        self.send(other, long(STRANGER_BYTES_MAX))
        self.assertEqual([PONG], self.heard(other))
        self.assertEqual(2, self.node.membership.messages_received)

    def test_not_invited(self) -> None:
        """A MEET of somebody who is not on the list changes nothing."""
        self.node.cluster.meet_allow = [ip_network("10.0.0.0/8")]
        other = self.call()
        self.send(other, said(MEET))
        self.assertEqual([self.node.id], list(self.node.membership.nodes))

    def test_many_strangers(self) -> None:
        """Strangers who only hold connections lose them, the oldest first; known nodes do not."""
        self.bus.links.strangers_max = 2
        self.entry(1)
        known = self.call()
        self.send(known, said(PING))
        others = [self.call() for _ in range(3)]
        self.assertEqual([[-1], [], []], [self.heard(other) for other in others])
        self.assertEqual([PONG], self.heard(known))

    def test_fault(self) -> None:
        """A fault of this program costs the connection on which it showed, and nothing else."""
        self.entry(1)
        good, bad = self.call(), self.call()
        self.node.outbox.log = LogSink()  # every record is a fault
        job_id = b"D-22222222-%024d-003d" % 1
        job = JobRecord(job_id, b"q", b"body", (OTHER, self.node.id), 10**18, 0, 0, 60, 2)
        message = JobsMessage(REPLJOB, [job], [60])
        message.sender = OTHER
        self.send(bad, message)
        self.node.outbox.log = None
        self.send(good, said(PING))
        self.assertEqual(([-1], [PONG]), (self.heard(bad), self.heard(good)))
        self.assertIn("NotImplementedError", self.logged())

    def test_caller_is_gone(self) -> None:
        """A connection that ended does not count as a stranger's any more."""
        self.bus.links.strangers_max = 1
        self.call().close()
        self.settle()
        self.send(other := self.call(), said(PING))
        self.assertEqual([PONG], self.heard(other))
        self.assertNotIn("strangers", self.logged())


class OutboundTests(BusCase):
    """Nodes that are called."""

    def setUp(self) -> None:
        super().setUp()
        self.start()

    def test_called(self) -> None:
        """A node in the table is called from the address this node listens on, and pinged."""
        entry, other = self.called()
        assert entry.link is not None
        self.assertEqual("127.0.0.1", other.getpeername()[0])
        self.assertEqual((b"127.0.0.1", b"127.0.0.1"), (entry.link.peer_ip, entry.link.local_ip))
        self.assertEqual([PING], self.heard(other))

    def test_epochs(self) -> None:
        """No two connections have the same number."""
        first, _ = self.called()
        assert first.link is not None
        epoch = first.link.epoch
        self.node.cluster.forget(OTHER, self.node.now_ms)
        second, _ = self.called()
        assert second.link is not None
        self.assertEqual((True, True), (epoch > 1_000, second.link.epoch > epoch))

    def test_refused(self) -> None:
        """When nobody is there the node knows, and goes on trying."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            entry = self.entry(server.getsockname()[1])
        self.tick()
        self.assertEqual((False, 1), (entry.connecting, entry.attempts))
        self.assertIn("127.0.0.1:7712 can't be reached: [Errno 111]", self.logged())

    def test_no_address(self) -> None:
        """An address that is none is not looked up, and does not keep the node waiting."""
        entry = self.entry(1)
        entry.ip = b"localhost"
        self.tick()
        self.assertEqual((False, 1, []), (entry.connecting, entry.attempts, self.looked_up))

    def test_lost(self) -> None:
        """The node hears that a connection broke."""
        entry, other = self.called()
        other.close()
        self.settle()
        self.assertIsNone(entry.link)

    def test_last_words(self) -> None:
        """What was said in a turn leaves before the connection is closed by it."""
        entry, other = self.called()
        link = entry.link
        assert link is not None
        with self.runtime.turn() as node:
            node.peers.answer(link, NodeFailed(OTHER))
            node.cluster.forget(OTHER, node.now_ms)
        self.assertEqual([PING, 3, -1], self.heard(other))

    def test_slow(self) -> None:
        """A node that does not read is served up to a limit; then its connection is made anew."""
        self.settings.cluster_link_buffer_limit = 1 << 20
        entry, _other = self.called()
        link = entry.link
        assert link is not None
        for _ in range(100):
            with self.runtime.turn():
                link.sink.send(long(300_000))
            if entry.link is None:
                break
        self.assertIsNone(entry.link)
        self.assertIn("127.0.0.1: does not read what it is sent", self.logged())

    def test_slow_for_a_while(self) -> None:
        """A node that reads again misses nothing."""
        entry, other = self.called()
        link = entry.link
        assert link is not None
        self.heard(other)
        for _ in range(50):
            with self.runtime.turn():
                link.sink.send(long(300_000))
        expected = encode(long(300_000)) * 50
        received = b""
        while piece := self.peek(other):
            received += other.recv(len(piece))
            self.settle()
        self.assertTrue(expected == received)
        self.assertIs(link, entry.link)

    def test_known_by_name(self) -> None:
        """CLUSTER MEET takes names: they are looked up elsewhere, and met."""
        self.node.outbox.resolves.append((b"localhost", 7712))
        self.tick()
        self.assertEqual([b"localhost"], self.looked_up)
        met = [entry for entry in self.node.membership.nodes.values() if entry.flags & HANDSHAKE]
        self.assertEqual([(b"127.0.0.1", 7712)], [(entry.ip, entry.port) for entry in met])


class UnknownNameTests(BusCase):
    """Names that cannot be looked up."""

    def look_up(self, work: Any, *args: Any) -> Deferred[Any]:
        return fail(socket.gaierror(-2, "Name or service not known"))

    def test_unknown(self) -> None:
        """Operators read what became of it in the log."""
        self.start()
        self.node.outbox.resolves.append((b"nowhere.example", 7712))
        self.tick()
        self.assertIn("nowhere.example can't be met: [Errno -2] Name or service", self.logged())


class OrderTests(BusCase):
    """What leaves when (cluster protocol, section 13.1)."""

    def test_log_bus_replies(self) -> None:
        """Nobody hears of a job before it is in the log; nodes hear before clients."""
        self.start()
        _entry, other = self.called()
        self.heard(other)
        client, transport = self.connect()
        seen: list[object] = []

        def before_commit() -> None:
            seen.append((self.peek(other), transport.value()))
            self.commits.before = None

        self.commits.before = before_commit
        with self.runtime.turn() as node:
            node.peers.send(OTHER, JobSignal(GOTJOB, FIRST_ID))
            client.dataReceived(b"PING\r\n")
        self.assertEqual([(b"", b"")], seen)
        self.assertEqual(b"+PONG\r\n", transport.value())
        self.assertEqual([GOTJOB], self.heard(other))

    def test_one_write(self) -> None:
        """The messages of one turn to a node are one write."""
        self.start()
        entry, other = self.called()
        self.heard(other)
        assert entry.link is not None
        with self.runtime.turn() as node:
            for _ in range(3):
                node.peers.send(OTHER, JobSignal(GOTJOB, FIRST_ID))
            self.assertEqual(1, len(self.bus.links.written))
        self.assertEqual([], self.bus.links.written)
        self.assertEqual([GOTJOB] * 3, self.heard(other))


class LifeTests(BusCase):
    """How it starts and stops."""

    def test_waits_for_the_log(self) -> None:
        """Until the log is loaded other nodes are kept waiting; then they are served."""
        self.bus.open()
        other = self.call()
        other.sendall(encode(said(PING)))
        self.assertEqual([], self.heard(other))
        self.bus.startService()
        self.assertEqual([PONG], self.heard(other))

    def test_port_is_taken(self) -> None:
        """A node that others cannot reach does not start."""
        server = socket.create_server(("127.0.0.1", self.settings.cluster_bus_port))
        with server, self.assertRaisesRegex(ConfigError, "'cluster-bus-port'"):
            self.bus.open()

    def test_stop(self) -> None:
        """Everything is closed, what is under way is given up, and nothing is left behind."""
        self.start()
        entry, other = self.called()
        caller = self.call()
        with socket.create_server(("127.0.0.1", 0)) as server:
            second = self.entry(server.getsockname()[1], b"3" * 40)
            with self.runtime.turn() as node:
                node.cluster.tick(node.now_ms)
        self.stop()
        self.assertEqual(([PING, -1], [-1]), (self.heard(other), self.heard(caller)))
        self.assertEqual((None, False), (entry.link, second.connecting))
        self.runtime.stop()
        self.assertEqual([], self.reactor.getDelayedCalls())
        self.assertEqual(([self.hub], []), (self.reactor.getReaders(), self.reactor.getWriters()))

    def test_stop_does_not_wait_for_ever(self) -> None:
        """A node that does not read cannot keep this one from stopping."""
        self.start()
        entry, _other = self.called()
        link = entry.link
        assert link is not None
        for _ in range(30):
            with self.runtime.turn():
                link.sink.send(long(300_000))
        stopped = self.bus.stopService()
        self.assertNoResult(stopped)
        self.settle(3_000)
        self.successResultOf(stopped)
