"""Which nodes answer for keys, and when."""

from __future__ import annotations

from disque_tx.core.keys.joining import JOIN_MS, SYNC_MS
from disque_tx.messages.nodes import FAIL, HANDSHAKE, NOADDR, PFAIL, NodeEntry
from tests.core.unique.keybench import A, B, C, KeyCase


class StartTests(KeyCase):
    """Nodes that have started a moment ago."""

    members = (A, B)

    def answered_after(self, flags: int) -> bool:
        """Whether a producer has its answer within a second, while the node knows a third one with
        these flags, which it has not reached."""
        self.setUp()
        membership = self.cluster.up[A].membership
        membership.add(NodeEntry(C, b"10.0.0.9", 7711, flags, self.cluster.now_ms))
        client = self.begin_add(A, replicate=1)
        self.cluster.run(1_000)
        return bool(client.replies.values)  # type: ignore[attr-defined]

    def test_all_reached(self) -> None:
        """Producers do not wait once all members are reached that can be: neither for one that
        failed, nor for one that is not a member yet or has no address."""
        client = self.begin_add(A, replicate=1)
        self.cluster.run(1_000)
        self.assertEqual(1, self.reply(client)[1])  # type: ignore[index]
        for flags in (FAIL, HANDSHAKE, NOADDR):
            self.assertTrue(self.answered_after(flags), flags)

    def test_not_reached(self) -> None:
        """A member that may keep the key is waited for, but not for long."""
        self.assertFalse(self.answered_after(0))
        self.cluster.run(JOIN_MS)
        self.assertEqual(1, self.add(A, b"other", replicate=1)[1])


class CutOffTests(KeyCase):
    """C is cut off from all others for a while, and suspects that they are down."""

    def setUp(self) -> None:
        super().setUp()
        self.cluster.part(C)
        membership = self.cluster.up[C].membership
        for other in (A, B):
            membership.nodes[other].flags = PFAIL
        self.cluster.run(1_000)
        self.view = self.cluster.up[C].keys.view
        self.assertTrue(self.view.ready())

    def reach(self, other: bytes) -> None:
        """C and another node are connected again."""
        self.cluster.up[C].membership.nodes[other].flags = 0
        self.cluster.link(C, other)
        self.cluster.link(other, C)

    def test_one_after_the_other(self) -> None:
        """It answers nobody before it has reached all of them: the first one may know no more of
        what happened meanwhile than itself."""
        self.reach(A)
        self.cluster.run(500)
        self.assertFalse(self.view.ready())
        self.reach(B)
        self.cluster.run(200)
        self.assertTrue(self.view.ready())

    def test_one_is_down(self) -> None:
        """One that most nodes found to be down is not waited for, and one that nobody can say
        anything about not for long."""
        self.cluster.up[C].membership.nodes[B].flags = FAIL
        self.reach(A)
        self.cluster.run(200)
        self.assertTrue(self.view.ready())
        self.cluster.part(C)
        self.cluster.run(500)
        self.cluster.up[C].membership.nodes[B].flags = PFAIL
        self.reach(A)
        self.cluster.run(SYNC_MS - 200)
        self.assertFalse(self.view.ready())
        self.cluster.run(400)
        self.assertTrue(self.view.ready())


class EightTests(KeyCase):
    """So many nodes that most have nothing to do with a key."""

    members = tuple(b"%d" % number * 40 for number in range(1, 9))

    def test_free_at_once(self) -> None:
        """A key is free as soon as its job is acknowledged, whichever nodes look after it."""
        first, *_, last = self.members
        names = [b"k%d" % number for number in range(20)]
        done = [self.add(first, key, replicate=1)[0] for key in names]
        self.cluster.up[first].acknowledge(done)
        self.cluster.up[first].serve()
        self.cluster.settle()
        self.assertEqual({0}, {len(node.keys) for node in self.cluster.up.values()})
        self.assertEqual({1}, {self.add(last, key, replicate=1)[1] for key in names})
