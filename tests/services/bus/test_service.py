"""The connections between a node and other nodes."""

from __future__ import annotations

import socket
from ipaddress import ip_network
from typing import Any

from twisted.internet.defer import Deferred, fail

from disque_tx.errors import ConfigError
from disque_tx.messages.bus import Bulk, JobSignal, JobsMessage, Message, NodeFailed, QueueSignal
from disque_tx.messages.bustypes import (
    BULK,
    CAN_BULK,
    DELJOB,
    GOTJOB,
    MEET,
    NEEDJOBS,
    PING,
    PONG,
    REPLJOB,
)
from disque_tx.messages.nodes import HANDSHAKE
from disque_tx.messages.records import JobRecord, LogSink
from disque_tx.wire.bus.parser import STRANGER_BYTES_MAX, encode
from tests.services.bus.bench import OTHER, BusCase, gossip_message
from tests.services.nodebench import FIRST_ID


def long(name_bytes: int) -> QueueSignal:
    """A message of another node about a queue with a name of this length."""
    message = QueueSignal(NEEDJOBS, b"q" * name_bytes, 0)
    message.sender = OTHER
    return message


class InboundTests(BusCase):
    """Connections from other nodes, real or pretended."""

    def setUp(self) -> None:
        super().setUp()
        self.start()

    def test_split_anywhere(self) -> None:
        """A message may arrive byte by byte; PING is answered on the same connection."""
        other = self.call()
        for byte in encode(gossip_message(PING)):
            other.sendall(bytes([byte]))
            self.settle()
        self.assertEqual([PONG], self.received_types(other))
        self.assertEqual(1, self.node.membership.messages_received)

    def test_many_at_once(self) -> None:
        """All messages of one read are processed, and useless ones are counted."""
        useless = bytearray(encode(gossip_message(PING)))
        useless[8:10] = b"\0\2"
        other = self.call()
        other.sendall(encode(gossip_message(PING)) * 2 + useless + encode(gossip_message(PING)))
        self.assertEqual([PONG] * 3, self.received_types(other))
        membership = self.node.membership
        self.assertEqual((4, 1), (membership.messages_received, membership.messages_ignored))

    def test_bulk(self) -> None:
        """A bulk of another node has the effect of its messages, and each of them is counted."""
        self.entry(1)
        other = self.call()
        ids = [b"D-22222222-%024d-003d" % number for number in range(200)]
        nodes = (OTHER, self.node.id)
        jobs = [
            JobRecord(name, b"q", b"body", nodes, 10**18, 0, delay_s=0, retry_s=60, repl=2)
            for name in ids
        ]
        copies: list[Message] = [JobsMessage(REPLJOB, [job], [60]) for job in jobs]
        ends: list[Message] = [JobSignal(DELJOB, job_id) for job_id in ids[1:]]
        bulks = [Bulk(copies), Bulk(ends)]
        for bulk in bulks:
            bulk.sender = OTHER
        self.send(other, gossip_message(PING), *bulks)
        self.assertEqual([ids[0]], [job.id for job in self.node.jobs.table.values()])
        self.assertEqual(400, self.node.membership.messages_received)
        self.assertEqual([PONG], self.received_types(other))

    def test_no_message(self) -> None:
        """A malformed message closes the connection, and strangers cannot flood the log with
        them."""
        for data in (b"DbuZ\xff\xff\xff\xff", b"GET / HTTP/1.0\r\n\r\n", b"DbuZ\0\0\0\x08"):
            other = self.call()
            other.sendall(data)
            self.assertEqual([-1], self.received_types(other), data)
        self.assertEqual(
            1, self.logged().count("Cluster bus, 127.0.0.1: bus message of 4294967295")
        )
        self.assertEqual(1, self.logged().count("the connection is closed"))
        self.settle(10_000)
        self.call().sendall(b"again!!!")
        self.settle()
        self.assertIn("does not start with the bus signature", self.logged())

    def test_strangers_are_short(self) -> None:
        """Only known nodes may send long messages."""
        other = self.call()
        self.send(other, long(STRANGER_BYTES_MAX))
        self.assertEqual([-1], self.received_types(other))
        self.entry(1)
        other = self.call()
        self.send(other, gossip_message(PING))
        self.send(other, long(STRANGER_BYTES_MAX))
        self.assertEqual([PONG], self.received_types(other))
        self.assertEqual(2, self.node.membership.messages_received)

    def test_not_invited(self) -> None:
        """A MEET from an address that is not allowed changes nothing."""
        self.node.cluster.meet_allow = [ip_network("10.0.0.0/8")]
        other = self.call()
        self.send(other, gossip_message(MEET))
        self.assertEqual([self.node.id], list(self.node.membership.nodes))

    def test_many_strangers(self) -> None:
        """Too many idle connections of strangers are closed, the oldest first; those of known nodes
        are not."""
        self.bus.links.strangers_max = 2
        self.entry(1)
        known = self.call()
        self.send(known, gossip_message(PING))
        others = [self.call() for _ in range(3)]
        self.assertEqual([[-1], [], []], [self.received_types(other) for other in others])
        self.assertEqual([PONG], self.received_types(known))

    def test_fault(self) -> None:
        """An exception costs only the connection on which it was raised."""
        self.entry(1)
        good, bad = self.call(), self.call()
        self.node.outbox.log = LogSink()  # every record raises
        job_id = b"D-22222222-%024d-003d" % 1
        job = JobRecord(
            job_id, b"q", b"body", (OTHER, self.node.id), 10**18, 0, delay_s=0, retry_s=60, repl=2
        )
        message = JobsMessage(REPLJOB, [job], [60])
        message.sender = OTHER
        self.send(bad, message)
        self.node.outbox.log = None
        self.send(good, gossip_message(PING))
        self.assertEqual(([-1], [PONG]), (self.received_types(bad), self.received_types(good)))
        self.assertIn("NotImplementedError", self.logged())

    def test_caller_is_gone(self) -> None:
        """A closed connection no longer counts as a stranger's."""
        self.bus.links.strangers_max = 1
        self.call().close()
        self.settle()
        self.send(other := self.call(), gossip_message(PING))
        self.assertEqual([PONG], self.received_types(other))
        self.assertNotIn("strangers", self.logged())


class OutboundTests(BusCase):
    """Connections to other nodes."""

    def setUp(self) -> None:
        super().setUp()
        self.start()

    def test_called(self) -> None:
        """A known node is connected to from the address this node listens on, and pinged."""
        entry, other = self.called()
        assert entry.link is not None
        self.assertEqual("127.0.0.1", other.getpeername()[0])
        self.assertEqual((b"127.0.0.1", b"127.0.0.1"), (entry.link.peer_ip, entry.link.local_ip))
        self.assertEqual([PING], self.received_types(other))

    def test_epochs(self) -> None:
        """No two connections have the same number."""
        first, _ = self.called()
        assert first.link is not None
        epoch = first.link.epoch
        self.node.cluster.forget(OTHER)
        second, _ = self.called()
        assert second.link is not None
        self.assertEqual((True, True), (epoch > 1_000, second.link.epoch > epoch))

    def test_refused(self) -> None:
        """A refused connection is noticed and tried again."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            entry = self.entry(server.getsockname()[1])
        self.tick()
        self.assertEqual((False, 1), (entry.connecting, entry.attempts))
        self.assertIn("127.0.0.1:7712 can't be reached: [Errno 111]", self.logged())

    def test_no_address(self) -> None:
        """An invalid address is not resolved, and does not delay the node."""
        entry = self.entry(1)
        entry.ip = b"localhost"
        self.tick()
        self.assertEqual((False, 1, []), (entry.connecting, entry.attempts, self.looked_up))

    def test_lost(self) -> None:
        """A broken connection is noticed."""
        entry, other = self.called()
        other.close()
        self.settle()
        self.assertIsNone(entry.link)

    def test_last_words(self) -> None:
        """Messages of a turn are sent before the turn closes the connection."""
        entry, other = self.called()
        link = entry.link
        assert link is not None
        with self.runtime.turn() as node:
            node.peers.answer(link, NodeFailed(OTHER))
            node.cluster.forget(OTHER)
        self.assertEqual([PING, 3, -1], self.received_types(other))

    def test_slow(self) -> None:
        """Output for a node that does not read is limited; then its connection is replaced."""
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
        """A node that reads again has lost no message."""
        entry, other = self.called()
        link = entry.link
        assert link is not None
        self.received_types(other)
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
        """CLUSTER MEET accepts host names, which are resolved in a thread."""
        self.node.outbox.resolves.append((b"localhost", 7712))
        self.tick()
        self.assertEqual([b"localhost"], self.looked_up)
        met = [entry for entry in self.node.membership.nodes.values() if entry.flags & HANDSHAKE]
        self.assertEqual([(b"127.0.0.1", 7712)], [(entry.ip, entry.port) for entry in met])


class UnknownNameTests(BusCase):
    """Host names that cannot be resolved."""

    def look_up(self, work: Any, *args: Any) -> Deferred[Any]:
        return fail(socket.gaierror(-2, "Name or service not known"))

    def test_unknown(self) -> None:
        """The failure is logged."""
        self.start()
        self.node.outbox.resolves.append((b"nowhere.example", 7712))
        self.tick()
        self.assertIn("nowhere.example can't be met: [Errno -2] Name or service", self.logged())


class OrderTests(BusCase):
    """The order of output (cluster protocol, section 13.1)."""

    def test_log_bus_replies(self) -> None:
        """Nothing about a job is sent before it is in the log, and nodes are sent their messages
        before clients their replies."""
        self.start()
        _entry, other = self.called()
        self.received_types(other)
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
        self.assertEqual([GOTJOB], self.received_types(other))

    def test_bulk(self) -> None:
        """A node that showed that it takes bulks gets many messages of a turn as one; a node that
        did not, as those of the original, gets the same messages one by one."""
        self.start()
        _entry, other = self.called()
        self.received_types(other)
        ids = [b"D-22222222-%024d-003d" % number for number in range(3)]
        for features, expected in ((0, [GOTJOB] * 3), (CAN_BULK, [BULK])):
            pong = gossip_message(PONG)
            pong.epoch, pong.features = 7, features
            self.send(other, pong)
            with self.runtime.turn() as node:
                for job_id in ids:
                    node.peers.signal(OTHER, GOTJOB, job_id, 0)
            self.assertEqual(expected, self.received_types(other))

    def test_one_write(self) -> None:
        """The messages of one turn to a node are one write."""
        self.start()
        entry, other = self.called()
        self.received_types(other)
        assert entry.link is not None
        with self.runtime.turn() as node:
            for _ in range(3):
                node.peers.send(OTHER, JobSignal(GOTJOB, FIRST_ID))
            self.assertEqual(1, len(self.bus.links.written))
        self.assertEqual([], self.bus.links.written)
        self.assertEqual([GOTJOB] * 3, self.received_types(other))


class LifeTests(BusCase):
    """Starting and stopping."""

    def test_waits_for_the_log(self) -> None:
        """Messages of other nodes wait until the log is loaded."""
        self.bus.open()
        other = self.call()
        other.sendall(encode(gossip_message(PING)))
        self.assertEqual([], self.received_types(other))
        self.bus.startService()
        self.assertEqual([PONG], self.received_types(other))

    def test_port_is_taken(self) -> None:
        """A node does not start if its bus port is in use."""
        server = socket.create_server(("127.0.0.1", self.settings.cluster_bus_port))
        with server, self.assertRaisesRegex(ConfigError, "'cluster-bus-port'"):
            self.bus.open()
