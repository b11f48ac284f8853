"""The links of a node: when they count, what is sent on them, and how they end."""

from __future__ import annotations

from functools import partial
from select import EPOLLIN

from disque_tx.engine.buslinks import STRANGERS_MAX, BusLinks
from disque_tx.engine.buspump import BusPump, MessageDelivery
from disque_tx.engine.linkend import LinkEnd
from disque_tx.messages.bus import Gossip, Message, Sender
from disque_tx.messages.nodes import MYSELF, NodeEntry
from disque_tx.wire.bus.parser import PEER_BYTES_MAX, STRANGER_BYTES_MAX, encode
from disque_tx.wire.bus.writer import BusWriter
from tests.core.peerbench import B, C, PeerCase
from tests.engine.test_buspump import SENDER, End


class WritingEnd(End):
    """A connection that keeps what is sent. ``paused``: its socket is full."""

    paused = False

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""

    def write(self, data: bytes) -> None:
        self.sent += data


class Network:
    """Settings and a network that keep what is asked of them."""

    cluster_link_buffer_limit = 0

    def __init__(self) -> None:
        self.asked: list[object] = []

    def connect(self, entry: NodeEntry) -> None:
        """A connection is wanted."""
        self.asked.append(entry.id)

    def resolve(self, host: bytes, port: int) -> None:
        """An address is wanted."""
        self.asked.append((host, port))


class LinksCase(PeerCase):
    """A node with links that its test opens."""

    def setUp(self) -> None:
        super().setUp()
        self.network = Network()
        self.links = BusLinks(self.node, self.network, self.network, 100)
        self.links.active = True

    def opened(self, entry: NodeEntry | None = None) -> LinkEnd:
        """A connection that exists."""
        writer = BusWriter(self.links.written)
        end = LinkEnd(WritingEnd(), entry, b"10.0.0.98", writer)
        self.links.opened(end)
        return end

    def up(self, entry: NodeEntry | None = None) -> LinkEnd:
        """A connection that is up."""
        end = self.opened(entry)
        self.links.up(end)
        return end

    def ended(self, end: LinkEnd) -> list[str]:
        """Why a connection was to be closed."""
        connection = end.connection
        assert isinstance(connection, WritingEnd)
        return connection.ended

    def sent(self, end: LinkEnd) -> bytes:
        """What was sent on a connection since the last look."""
        connection = end.connection
        assert isinstance(connection, WritingEnd)
        sent, connection.sent = connection.sent, b""
        return sent


class StateTests(LinksCase):
    """From a connection to a link, and back."""

    def test_up(self) -> None:
        """The node knows of a link where both ends are, since when it is up, and a number that is
        greater than any before."""
        self.assertEqual(100, self.node.membership.identity.start)
        entry = self.node.membership.nodes[B]
        entry.link = None
        first, second = self.up(), self.up(entry)
        link = second.link
        assert link is not None and first.link is not None
        self.assertEqual((101, 102), (first.link.epoch, link.epoch))
        self.assertEqual(
            (second.writer, entry, b"10.0.0.98", b"10.0.0.1", self.now_ms),
            (link.sink, link.entry, link.peer_ip, link.local_ip, link.created_ms),
        )
        self.assertIs(link, entry.link)
        self.assertEqual(self.node.membership.features, second.parser.features)

    def test_strangers(self) -> None:
        """Of more strangers than are allowed the oldest is closed, and the reason says how many
        are; one that has shown who it is, or is gone, counts no more."""
        self.assertEqual(256, STRANGERS_MAX)
        self.links.strangers_max = 2
        first, second = self.opened(), self.opened()
        self.opened(self.node.membership.nodes[B])
        self.assertEqual(([], []), (self.ended(first), self.ended(second)))
        third = self.opened()
        self.assertEqual(["more than 2 strangers are connected"], self.ended(first))
        self.links.lost(first)
        self.links.trust(second)
        fourth = self.opened()
        self.assertEqual([[]] * 3, [self.ended(end) for end in (second, third, fourth)])
        self.links.lost(third)
        self.opened()
        self.assertEqual([], self.ended(fourth))
        self.opened()
        self.assertEqual(["more than 2 strangers are connected"], self.ended(fourth))

    def test_trusted(self) -> None:
        """A known node may send long messages, once it has shown who it is."""
        end = self.up()
        self.assertEqual((False, STRANGER_BYTES_MAX), (end.trusted, end.parser.limit_bytes))
        self.links.trust(end)
        self.assertEqual((True, PEER_BYTES_MAX), (end.trusted, end.parser.limit_bytes))

    def test_lost(self) -> None:
        """A link that is gone is none of its node any more; a connection that never was one counts
        as a failed try, and is tried again later."""
        entry = self.node.membership.nodes[B]
        entry.link = None
        end = self.up(entry)
        self.links.lost(end)
        self.assertEqual((None, None, None), (entry.link, end.link, end.entry))
        entry.connecting, entry.attempts = True, 0
        failed = self.opened(entry)
        self.links.lost(failed)
        self.assertEqual((False, 1, None), (entry.connecting, entry.attempts, failed.entry))
        self.links.lost(failed)
        self.assertEqual(1, int(entry.attempts))


class SendingTests(LinksCase):
    """What leaves at the end of a turn."""

    def ping(self, end: LinkEnd) -> None:
        """A message is written."""
        message: Message = Gossip(0, [])
        SENDER.sign(message)
        end.writer.send(message)

    def test_once(self) -> None:
        """Each link sends what it has once; a full one keeps it, and sends it later in order with
        what came meanwhile."""
        free, full = self.up(), self.up()
        connection = full.connection
        assert isinstance(connection, WritingEnd)
        connection.paused = True
        self.ping(free)
        self.ping(full)
        self.links.flush()
        size = len(self.sent(free))
        self.assertEqual((b"", [full.writer]), (self.sent(full), self.links.written))
        self.ping(full)
        self.links.flush()
        self.assertEqual(b"", self.sent(full))
        connection.paused = False
        self.links.flush()
        self.links.flush()
        self.assertEqual((2 * size, []), (len(self.sent(full)), self.links.written))
        self.assertFalse(self.links.perform())

    def test_limit(self) -> None:
        """A link that keeps more than the limit is closed after its turn, once; with no limit, or
        at the limit, it is not."""
        end = self.up()
        connection = end.connection
        assert isinstance(connection, WritingEnd)
        connection.paused = True
        self.ping(end)
        for limit, closed in ((0, 0), (int(end.writer.pending_bytes), 0), (1, 1)):
            self.network.cluster_link_buffer_limit = limit
            self.links.flush()
            self.assertEqual([], self.ended(end))
            self.assertEqual(bool(closed), self.links.perform())
            self.assertEqual(["overflowed"] * closed, self.ended(end))
        self.links.written.clear()
        self.assertFalse(self.links.perform())

    def test_gone(self) -> None:
        """What was for a link that is gone is dropped, and other links send."""
        gone, there = self.up(), self.up()
        self.ping(gone)
        self.ping(there)
        self.links.lost(gone)
        self.links.flush()
        self.assertEqual((b"", 0, []), (self.sent(gone), gone.writer.pending_bytes, []))
        self.assertNotEqual(b"", self.sent(there))
        self.assertEqual([], self.links.written)


class AskedTests(LinksCase):
    """Connections that the node asks for."""

    def ask(self, end: LinkEnd) -> None:
        """The node wants one closed, two made and two addresses found."""
        outbox, nodes = self.node.outbox, self.node.membership.nodes
        assert end.link is not None
        outbox.hangups.append(end.link)
        outbox.connects += [nodes[B], nodes[C]]
        outbox.resolves += [(b"one", 1), (b"two", 2)]

    def test_performed(self) -> None:
        """Everything that was asked is done once, in order."""
        end = self.up()
        self.node.outbox.connects.clear()
        self.ask(end)
        self.assertTrue(self.links.perform())
        self.assertEqual([B, C, (b"one", 1), (b"two", 2)], self.network.asked)
        self.assertEqual((["closed"], None), (self.ended(end), end.link))
        self.assertFalse(self.links.perform())
        self.assertEqual((4, 1), (len(self.network.asked), len(self.ended(end))))

    def test_inactive(self) -> None:
        """Before the log is loaded no connection is made, and none is forgotten."""
        end = self.up()
        self.node.outbox.connects.clear()
        self.links.active = False
        self.ask(end)
        self.assertFalse(self.links.perform())
        self.assertEqual(([], []), (self.network.asked, self.ended(end)))
        self.links.active = True
        self.assertTrue(self.links.perform())
        self.assertEqual(4, len(self.network.asked))

    def test_each_alone(self) -> None:
        """Each kind of wish alone is work."""
        end = self.up()
        outbox, node = self.node.outbox, self.node.membership.nodes[B]
        outbox.connects.clear()
        link = end.link
        assert link is not None
        outbox.hangups.append(link)
        self.assertEqual([True, False], [self.links.perform() for _ in range(2)])
        outbox.connects.append(node)
        self.assertEqual([True, False], [self.links.perform() for _ in range(2)])
        outbox.resolves.append((b"host", 1))
        self.assertEqual([True, False], [self.links.perform() for _ in range(2)])


class ReceivingTests(LinksCase):
    """How much is received at once."""

    def test_room(self) -> None:
        """Of a busy link more is received at once, and again in the same turn, until it has
        little; a quiet one gets a small buffer."""
        pump = BusPump(self.node, self.links, MessageDelivery(self.node))
        end = self.up()
        rooms: list[int] = []

        def received(size: int, room: int) -> bytes:
            rooms.append(room)
            return b"\0" * min(size, room)

        again: list[tuple[int, int]] = []
        event = (7, EPOLLIN)
        for size in (100, 4_096, 65_536, 2_048, 2_047, 100):
            end.recv = partial(received, size)
            self.assertEqual([], pump.serve([event], {7: end}, again))
            end.link = None  # what was received is no message
        self.assertEqual([4_096, 4_096, 65_536, 65_536, 65_536, 4_096], rooms)
        self.assertEqual([event] * 2, again)

    def test_other_node(self) -> None:
        """A message of a node that is not known makes nobody trusted."""
        pump = BusPump(self.node, self.links, MessageDelivery(self.node))
        for sender, trusted in ((b"f" * 40, False), (B, True)):
            end = self.up()
            message = Gossip(0, [])
            Sender(sender, 7711, MYSELF, b"", 0).sign(message)
            pump.receive(end, encode(message))
            self.assertEqual(trusted, end.trusted)
