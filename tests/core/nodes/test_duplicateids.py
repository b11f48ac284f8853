"""Two processes with the same node ID: detected, and one of them stops serving clients."""

from __future__ import annotations

from disque_tx.core.nodes.duplicateids import DUPLICATE_ID, START_SPAN
from disque_tx.errors import CommandError
from disque_tx.messages.bus import Gossip, JobSignal
from disque_tx.messages.bustypes import GOTJOB, PING, PONG
from disque_tx.messages.nodes import MYSELF, Link, NodeEntry
from tests.core.bench import ME
from tests.core.peerbench import B, C, PeerCase, SentMessages

#: The start times of two processes, the second one later.
FIRST = 1_000 * START_SPAN
SECOND = 2_000 * START_SPAN
TIMEOUT_MS = 15_000
COPY_IP = b"10.0.9.9"


class TwinCase(PeerCase):
    """B's process has run since its first start, and has links in both directions."""

    def setUp(self) -> None:
        super().setUp()
        self.node.membership.identity.start = FIRST
        self.entry = self.node.membership.nodes[B]
        self.ping(self.accepted[B], FIRST)
        copy = Link(SentMessages(), None, COPY_IP, b"10.0.0.1", self.now_ms, 99)
        self.copy = copy

    def gossip(
        self, link: Link, kind: int, start: int, sender: bytes = B, serial: int = 0, mflags: int = 0
    ) -> None:
        """The node receives PING or PONG from a process."""
        message = Gossip(kind, [])
        message.sender = sender
        message.flags = MYSELF
        message.port = 7711
        message.epoch, message.serial, message.mflags = start, serial, mflags
        self.node.receive(link, message)

    def ping(self, link: Link, start: int) -> None:
        """The node receives a PING from B or from a process with its ID."""
        self.gossip(link, PING, start)

    def later(self, ms: int) -> None:
        """Time passes, and the cluster's periodic work is done."""
        self.pass_ms(ms)
        self.node.cluster.tick()

    def answers(self, link: Link) -> list[Gossip]:
        """The gossip messages sent on an accepted link."""
        sink = link.sink
        assert isinstance(sink, SentMessages)
        messages, sink.messages = sink.messages, []
        return [message for message in messages if isinstance(message, Gossip)]

    def both_ping(self, seconds: int) -> None:
        """Both processes send heartbeats for a while."""
        for _ in range(seconds):
            self.later(1_000)
            self.ping(self.accepted[B], FIRST + 1)
            self.gossip(self.link_of(B), PONG, FIRST + 2)
            self.ping(self.copy, SECOND)

    def link_of(self, node: bytes) -> Link:
        """Our own link to a node."""
        link = self.node.membership.nodes[node].link
        assert link is not None
        return link


class PeerTests(TwinCase):
    """How a third node behaves."""

    def test_address_stays(self) -> None:
        """The entry does not flip: the copy's messages are ignored, and the node keeps its
        address."""
        self.both_ping(5)
        self.assertEqual(b"10.0.0.%d" % B[0], self.entry.ip)
        self.assertEqual((True, 1), (self.entry.contested, self.node.cluster.duplicate_ids()))
        self.assertEqual(COPY_IP, self.entry.duplicate_ip)

    def test_both_are_notified(self) -> None:
        """The copy learns which process it conflicts with; the node learns that there is a copy."""
        self.both_ping(3)
        copy, node = self.answers(self.copy)[-1], self.answers(self.accepted[B])[-1]
        self.assertEqual((PONG, FIRST + 2), (copy.type, copy.serial))
        self.assertEqual(
            (PONG, 0, DUPLICATE_ID), (node.type, node.serial, node.mflags & DUPLICATE_ID)
        )

    def test_jobs_of_the_copy(self) -> None:
        """The copy's messages about jobs are not taken for the node's."""
        client = self.begin_add(2)
        self.ping(self.copy, SECOND)
        (wait,) = self.node.waiters.copies.values()
        message = JobSignal(GOTJOB, wait.job.id)
        message.sender = wait.job.nodes[1]
        before = set(wait.job.confirmed or ())
        if message.sender == B:
            self.node.receive(self.copy, message)
        self.assertEqual(before, set(wait.job.confirmed or ()))
        self.assertEqual([], self.replies(client))

    def test_meeting_the_copy(self) -> None:
        """CLUSTER MEET with the address of the copy adds no node: the handshake ends, and its
        connection is closed."""
        self.node.membership.meet(COPY_IP, 7711, 0, self.now_ms)
        (entry,) = [e for e in self.node.membership.nodes.values() if e.ip == COPY_IP]
        link = Link(SentMessages(), entry, COPY_IP, b"10.0.0.1", self.now_ms, 98)
        self.node.cluster.link_up(entry, link)
        self.gossip(link, PONG, SECOND)
        self.assertNotIn(entry, self.node.membership.nodes.values())
        self.assertEqual([link], self.node.outbox.hangups)

    def test_later_one_was_here_first(self) -> None:
        """Of two live processes the one that started first is the node, even for a peer that met
        the other one first."""
        self.unlink(B)
        self.ping(self.copy, SECOND)
        self.assertEqual((SECOND, COPY_IP), (self.entry.start, self.entry.ip))
        self.sinks[B] = SentMessages()
        self.link(B)
        for _ in range(3):
            self.later(1_000)
            self.gossip(self.link_of(B), PONG, SECOND + 1) if self.entry.start != FIRST else None
            self.ping(self.accepted[B], FIRST)
        self.assertEqual((FIRST, b"10.0.0.%d" % B[0]), (self.entry.start, self.entry.ip))

    def test_gone_again(self) -> None:
        """When the copy is stopped, the conflict is no longer reported."""
        self.both_ping(3)
        self.later(TIMEOUT_MS + 1_000)
        self.assertEqual((False, 0), (self.entry.contested, self.node.cluster.duplicate_ids()))

    def test_copy_takes_over(self) -> None:
        """When the node is stopped and its copy takes its place, the conflict is no longer
        reported: an operator who stopped the wrong one of the two is done."""
        self.both_ping(3)
        self.unlink(B)
        self.ping(self.copy, SECOND)
        self.assertEqual(COPY_IP, self.entry.ip)
        self.later(1_000)
        self.assertEqual((False, 0), (self.entry.contested, self.node.cluster.duplicate_ids()))

    def test_original(self) -> None:
        """Nodes of the original do not number their starts, and may move as always."""
        self.entry.start = 0
        self.ping(self.copy, 0)
        self.assertEqual(COPY_IP, self.entry.ip)


class LegitimateTests(TwinCase):
    """What must continue to work at once."""

    def test_restart(self) -> None:
        """A restart at the same address, before the old connections are found to be dead."""
        again = Link(SentMessages(), None, self.entry.ip, b"10.0.0.1", self.now_ms, 98)
        for start in (SECOND, FIRST - 5 * START_SPAN):  # its clock may have been set back
            self.ping(again, start)
            self.assertEqual((start, False), (self.entry.start, again.ignored))

    def test_restart_elsewhere(self) -> None:
        """A process that ended and was started elsewhere: its old connections are closed."""
        self.unlink(B)
        self.ping(self.copy, SECOND)
        self.assertEqual((COPY_IP, False), (self.entry.ip, self.copy.ignored))

    def test_elsewhere_after_silence(self) -> None:
        """The machine vanished without closing connections: after the timeout its node may be
        elsewhere."""
        self.ping(self.copy, SECOND)
        self.assertTrue(self.copy.ignored)
        self.pass_ms(TIMEOUT_MS + 1_000)
        self.ping(self.copy, SECOND)
        self.assertEqual((COPY_IP, False), (self.entry.ip, self.copy.ignored))

    def test_new_address(self) -> None:
        """A running process gets another address."""
        moved = Link(SentMessages(), None, COPY_IP, b"10.0.0.1", self.now_ms, 98)
        self.ping(moved, FIRST + 7)
        self.assertEqual((COPY_IP, False), (self.entry.ip, moved.ignored))

    def test_late_message(self) -> None:
        """The last message of a dead process may arrive after those of its successor, and is
        ignored."""
        again = Link(SentMessages(), None, self.entry.ip, b"10.0.0.1", self.now_ms, 98)
        self.ping(again, SECOND)
        self.ping(self.accepted[B], FIRST)
        self.ping(again, SECOND)
        self.assertEqual((SECOND, False), (self.entry.start, again.ignored))
        self.later(2_000)
        self.assertFalse(self.entry.contested)


class AsideTests(TwinCase):
    """How the two processes behave."""

    def objection(self, serial: int, mflags: int = 0) -> None:
        """C reports which process it takes for this node."""
        self.gossip(self.link_of(C), PONG, 7 * START_SPAN, C, serial, mflags)

    def test_younger(self) -> None:
        """It neither accepts nor delivers jobs, and its clients are directed to other nodes."""
        waiting = self.wait(b"q")
        self.objection(FIRST - 5 * START_SPAN)
        self.assertTrue(self.node.membership.identity.suspended)
        for refused in (lambda: self.add(replicate=1), lambda: self.get(b"q")):
            self.assertEqual("LEAVING", self.assertRaises(CommandError, refused).code)
        self.node.release_leaving()
        self.assertEqual(1, len(self.replies(waiting)))

    def test_settled(self) -> None:
        """When there are no more objections for a while it serves clients again."""
        self.objection(FIRST - 5 * START_SPAN)
        self.later(TIMEOUT_MS - 1_000)
        self.assertTrue(self.node.membership.identity.suspended)
        self.later(2_000)
        self.assertFalse(self.node.membership.identity.suspended)
        self.add(replicate=1)

    def test_older(self) -> None:
        """It continues, and reports that there is a copy."""
        for serial, mflags in ((SECOND, 0), (0, DUPLICATE_ID)):
            self.objection(serial, mflags)
            identity = self.node.membership.identity
            self.assertEqual((False, True), (identity.suspended, identity.contested))
            self.later(TIMEOUT_MS - 1_000)
            self.assertTrue(identity.contested)
            self.later(2_000)
            self.assertFalse(identity.contested)

    def test_itself(self) -> None:
        """A message with the node's own ID: from a link to itself, or from another process."""
        for start, doubled in ((FIRST + 3, False), (SECOND, True)):
            link = Link(SentMessages(), None, COPY_IP, b"10.0.0.1", self.now_ms, 97)
            self.gossip(link, PING, start, ME)
            self.assertIs(doubled, self.node.membership.identity.contested)
            self.assertEqual(link, self.node.outbox.hangups.pop())

    def test_handshake_with_a_copy(self) -> None:
        """CLUSTER MEET with the copy ends like one with itself, but the conflict is recorded."""
        entry = NodeEntry(b"f" * 40, COPY_IP, 7711, 8, self.now_ms)
        self.node.membership.add(entry)
        entry.link = Link(SentMessages(), entry, COPY_IP, b"10.0.0.1", self.now_ms, 96)
        self.gossip(entry.link, PONG, SECOND, ME)
        self.assertNotIn(entry.id, self.node.membership.nodes)
        self.assertTrue(self.node.membership.identity.contested)
