"""Which nodes to ping, and which nodes to describe in the message."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.nodes.gossip import described, longest_silent, news, selection, silent
from disque_tx.core.nodes.membership import Membership
from disque_tx.messages.bus import BusSink
from disque_tx.messages.bustypes import PING
from disque_tx.messages.nodes import (
    FAIL,
    HANDSHAKE,
    LEAVING,
    MYSELF,
    NOADDR,
    PFAIL,
    Link,
    NodeEntry,
)

T_MS = 1_000


def linked(number: int, flags: int = 0, pong_received_ms: int = 1) -> NodeEntry:
    """A node with a link."""
    entry = NodeEntry(b"%040d" % number, b"10.0.0.%d" % number, 7711, flags, 0)
    entry.link = Link(BusSink(), entry, entry.ip, b"::1", 0, 1)
    entry.pong_received_ms = pong_received_ms
    return entry


def table(*others: NodeEntry) -> list[NodeEntry]:
    """This node and the others."""
    return [NodeEntry(b"a" * 40, b"::1", 7711, MYSELF, 0), *others]


class PingTests(SynchronousTestCase):
    """Which nodes to ping."""

    def test_longest_silent(self) -> None:
        """Of the nodes drawn, the one with the oldest PONG is pinged."""
        entries = table(linked(1, 0, 30), linked(2, 0, 10), linked(3, 0, 20))
        draws = iter([0.3, 0.8, 0.3, 0.8, 0.3])
        self.assertIs(entries[3], longest_silent(entries, lambda: next(draws)))

    def test_no_node_to_ping(self) -> None:
        """This node, handshakes, nodes with a PING under way and nodes without a link are not
        pinged."""
        asked, unlinked = linked(1), linked(2)
        asked.ping_sent_ms = 5
        unlinked.link = None
        entries = table(asked, unlinked, linked(3, HANDSHAKE))
        random = Random(1)
        for _ in range(50):
            self.assertIsNone(longest_silent(entries, random.random))

    def test_silent(self) -> None:
        """Every node is pinged twice per node timeout, and at once if it never replied."""
        entry = linked(1, 0, 100)
        self.assertEqual(False, silent(entry, 100 + T_MS // 2, T_MS))
        self.assertEqual(True, silent(entry, 101 + T_MS // 2, T_MS))
        entry.ping_sent_ms = 9
        self.assertEqual(False, silent(entry, 10**6, T_MS))
        self.assertEqual(True, silent(linked(1, 0, 0), 1, T_MS))


class SelectionTests(SynchronousTestCase):
    """Which nodes to describe."""

    def test_sizes(self) -> None:
        """In small clusters a message describes every node except its sender and receiver, in large
        ones a tenth of them."""
        for others, most in ((0, 0), (1, 0), (2, 1), (3, 2), (4, 3), (38, 3), (59, 6)):
            entries = table(*[linked(number, PFAIL) for number in range(others)])
            random = Random(others)
            sizes = {len(selection(entries, random.random)) for _ in range(200)}
            self.assertEqual(most, max(sizes), others)

    def test_nothing_new(self) -> None:
        """The gossip of a hundred healthy nodes must not grow with the square of their number."""
        entries = table(*[linked(number) for number in range(99)])
        sizes = {len(selection(entries, Random(seed).random)) for seed in range(100)}
        self.assertEqual(3, max(sizes))

    @given(st.integers(0, 30), st.integers(0, 2**32))
    def test_who(self, others: int, seed: int) -> None:
        """No node is described twice, nor nodes without ID, nor this node; nor nodes without
        address, unless they fail, which a majority has to learn."""
        random = Random(seed)
        flags = (0, 0, PFAIL, FAIL, LEAVING, NOADDR, NOADDR | PFAIL, HANDSHAKE)
        entries = table(*[linked(number, random.choice(flags)) for number in range(others)])
        chosen = selection(entries, random.random)
        self.assertEqual(len(chosen), len({entry.id for entry in chosen}))
        for entry in chosen:
            self.assertEqual(0, entry.flags & (MYSELF | HANDSHAKE))
            self.assertNotEqual(NOADDR, entry.flags & (NOADDR | PFAIL))

    def test_failing_first(self) -> None:
        """Failures must spread fast, so a failing node is described more often."""
        entries = table(*[linked(number) for number in range(18)], linked(18, PFAIL))
        random = Random(3)
        failing = sum(entries[-1] in selection(entries, random.random) for _ in range(1_000))
        healthy = sum(entries[1] in selection(entries, random.random) for _ in range(1_000))
        self.assertGreater(failing, 1.3 * healthy)

    def test_without_link(self) -> None:
        """A failed node is described though it has no link; a healthy one only while it is being
        connected."""
        for flags, connecting, expected in ((FAIL, False, 1), (0, True, 1), (0, False, 0)):
            entry = linked(1, flags)
            entry.link, entry.connecting = None, connecting
            entries = table(entry, linked(2, HANDSHAKE))
            random = Random(1)
            most = max(len(selection(entries, random.random)) for _ in range(50))
            self.assertEqual(expected, most, (flags, connecting))


class NewsTests(SynchronousTestCase):
    """The contents of a message."""

    def test_described(self) -> None:
        """The receiver gets what it needs to connect to the node itself."""
        entry = linked(7, FAIL | LEAVING, 5)
        entry.bus_port = 9_000
        gossiped = described(entry, 1_795_000_000_000)
        self.assertEqual(
            (entry.id, b"10.0.0.7", 7711, FAIL | LEAVING, 9_000),
            (gossiped.id, gossiped.ip, gossiped.port, gossiped.flags, gossiped.bus_port),
        )
        self.assertEqual(
            (0, 1_795_000_000_005 % 2**32), (gossiped.ping_sent_ms, gossiped.pong_received_ms)
        )

    def test_news(self) -> None:
        """A message describes the selected nodes of the table."""
        entries = table(linked(1, PFAIL), linked(2, HANDSHAKE))
        membership = Membership(entries[0], lambda: b"")
        for entry in entries[1:]:
            membership.add(entry)
        message = news(PING, membership, lambda: 0.5)
        self.assertEqual((PING, [entries[1].id]), (message.type, [t.id for t in message.entries]))
