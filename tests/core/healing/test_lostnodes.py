"""When a node counts as lost."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.base.part import Turn
from disque_tx.core.healing.lostnodes import ABOUT_TO_LEAVE, ALIVE, LOST, LostNodes
from disque_tx.core.nodes.membership import Membership
from disque_tx.messages.bus import BusSink
from disque_tx.messages.nodes import FAIL, HANDSHAKE, LEAVING, MYSELF, Link, NodeEntry
from tests.core.bench import ME
from tests.core.healing.healbench import AFTER_MS, LONG_MS, HealCase


class LoadedTests(HealCase):
    """The nodes file says that a node fails, but not since when."""

    def test_from_the_start(self) -> None:
        """Its time begins when this node does: it may be about to return with its copies."""
        job_id = self.add_job(0)
        holder = self.other_holder(0, job_id)
        self.kill(holder)
        for here in set(range(self.nodes)) - {holder}:
            entry = self.flow.entry(here, holder)
            entry.flags |= FAIL
            entry.failed_ms = 0
        self.pass_ms(AFTER_MS - 3_000)
        self.assertEqual(([0], 0), (self.holders(job_id), sum(self.made())))
        self.pass_ms(8_000)
        self.assertEqual((2, 1), (len(self.holders(job_id)), sum(self.made())))


class GivenTests(HealCase):
    """A node of the original gives away a job whose holders nobody replaced."""

    nodes = 6
    originals = (0,)

    def test_copies_made(self) -> None:
        """Who gets the job has its copies made, though no node was lost since."""
        self.flow.nodes[0].healing.nodes.after_ms = 0
        job_id = self.add_job(0, replicate=3)
        for holder in self.holders(job_id)[1:]:
            self.kill(holder)
        self.pass_ms(LONG_MS)
        self.assertEqual([0], self.holders(job_id))
        taker = next(at for at in range(1, self.nodes) if at not in self.dead)
        client = self.wait(taker)
        self.pass_ms(LONG_MS)
        self.assertEqual(([True], 3), (self.served(client), len(self.holders(job_id))))


class LostNodesTests(SynchronousTestCase):
    """The table of one node with others; a node is lost after a hundred seconds."""

    def setUp(self) -> None:
        self.turn = Turn()
        self.membership = Membership(NodeEntry(ME, b"", 7711, MYSELF, 0), lambda: b"f" * 40)
        self.lost = LostNodes(self.turn, self.membership)
        self.lost.after_ms = 100_000
        self.entries = {name: self.add(name) for name in (b"b", b"c")}
        self.at(1_000)

    def add(self, name: bytes) -> NodeEntry:
        """Another node, which can take copies."""
        entry = NodeEntry(name * 40, b"10.0.0.2", 7711, 0, 0)
        entry.link = Link(BusSink(), entry, b"", b"", 0, 1)
        self.membership.add(entry)
        self.membership.refresh()
        return entry

    def at(self, now_ms: int) -> bool:
        """Whether anything is another at this time than before."""
        self.turn.begin(now_ms, now_ms * 1_000)
        return self.lost.update()

    def status(self, name: bytes) -> int:
        """What a node is as a holder."""
        return int(self.lost.status(name * 40))

    def test_failed(self) -> None:
        """A node in FAIL is lost after the time that is set, to the millisecond, and is none any
        more when it is back; 0 is never."""
        entry = self.entries[b"b"]
        entry.flags |= FAIL
        entry.failed_ms = 5_000
        self.assertEqual((False, ALIVE), (self.at(104_999), self.status(b"b")))
        self.assertEqual((True, LOST), (self.at(105_000), self.status(b"b")))
        self.assertEqual(105_000, self.lost.since_ms(b"b" * 40))
        self.assertEqual((False, ALIVE), (self.at(106_000), self.status(b"c")))
        self.lost.after_ms = 0
        self.assertEqual((True, ALIVE), (self.at(300_000), self.status(b"b")))
        self.lost.after_ms = 100_000
        self.assertTrue(self.at(300_001))
        entry.flags &= ~FAIL
        self.assertEqual((True, ALIVE), (self.at(300_002), self.status(b"b")))
        self.assertEqual(0, self.lost.since_ms(b"b" * 40))

    def test_given_up(self) -> None:
        """A node that is to be forgotten is lost at once while it fails, from the first time that
        this was said; one that does not fail is not."""
        for name in (b"b", b"c"):
            self.lost.give_up(name * 40)
        self.entries[b"b"].flags |= FAIL
        self.entries[b"b"].failed_ms = 1_000
        self.at(2_000)
        self.lost.give_up(b"b" * 40)
        self.assertEqual((LOST, ALIVE), (self.status(b"b"), self.status(b"c")))
        self.assertEqual(1_000, self.lost.since_ms(b"b" * 40))
        self.entries[b"b"].flags &= ~FAIL
        self.at(3_000)
        self.entries[b"b"].flags |= FAIL
        self.entries[b"b"].failed_ms = 4_000
        self.at(4_000)
        self.assertEqual(ALIVE, self.status(b"b"))

    def test_removed(self) -> None:
        """A node that was removed from the table is lost at once, until it is there again; none is
        where copies are never made again."""
        del self.membership.nodes[b"b" * 40]
        self.membership.refresh()
        self.assertTrue(self.at(2_000))
        self.assertEqual((LOST, 2_000), (self.status(b"b"), self.lost.since_ms(b"b" * 40)))
        self.assertFalse(self.lost.knows(b"b" * 40))
        self.assertTrue(self.lost.knows(b"c" * 40))
        self.lost.after_ms = 0
        self.assertEqual((True, ALIVE), (self.at(2_500), self.status(b"b")))
        self.lost.after_ms = 100_000
        self.assertEqual((True, LOST), (self.at(2_600), self.status(b"b")))
        self.add(b"b")
        self.assertTrue(self.at(3_000))
        self.assertEqual(ALIVE, self.status(b"b"))

    def test_given_up_and_removed(self) -> None:
        """A node that was to be forgotten, was removed, and is a member again later, is not lost
        when it fails then."""
        for name in (b"b", b"c"):
            self.lost.give_up(name * 40)
            del self.membership.nodes[name * 40]
        self.membership.refresh()
        self.assertTrue(self.at(2_000))
        for name in (b"b", b"c"):
            entry = self.add(name)
            entry.flags |= FAIL
            entry.failed_ms = 3_000
        self.assertTrue(self.at(3_000))
        self.assertEqual((ALIVE, ALIVE), (self.status(b"b"), self.status(b"c")))
        self.assertTrue(self.at(103_000))
        self.assertEqual((LOST, LOST), (self.status(b"b"), self.status(b"c")))

    def test_unknown(self) -> None:
        """A holder that was never known is lost a while after it was first seen in a list, not
        after it was seen last."""
        self.at(5_000)
        self.assertEqual(ALIVE, self.status(b"d"))
        self.at(50_000)
        self.assertEqual(ALIVE, self.status(b"d"))
        self.assertEqual((False, ALIVE), (self.at(104_999), self.status(b"d")))
        self.assertEqual((True, LOST), (self.at(105_000), self.status(b"d")))
        self.assertEqual(105_000, self.lost.since_ms(b"d" * 40))
        self.add(b"d")
        self.assertEqual((True, ALIVE), (self.at(105_001), self.status(b"d")))

    def test_leaving(self) -> None:
        """A node that leaves is about to, since it was first seen to."""
        self.entries[b"b"].flags |= LEAVING
        self.assertTrue(self.at(2_000))
        self.assertFalse(self.at(9_000))
        self.assertEqual(ABOUT_TO_LEAVE, self.status(b"b"))
        self.assertEqual(2_000, self.lost.since_ms(b"b" * 40))
        self.entries[b"b"].flags &= ~LEAVING
        self.assertEqual((True, ALIVE), (self.at(9_001), self.status(b"b")))

    def test_takers(self) -> None:
        """This node counts among those that can be given copies, unless it leaves, and others once
        they are linked in both directions; when there are more than before, that is known, and less
        is no growth."""
        self.assertEqual((3, 1_000), (self.lost.takers, self.lost.grown_ms))
        self.entries[b"b"].link = None
        self.assertTrue(self.at(2_000))
        self.assertEqual((2, 1_000), (self.lost.takers, self.lost.grown_ms))
        entry = self.add(b"d")
        self.assertTrue(self.at(3_000))
        self.assertEqual((3, 3_000), (self.lost.takers, self.lost.grown_ms))
        entry.numbers = True
        self.assertTrue(self.at(3_500))
        self.assertEqual(2, self.lost.takers)
        entry.newest_link = 1
        self.assertTrue(self.at(3_600))
        self.membership.set_leaving(True)
        self.assertTrue(self.at(4_000))
        self.assertEqual(2, self.lost.takers)

    def test_handshakes(self) -> None:
        """A node that is only being met is not known: it may never be a member."""
        self.entries[b"b"].flags |= HANDSHAKE
        self.at(2_000)
        self.assertFalse(self.lost.knows(b"b" * 40))

    def test_bounded(self) -> None:
        """Of very many unknown holders the first ones are forgotten."""
        names = [b"%040d" % number for number in range(10_003)]
        for name in names:
            self.lost.status(name)
        self.assertTrue(self.at(101_000))
        self.assertEqual(names[3:], list(self.lost.lost))
