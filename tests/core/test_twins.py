"""Two processes under one node ID: noticed, and one of them stands aside."""

from __future__ import annotations

from disque_tx.busmessages import GOTJOB, PING, PONG, Gossip, JobSignal
from disque_tx.core.twins import START_SPAN, TWIN
from disque_tx.errors import CommandError
from disque_tx.nodetable import MYSELF, Link, NodeEntry
from tests.core.bench import ME
from tests.core.peerbench import B, C, PeerCase, SaidList

#: Two starts, the second one later.
FIRST = 1_000 * START_SPAN
SECOND = 2_000 * START_SPAN
TIMEOUT_MS = 15_000
COPY_IP = b"10.0.9.9"


class TwinCase(PeerCase):
    """B is here since its first start, which speaks on our link and on its own."""

    def setUp(self) -> None:
        super().setUp()
        self.node.membership.standing.start = FIRST
        self.entry = self.node.membership.nodes[B]
        self.ping(self.accepted[B], FIRST)
        copy = Link(SaidList(), None, COPY_IP, b"10.0.0.1", self.now_ms, 99)
        self.copy = copy

    def gossip(
        self, link: Link, kind: int, start: int, sender: bytes = B, serial: int = 0, mflags: int = 0
    ) -> None:
        """A process says PING or PONG on its link."""
        message = Gossip(kind, [])
        message.sender = sender
        message.flags = MYSELF
        message.port = 7711
        message.epoch, message.serial, message.mflags = start, serial, mflags
        self.node.receive(link, message)

    def ping(self, link: Link, start: int) -> None:
        """B, or who has its ID, pings this node."""
        self.gossip(link, PING, start)

    def later(self, ms: int) -> None:
        """Time passes, and the cluster looks after itself."""
        self.pass_ms(ms)
        self.node.cluster.tick(self.now_ms)

    def answers(self, link: Link) -> list[Gossip]:
        """What was said on an accepted link."""
        sink = link.sink
        assert isinstance(sink, SaidList)
        messages, sink.messages = sink.messages, []
        return [message for message in messages if isinstance(message, Gossip)]

    def both_speak(self, seconds: int) -> None:
        """Both processes go on for a while."""
        for _ in range(seconds):
            self.later(1_000)
            self.ping(self.accepted[B], FIRST + 1)
            self.gossip(self.link_of(B), PONG, FIRST + 2)
            self.ping(self.copy, SECOND)

    def link_of(self, node: bytes) -> Link:
        """Our own link."""
        link = self.node.membership.nodes[node].link
        assert link is not None
        return link


class PeerTests(TwinCase):
    """What a third node does."""

    def test_address_stays(self) -> None:
        """The entry does not flip: the copy is not heeded, and the node stays where it is."""
        self.both_speak(5)
        self.assertEqual(b"10.0.0.%d" % B[0], self.entry.ip)
        self.assertEqual((True, 1), (self.entry.doubled, self.node.cluster.twins()))
        self.assertEqual(COPY_IP, self.entry.twin_ip)

    def test_both_are_told(self) -> None:
        """The copy hears whom it stands in the way of; the node hears that there is a copy."""
        self.both_speak(3)
        copy, node = self.answers(self.copy)[-1], self.answers(self.accepted[B])[-1]
        self.assertEqual((PONG, FIRST + 2), (copy.type, copy.serial))
        self.assertEqual((PONG, 0, TWIN), (node.type, node.serial, node.mflags & TWIN))

    def test_jobs_of_the_copy(self) -> None:
        """What the copy says of jobs is not taken for the node's word."""
        client = self.ask(2)
        self.ping(self.copy, SECOND)
        (wait,) = self.node.waiters.copies.values()
        message = JobSignal(GOTJOB, wait.job.id)
        message.sender = wait.job.nodes[1]
        before = set(wait.job.confirmed or ())
        if message.sender == B:
            self.node.receive(self.copy, message)
        self.assertEqual(before, set(wait.job.confirmed or ()))
        self.assertEqual([], self.said(client))

    def test_meeting_the_copy(self) -> None:
        """CLUSTER MEET with the address of the copy adds no node: its handshake ends, and the
        connection with it."""
        self.node.membership.meet(COPY_IP, 7711, 0, self.now_ms)
        (entry,) = [e for e in self.node.membership.nodes.values() if e.ip == COPY_IP]
        link = Link(SaidList(), entry, COPY_IP, b"10.0.0.1", self.now_ms, 98)
        self.node.cluster.link_up(entry, link, self.now_ms)
        self.gossip(link, PONG, SECOND)
        self.assertNotIn(entry, self.node.membership.nodes.values())
        self.assertEqual([link], self.node.outbox.hangups)

    def test_later_one_was_here_first(self) -> None:
        """Of two that are alive the one that was started first is the node, also for a node that
        heard the other one first."""
        self.unlink(B)
        self.ping(self.copy, SECOND)
        self.assertEqual((SECOND, COPY_IP), (self.entry.start, self.entry.ip))
        self.sinks[B] = SaidList()
        self.link(B)
        for _ in range(3):
            self.later(1_000)
            self.gossip(self.link_of(B), PONG, SECOND + 1) if self.entry.start != FIRST else None
            self.ping(self.accepted[B], FIRST)
        self.assertEqual((FIRST, b"10.0.0.%d" % B[0]), (self.entry.start, self.entry.ip))

    def test_gone_again(self) -> None:
        """When the copy is stopped, nothing is said of it any more."""
        self.both_speak(3)
        self.later(TIMEOUT_MS + 1_000)
        self.assertEqual((False, 0), (self.entry.doubled, self.node.cluster.twins()))

    def test_original(self) -> None:
        """Nodes of the original number nothing, and move as they always did."""
        self.entry.start = 0
        self.ping(self.copy, 0)
        self.assertEqual(COPY_IP, self.entry.ip)


class LegitimateTests(TwinCase):
    """What must go on to work at once."""

    def test_restart(self) -> None:
        """A restart at the same address, before the old connections are seen to be dead."""
        again = Link(SaidList(), None, self.entry.ip, b"10.0.0.1", self.now_ms, 98)
        for start in (SECOND, FIRST - 5 * START_SPAN):  # its clock may have been set back
            self.ping(again, start)
            self.assertEqual((start, False), (self.entry.start, again.muted))

    def test_restart_elsewhere(self) -> None:
        """A process that ended and was started elsewhere: its connections are closed."""
        self.unlink(B)
        self.ping(self.copy, SECOND)
        self.assertEqual((COPY_IP, False), (self.entry.ip, self.copy.muted))

    def test_elsewhere_after_silence(self) -> None:
        """The machine vanished without a word: its node may be elsewhere after the time-out."""
        self.ping(self.copy, SECOND)
        self.assertTrue(self.copy.muted)
        self.pass_ms(TIMEOUT_MS + 1_000)
        self.ping(self.copy, SECOND)
        self.assertEqual((COPY_IP, False), (self.entry.ip, self.copy.muted))

    def test_new_address(self) -> None:
        """A process that runs on gets another address."""
        moved = Link(SaidList(), None, COPY_IP, b"10.0.0.1", self.now_ms, 98)
        self.ping(moved, FIRST + 7)
        self.assertEqual((COPY_IP, False), (self.entry.ip, moved.muted))

    def test_late_message(self) -> None:
        """What a dead process said last may be heard after its successor, and means nothing."""
        again = Link(SaidList(), None, self.entry.ip, b"10.0.0.1", self.now_ms, 98)
        self.ping(again, SECOND)
        self.ping(self.accepted[B], FIRST)
        self.ping(again, SECOND)
        self.assertEqual((SECOND, False), (self.entry.start, again.muted))
        self.later(2_000)
        self.assertFalse(self.entry.doubled)


class AsideTests(TwinCase):
    """What the two processes do."""

    def objection(self, serial: int, mflags: int = 0) -> None:
        """C says whom it takes for this node."""
        self.gossip(self.link_of(C), PONG, 7 * START_SPAN, C, serial, mflags)

    def test_younger(self) -> None:
        """It neither takes jobs nor delivers any, and its clients go to other nodes."""
        waiting = self.wait(b"q")
        self.objection(FIRST - 5 * START_SPAN)
        self.assertTrue(self.node.membership.standing.aside)
        for refused in (lambda: self.add(replicate=1), lambda: self.get(b"q")):
            self.assertEqual("LEAVING", self.assertRaises(CommandError, refused).code)
        self.node.release_leaving()
        self.assertEqual(1, len(self.said(waiting)))

    def test_settled(self) -> None:
        """When nobody objects any more it takes part again."""
        self.objection(FIRST - 5 * START_SPAN)
        self.later(TIMEOUT_MS + 1_000)
        self.assertFalse(self.node.membership.standing.aside)
        self.add(replicate=1)

    def test_older(self) -> None:
        """It goes on, and knows."""
        for serial, mflags in ((SECOND, 0), (0, TWIN)):
            self.objection(serial, mflags)
            standing = self.node.membership.standing
            self.assertEqual((False, True), (standing.aside, standing.doubled))
            self.later(TIMEOUT_MS + 1_000)
            self.assertFalse(standing.doubled)

    def test_itself(self) -> None:
        """A message under the own ID: from a link to itself, or from another process."""
        for start, doubled in ((FIRST + 3, False), (SECOND, True)):
            link = Link(SaidList(), None, COPY_IP, b"10.0.0.1", self.now_ms, 97)
            self.gossip(link, PING, start, ME)
            self.assertIs(doubled, self.node.membership.standing.doubled)
            self.assertEqual(link, self.node.outbox.hangups.pop())

    def test_handshake_with_a_copy(self) -> None:
        """CLUSTER MEET with the copy ends as one with itself, but it is noted."""
        entry = NodeEntry(b"f" * 40, COPY_IP, 7711, 8, self.now_ms)
        self.node.membership.add(entry)
        entry.link = Link(SaidList(), entry, COPY_IP, b"10.0.0.1", self.now_ms, 96)
        self.gossip(entry.link, PONG, SECOND, ME)
        self.assertNotIn(entry.id, self.node.membership.nodes)
        self.assertTrue(self.node.membership.standing.doubled)
