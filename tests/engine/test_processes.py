"""Tests for :mod:`disque_tx.engine.processes`."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.engine.ownership import log_files
from disque_tx.engine.processes import Emptying, jobs_left, node_files, nodes_known, reaches
from disque_tx.messages.nodes import FAIL, HANDSHAKE, PFAIL
from tests.core.flowbench import FlowTestCase
from tests.core.peerbench import PeerCase


class EmptyingTests(SynchronousTestCase):
    """When a node may end for good."""

    def test_empty(self) -> None:
        """A process may end when it was empty twice, and the others know the nodes it knows."""
        emptying = Emptying(0.0)
        others = [4, 3]
        self.assertFalse(emptying.may_end(1, 4, others, 1.0))
        self.assertFalse(emptying.may_end(0, 4, others, 2.0))
        self.assertFalse(emptying.may_end(0, 4, others, 3.0))
        self.assertTrue(emptying.may_end(0, 3, others, 4.0))

    def test_not_empty_again(self) -> None:
        """A job that comes meanwhile keeps it: it must be empty twice in a row."""
        emptying = Emptying(0.0)
        self.assertFalse(emptying.may_end(0, 2, [2], 1.0))
        self.assertFalse(emptying.may_end(1, 2, [2], 2.0))
        self.assertFalse(emptying.may_end(0, 2, [2], 3.0))
        self.assertTrue(emptying.may_end(0, 2, [2], 4.0))

    def test_others_never_learn(self) -> None:
        """A node that only the former process knows does not keep it for ever."""
        emptying = Emptying(0.0)
        for now_s in (1.0, 2.0):
            self.assertFalse(emptying.may_end(0, 9, [2], now_s))
        self.assertTrue(emptying.may_end(0, 9, [2], 20.0))

    def test_at_once(self) -> None:
        """A process that is empty from its first report on ends with the second one."""
        emptying = Emptying(7.0)
        reports = [emptying.may_end(0, 2, [2, 3], 8.0) for _ in range(3)]
        self.assertEqual([False, True, True], reports)

    def test_time_enough(self) -> None:
        """The others have 15 seconds from its beginning, not from when it is empty."""
        emptying = Emptying(100.0)
        found = [emptying.may_end(0, 9, [9, 2], at_s) for at_s in (101.0, 114.9, 115.0, 115.1)]
        self.assertEqual([False, False, False, True], found)
        self.assertFalse(emptying.may_end(1, 9, [9, 9], 200.0))

    def test_files(self) -> None:
        """Every file of a node is listed, in the order in which they go."""
        names = ("policies", "schedules", "pauses", "history")
        beside = [f"d/nodes.conf.{name}" for name in names]
        self.assertEqual(
            ["d/log", "d/log.queued", *beside, "d/nodes.conf", "d/nodes.conf.leaving"],
            node_files("d/nodes.conf", log_files("d/log")),
        )

    def test_order(self) -> None:
        """The nodes file goes after everything that the next start would have to remove, and a log
        that is not in use stays."""
        with_log = node_files("d/nodes.conf", log_files("d/log"))
        without = node_files("d/nodes.conf", [])
        self.assertEqual(["d/nodes.conf", "d/nodes.conf.leaving"], with_log[-2:])
        self.assertEqual(["d/log", "d/log.queued"], [p for p in with_log if p not in without])


class ReachTests(FlowTestCase):
    """Whether a process may send something to another one."""

    nodes = 2

    def test_flags(self) -> None:
        """A node that is only being met, or does not answer, is not reached; one without a link
        neither."""
        node, other = self.flow.nodes[0], self.flow.ids[1]
        entry = node.membership.nodes[other]
        self.assertTrue(reaches(node, other))
        self.assertFalse(reaches(node, b"f" * 40))
        for flag in (HANDSHAKE, PFAIL, FAIL):
            entry.flags |= flag
            self.assertFalse(reaches(node, other), flag)
            entry.flags &= ~flag
        self.assertEqual((2, 0), (nodes_known(node), jobs_left(node)))
        entry.flags |= HANDSHAKE
        self.assertEqual(1, nodes_known(node))
        entry.flags &= ~HANDSHAKE
        link, entry.link = entry.link, None
        self.assertFalse(reaches(node, other))
        entry.link = link

    def test_features(self) -> None:
        """A node of this program is reached once its link has shown that it is one, unless this one
        behaves as an original."""
        node, other = self.flow.nodes[0], self.flow.ids[1]
        link = node.membership.nodes[other].link
        assert link is not None
        for features, mine, reached in ((0, 0, True), (0, 1, False), (1, 1, True), (1, 0, True)):
            link.features = features
            node.membership.features = mine
            self.assertEqual(reached, reaches(node, other), (features, mine))


class LeftTests(PeerCase):
    """What keeps a node from ending for good."""

    def test_jobs_and_copies(self) -> None:
        """A job keeps a node, and so does a client that waits for copies, besides its job."""
        self.assertEqual(0, jobs_left(self.node))
        self.add(replicate=1)
        self.assertEqual(1, jobs_left(self.node))
        self.begin_add(3)
        self.assertEqual(3, jobs_left(self.node))
