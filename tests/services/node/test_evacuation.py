"""A node that is stopped gives its jobs away first, for a limited time."""

from __future__ import annotations

from disque_tx.core.healing.healing import NO_NODE
from disque_tx.messages.nodes import NodeEntry
from disque_tx.services.node.evacuation import _ALONE_S, ShutdownEvacuation
from tests.services.nodebench import NodeCase


class ShutdownTests(NodeCase):
    """``shutdown-evacuates``."""

    def setUp(self) -> None:
        super().setUp()
        self.settings.shutdown_evacuates = 30
        self.ended: list[float] = []
        self.evacuation = ShutdownEvacuation(self.runtime, self.settings, self.reactor, self.log)

    def begin(self) -> bool:
        """The node is about to stop."""
        return self.evacuation.begin(lambda: self.ended.append(self.reactor.seconds()))

    def add_member(self) -> None:
        """Another node is known, which cannot be reached."""
        entry = NodeEntry(b"d" * 40, b"10.0.0.2", 7711, 0, 0)
        self.node.membership.add(entry)
        self.node.membership.refresh()

    def add_job(self) -> None:
        """A job of which only this node has a copy."""
        self.turn(b"ADDJOB q body 0 REPLICATE 1")

    def pass_s(self, seconds: float) -> None:
        """Let time pass, in steps."""
        self.reactor.pump([0.25] * int(seconds * 4))

    def test_off(self) -> None:
        """Without the setting, and for a node that knows no other, there is nothing to wait for."""
        self.assertFalse(self.begin())
        self.add_member()
        self.settings.shutdown_evacuates = 0
        self.assertFalse(self.begin())
        self.assertFalse(self.node.membership.leaving)

    def test_empty(self) -> None:
        """A node without jobs stops as soon as the others can know that it leaves; the next start
        finds it a member."""
        self.add_member()
        self.assertTrue(self.begin())
        self.assertTrue(self.node.membership.leaving)
        self.pass_s(5)
        self.assertEqual(1, len(self.ended))
        self.evacuation.stopped()
        self.assertFalse(self.node.membership.leaving)

    def test_nobody(self) -> None:
        """When no node takes the jobs, there is no point in waiting to the end of the time."""
        self.add_member()
        self.add_job()
        self.begin()
        self.pass_s(9)
        self.assertEqual([], self.ended)
        self.pass_s(4)
        self.assertEqual(1, len(self.ended))

    def test_left_before(self) -> None:
        """A node that was leaving anyway stays so."""
        self.add_member()
        self.node.membership.set_leaving(True)
        self.begin()
        self.pass_s(5)
        self.evacuation.stopped()
        self.assertTrue(self.node.membership.leaving)

    def test_nobody_for_long(self) -> None:
        """A node that leaves already and finds nobody waits as long as any: somebody may come."""
        self.add_member()
        self.add_job()
        with self.runtime.turn():
            self.node.membership.set_leaving(True)
            self.node.evacuation.begin()
        self.node.evacuation.obstacle = NO_NODE
        self.begin()
        self.reactor.advance(_ALONE_S - 0.01)
        self.assertEqual([], self.ended)
        self.node.evacuation.obstacle = NO_NODE
        self.reactor.advance(1)
        self.assertEqual(1, len(self.ended))

    def test_said(self) -> None:
        """The operator reads that it begins, and that all jobs went."""
        self.add_member()
        self.begin()
        self.pass_s(5)
        begun = "# The node gives its jobs to others before it stops, 30 s at most\n"
        self.assertRegex(self.logged(), f"{begun}.*# The node is empty: 0 jobs went to others\n")

    def test_said_why(self) -> None:
        """The operator reads how many jobs did not go, and why."""
        self.add_member()
        self.add_job()
        self.begin()
        self.pass_s(30)
        self.assertRegex(self.logged(), r"# 1 job could not be given away \([^)]+\)\n$")

    def test_time_over(self) -> None:
        """The time that is set is the longest that the node waits."""
        self.settings.shutdown_evacuates = 4
        self.add_member()
        self.add_job()
        self.begin()
        self.pass_s(5)
        self.assertEqual(1, len(self.ended))
        self.assertTrue(self.evacuation.over)
