"""Acknowledgements that only lost nodes did not confirm, on a node that leaves."""

from __future__ import annotations

from disque_tx.messages.bustypes import DELJOB, GOTACK, SETACK
from tests.core.delivery.test_acks import AckCase
from tests.core.peerbench import B, C


class AbandonedTests(AckCase):
    """A job of which B and C have copies was acknowledged here, and B is lost."""

    def setUp(self) -> None:
        super().setUp()
        self.job_here = self.replicated(B, C)
        self.node.acknowledge([self.job_here.id])
        self.leave()
        self.clear_sent()

    def give_up(self, *lost: bytes) -> bool:
        """Whether the acknowledgement is given up when these nodes are lost."""
        return self.node.acks.give_up(self.job_here, lambda node: node in lost)

    def test_others_first(self) -> None:
        """It is kept while a node that is not lost has not confirmed it."""
        self.assertFalse(self.give_up(B))
        self.assertFalse(self.give_up(C))
        self.assertIs(self.job_here, self.node.jobs.get(self.job_here.id))
        self.assertEqual([[], []], [self.signals(B), self.signals(C)])

    def test_given_up(self) -> None:
        """Once all others have confirmed it, these may forget the job, and this node does."""
        self.receive_signal(C, GOTACK, self.job_here.id, 1)
        self.assertTrue(self.give_up(B))
        self.assertEqual([[(DELJOB, 0)]] * 2, [self.signals(B), self.signals(C)])
        self.assert_nothing_left()

    def test_all_lost(self) -> None:
        """If all others are lost nothing is left to wait for."""
        self.assertTrue(self.give_up(B, C))
        self.assert_nothing_left()

    def test_asked_in_time(self) -> None:
        """A node that has not confirmed is asked again within eight seconds and a bit, and not at
        each look."""
        job = self.job_here
        for later_ms, asked in ((8_400, []), (8_500, []), (9_000, [(SETACK, 0)])):
            job.qtime_ms = self.now_ms + later_ms
            self.assertFalse(self.give_up(B))
            self.assertEqual(asked, self.signals(C), later_ms)
        self.assertLessEqual(job.qtime_ms, self.now_ms + 8_500)
