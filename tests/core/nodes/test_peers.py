"""Sending messages, and recognizing repeated ones (cluster protocol, sections 2 and 3)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.nodes.peers import SeenSerials
from disque_tx.messages.bus import JobSignal, QueueSignal
from disque_tx.messages.bustypes import (
    CAN_KEYS,
    CAN_QUERY,
    CAN_TABLES,
    DELJOB,
    ENQUEUE,
    PAUSE,
    WORKING,
)
from disque_tx.messages.nodes import FAIL, HANDSHAKE, LEAVING, MYSELF, PFAIL
from tests import profiles  # noqa: F401
from tests.core.bench import ME, make_job
from tests.core.peerbench import B, C, D, PeerCase


class PeersTests(PeerCase):
    """``Peers``."""

    def test_header(self) -> None:
        """Every message names its sender, and whether the sender is leaving."""
        self.node.membership.announce(b"192.0.2.1", 0, 20_000)
        self.leave()
        self.node.peers.send(B, JobSignal(DELJOB, b"x" * 40))
        (message,) = self.sent_to(B)
        self.assertEqual(
            (ME, 7711, MYSELF | LEAVING, b"192.0.2.1", 20_000),
            (message.sender, message.port, message.flags, message.ip, message.bus_port),
        )
        self.assertEqual(1, self.node.membership.messages_sent)

    def test_no_link(self) -> None:
        """A message to an unknown node, or to a node without a link, is lost."""
        self.unlink(B)
        for node in (B, D):
            self.node.peers.send(node, JobSignal(DELJOB, b"x" * 40))
        self.assertEqual([], self.sent_to(B))
        self.assertEqual(0, self.node.membership.messages_sent)

    def test_reached(self) -> None:
        """A node is reached while it has a link and does not fail; what it can do is known by the
        features that its link has shown, as far as this node has them, too."""
        peers, entry = self.node.peers, self.node.membership.nodes[B]
        link = entry.link
        assert link is not None
        self.node.membership.features = CAN_TABLES | CAN_QUERY
        link.features = CAN_TABLES | CAN_KEYS

        def seen(node_id: bytes) -> tuple[bool, ...]:
            known = (peers.knows(node_id, one) for one in (CAN_TABLES, CAN_QUERY, CAN_KEYS))
            return (peers.reaches(node_id), peers.is_ours(node_id), *known)

        self.assertEqual((True, True, True, False, False), seen(B))
        self.assertEqual((True, False, False, False, False), seen(C))
        self.assertEqual((False,) * 5, seen(D))
        for flag in (FAIL, PFAIL):
            entry.flags |= flag
            self.assertEqual((False, True, False, False, False), seen(B), flag)
            entry.flags &= ~flag
        self.unlink(B)
        self.assertEqual((False,) * 5, seen(B))

    def test_holders(self) -> None:
        """The holders of a job are sent the message, except this node and unknown nodes in the
        list."""
        job = make_job(1)
        job.nodes = (ME, C, D)
        self.node.peers.notify_holders(job, WORKING)
        self.assertEqual(([], ["WORKING"]), (self.sent_names(B), self.sent_names(C)))

    def test_signal_to_holders(self) -> None:
        """A message with a number goes to all other holders alike, also where this node's ID is
        another object with the same bytes."""
        job = make_job(1)
        job.nodes = (B, bytes(bytearray(ME)), D, C)
        self.node.peers.signal_holders(job, DELJOB, 7)
        for peer in (B, C):
            message = self.sent_signal(peer)
            self.assertEqual((DELJOB, job.id, 7), (message.type, message.job_id, message.aux))
        self.assertEqual(2, self.node.membership.messages_sent)

    def test_known_holders(self) -> None:
        """Nodes of ours learn how many holders are known here; the original gets what it sends."""
        job = make_job(1)
        job.nodes = (ME, B, C, D)
        link = self.node.membership.nodes[C].link
        assert link is not None
        link.features = CAN_TABLES
        self.node.peers.notify_holders(job, WORKING)
        self.assertEqual((0, 4), (self.sent_signal(B).aux, self.sent_signal(C).aux))

    def test_everybody(self) -> None:
        """A broadcast goes to every node with a link, except handshakes."""
        self.node.membership.nodes[C].flags |= HANDSHAKE
        self.assertTrue(self.node.peers.broadcast(QueueSignal(PAUSE, b"q", 1)))
        self.assertEqual((["PAUSE"], []), (self.sent_names(B), self.sent_names(C)))
        self.unlink(B)
        self.assertFalse(self.node.peers.broadcast(QueueSignal(PAUSE, b"q", 1)))

    def test_numbers(self) -> None:
        """Messages that must not be processed twice are numbered per link; a new link starts at
        one."""
        entry = self.node.membership.nodes[B]
        for _ in range(2):
            self.assertTrue(self.node.peers.send_once(entry, JobSignal(ENQUEUE, b"x" * 40)))
        self.assertEqual([(1, 1), (1, 2)], [(m.epoch, m.serial) for m in self.sent_to(B)])
        self.unlink(B)
        self.assertFalse(self.node.peers.send_once(entry, JobSignal(ENQUEUE, b"x" * 40)))
        self.link(B)
        self.node.peers.send_once(entry, JobSignal(ENQUEUE, b"x" * 40))
        self.assertEqual(1, self.sent_signal(B).serial)


def numbered(sender: bytes, epoch: int, serial: int) -> JobSignal:
    """A message that must not be processed twice."""
    message = JobSignal(ENQUEUE, b"x" * 40)
    message.sender, message.epoch, message.serial = sender, epoch, serial
    return message


class ReceivedTests(SynchronousTestCase):
    """``SeenSerials``."""

    @given(st.lists(st.tuples(st.sampled_from((B, C)), st.integers(1, 2), st.integers(1, 5))))
    def test_never_twice(self, arrivals: list[tuple[bytes, int, int]]) -> None:
        """Whatever is repeated or reordered, no message is processed twice."""
        received = SeenSerials()
        accepted = [key for key in arrivals if received.first(numbered(*key))]
        self.assertEqual(len(set(accepted)), len(accepted))

    @given(st.integers(1, 2**63 - 1))
    def test_in_order(self, epoch: int) -> None:
        """On a connection that delivers once and in order, nothing is refused."""
        received = SeenSerials()
        for serial in (1, 2, 3, 2**63 - 1):
            self.assertTrue(received.first(numbered(B, epoch, serial)))

    def test_originals(self) -> None:
        """Originals do not number their messages, which are always accepted."""
        received = SeenSerials()
        for _ in range(2):
            self.assertTrue(received.first(numbered(B, 0, 0)))

    def test_bounded(self) -> None:
        """The number of remembered links is bounded; the least recently used ones go first."""
        received = SeenSerials()
        received.first(numbered(B, 1, 1))
        received.first(numbered(B, 2, 1))
        for epoch in range(SeenSerials.LINKS_MAX - 1):
            received.first(numbered(C, epoch + 1, 1))
            received.first(numbered(B, 2, 2 + epoch))
        self.assertFalse(received.first(numbered(B, 2, 2)))
        self.assertTrue(received.first(numbered(B, 1, 1)))
