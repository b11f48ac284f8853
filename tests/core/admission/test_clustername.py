"""Two clusters stay two, whatever addresses they are given."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.admission.clustername import ClusterName, name_mark
from disque_tx.messages.bus import Gossip
from disque_tx.messages.bustypes import ALL_FEATURES, CAN_NAME, MEET, PING
from disque_tx.messages.nodes import Link
from tests.core.clusterbench import PORT, Net, Peer, Pipe


class IntroductionTests(SynchronousTestCase):
    """One node is told to meet another one."""

    def setUp(self) -> None:
        self.net = Net(2)
        self.first, self.second = self.net.nodes

    def named(self, peer: Peer, name: bytes, password_mark: int = 0) -> ClusterName:
        """Give a node its name, and return what it keeps of that."""
        kept = peer.membership.cluster_name
        kept.set(name, password_mark)
        return kept

    def members(self) -> tuple[int, int]:
        """How many nodes each of the two has in its table, after an introduction."""
        self.first.meet(self.second, self.net.now_ms)
        self.net.run(3_000)
        return len(self.first.known_ids()), len(self.second.known_ids())

    def test_same(self) -> None:
        """Nodes of one name become one cluster."""
        self.named(self.first, b"shop")
        self.named(self.second, b"shop")
        self.assertEqual((2, 2), self.members())

    def test_other(self) -> None:
        """Nodes of different names stay apart, at once, and both sides count the other and keep
        its ID and address for the log."""
        first, second = self.named(self.first, b"shop"), self.named(self.second, b"stage")
        self.assertEqual((1, 1), self.members())
        self.assertEqual({self.second.id: self.second.ip}, first.seen)
        self.assertEqual({self.first.id: self.first.ip}, second.seen)
        self.assertEqual((1, 1), (first.refused, second.refused))

    def test_none(self) -> None:
        """A node without a name is no member of a cluster that has one, in either direction."""
        self.named(self.first, b"shop")
        self.assertEqual((1, 1), self.members())
        self.second.meet(self.first, self.net.now_ms)
        self.net.run(3_000)
        self.assertEqual(1, len(self.second.known_ids()))

    def test_passwords(self) -> None:
        """Different passwords keep nodes apart; one that sends none is not asked for it."""
        self.named(self.first, b"", 17)
        self.named(self.second, b"", 18)
        self.assertEqual((1, 1), self.members())
        self.named(self.second, b"", 0)
        self.assertEqual((2, 2), self.members())

    def test_renamed(self) -> None:
        """Members stay members when one of them is renamed, so that a cluster can be named one
        node at a time."""
        self.assertEqual((2, 2), self.members())
        self.named(self.first, b"shop")
        self.net.run(60_000)
        self.assertEqual((2, 2), (len(self.first.known_ids()), len(self.second.known_ids())))
        self.assertEqual(0, self.first.flags_of(self.second))

    def test_original(self) -> None:
        """An original, or a version without names, gets no PONG from a node with a name: it would
        take that for a welcome. It gets one if there is no name."""
        for features in (0, ALL_FEATURES & ~CAN_NAME):
            for name, replies in ((b"shop", 0), (b"", 1)):
                self.named(self.first, name)
                for kind in (MEET, PING):
                    link = Link(Pipe(), None, b"10.9.0.%d" % replies, b"10.0.0.1", 0, 0)
                    message = Gossip(kind, [])
                    message.sender, message.port = b"e" * 40, PORT
                    message.epoch, message.features = 1 if features else 0, features
                    self.net.run(2_000)
                    self.first.receive(link, message, self.net.now_ms)
                    sent = link.sink
                    assert isinstance(sent, Pipe)
                    self.assertEqual(replies, len(sent.sent))

    def test_spread(self) -> None:
        """Gossip about nodes of another cluster, as a member tells it that was moved there, makes
        them no members."""
        net = Net(3)
        ours, moved, theirs = net.nodes
        moved.meet(ours, net.now_ms)
        net.run(3_000)
        self.named(ours, b"shop")
        self.named(theirs, b"stage")
        self.named(moved, b"stage")
        moved.meet(theirs, net.now_ms)
        net.run(60_000)
        self.assertEqual({moved.id, theirs.id}, theirs.known_ids())
        self.assertEqual({moved.id, ours.id}, ours.known_ids())


class MarkTests(SynchronousTestCase):
    """What is sent of a name."""

    def test_mark(self) -> None:
        """The mark is that of all versions, fits into four bytes, and is 0 for no name only."""
        self.assertEqual(0, name_mark(b""))
        self.assertEqual(0xC67504EA, name_mark(b"shop"))

    def test_bounded(self) -> None:
        """However many strangers are refused, few are kept for the log."""
        kept = ClusterName()
        for number in range(1_000):
            kept.refuse(b"%040d" % number, b"10.0.0.1")
        self.assertEqual((1_000, 100), (kept.refused, len(kept.seen)))
