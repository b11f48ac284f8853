"""When a node counts as suspected, and when as failed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.nodes.failure import (
    clear_failure,
    failing,
    link_is_stale,
    majority_agrees,
    majority_answers,
    mark_failed,
    overdue,
)
from disque_tx.messages.bus import BusSink
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


def entry(flags: int = 0, ping_sent_ms: int = 0) -> NodeEntry:
    """A node table entry."""
    made = NodeEntry(b"b" * 40, b"::1", 7711, flags, 0)
    made.ping_sent_ms = ping_sent_ms
    return made


class SuspicionTests(SynchronousTestCase):
    """PFAIL."""

    def test_overdue(self) -> None:
        """The timeout counts from the first unanswered PING and must have fully elapsed."""
        self.assertEqual(False, overdue(entry(ping_sent_ms=50), 50 + T_MS, T_MS))
        self.assertEqual(True, overdue(entry(ping_sent_ms=50), 51 + T_MS, T_MS))
        self.assertEqual(False, overdue(entry(), 10**9, T_MS))

    def test_suspected_once(self) -> None:
        """A failed node does not become merely suspected again."""
        for flags in (PFAIL, FAIL):
            self.assertEqual(False, overdue(entry(flags, 50), 10**9, T_MS))

    def test_stale_link(self) -> None:
        """A link is replaced before its node is suspected only if both link and unanswered PING are
        old."""
        node = entry(ping_sent_ms=2_000)
        self.assertEqual(False, link_is_stale(node, 9_999, T_MS))
        node.link = Link(BusSink(), node, b"::1", b"::1", 1_000, 1)
        self.assertEqual(False, link_is_stale(node, 2_500, T_MS))
        self.assertEqual(True, link_is_stale(node, 2_501, T_MS))
        node.pong_received_ms = 2_000  # as both are after a restart
        self.assertEqual(True, link_is_stale(node, 2_501, T_MS))
        node.link.created_ms = 1_600
        self.assertEqual(False, link_is_stale(node, 2_600, T_MS))
        node.ping_sent_ms = 0
        self.assertEqual(False, link_is_stale(node, 9_999, T_MS))


class VerdictTests(SynchronousTestCase):
    """FAIL."""

    @given(st.integers(1, 20), st.integers(0, 20))
    def test_majority(self, size: int, reports: int) -> None:
        """Two majorities always share a node, so a partitioned cluster never marks nodes failed on
        both sides."""
        node = entry(PFAIL)
        node.reports = {b"%040d" % number: 100 for number in range(reports)}
        self.assertEqual(2 * (reports + 1) > size, majority_agrees(node, size, 100, T_MS))

    def test_own_opinion(self) -> None:
        """Reports of others are not enough: this node must suspect it, too, and decides only
        once."""
        for flags in (0, FAIL):
            node = entry(flags)
            node.reports = {b"%040d" % number: 100 for number in range(9)}
            self.assertEqual(False, majority_agrees(node, 5, 100, T_MS))

    def test_old_reports(self) -> None:
        """Reports expire, and then are no evidence."""
        node = entry(PFAIL)
        node.reports = {b"x" * 40: 100, b"y" * 40: 101}
        self.assertEqual(False, majority_agrees(node, 5, 101 + 2 * T_MS, T_MS))
        self.assertEqual({b"y" * 40: 101}, node.reports)

    def test_condemn_and_acquit(self) -> None:
        """A node is suspected or failed, never both; any reply clears both at once."""
        node = entry(PFAIL | LEAVING)
        mark_failed(node, 77)
        self.assertEqual((FAIL | LEAVING, 77, True), (node.flags, node.failed_ms, failing(node)))
        self.assertEqual(True, clear_failure(node))
        self.assertEqual((LEAVING, False), (node.flags, failing(node)))
        self.assertEqual(False, clear_failure(node))


class AnsweringTests(SynchronousTestCase):
    """The majority that must answer while a node is suspected, which was last seen at 1,000."""

    def setUp(self) -> None:
        self.node = entry(PFAIL)
        self.node.pong_received_ms = 1_000
        self.others = [self.member(2), self.member(3)]

    def member(self, number: int, created_ms: int = 1_000) -> NodeEntry:
        """Another node, which this one knows since then, and which answered at 9,000."""
        made = NodeEntry(b"%040d" % number, b"::1", 7711, 0, created_ms)
        made.pong_received_ms = 9_000
        return made

    def answers(self) -> bool:
        """Whether a majority has answered since 9,000."""
        myself = NodeEntry(b"a" * 40, b"", 7711, MYSELF, 0)
        return majority_answers(self.node, [myself, self.node, *self.others], 9_000)

    def test_majority(self) -> None:
        """This node and one of two others that have a vote, like the suspected one, are no
        majority: so the smaller side of a partition never marks the nodes of the larger one."""
        self.assertEqual(True, self.answers())
        self.others[0].pong_received_ms -= 1
        self.assertEqual(False, self.answers())

    def test_joined_later(self) -> None:
        """Nodes that joined later are no part of the majority, nor are those of a handshake."""
        self.others.append(self.member(4))
        self.others[0].pong_received_ms -= 1
        self.assertEqual(True, self.answers())
        self.others[1].created_ms = 1_001
        self.assertEqual(False, self.answers())
        self.others[1].created_ms = 1_000
        self.others[2].flags = HANDSHAKE
        self.assertEqual(False, self.answers())

    def test_replaced(self) -> None:
        """If another node is at its address, those that joined later count: a node is found to have
        failed though it was one of only two when it was last seen."""
        for other in self.others:
            other.created_ms = 1_001
        self.assertEqual(False, self.answers())
        self.node.flags |= NOADDR
        self.assertEqual(True, self.answers())
        self.others[0].pong_received_ms = self.others[1].pong_received_ms = 1_000
        self.assertEqual(False, self.answers())
        self.others[0].flags = self.others[1].flags = HANDSHAKE
        self.assertEqual(False, self.answers())
