"""A node that leaves is not empty before the others know that it leaves: they may give it jobs."""

from __future__ import annotations

from disque_tx.messages.nodes import FAIL, HANDSHAKE
from tests.core.leaving.leavebench import LeaveCase

_EMPTY_AFTER_MS = 3_000


class AnnouncedTests(LeaveCase):
    """A node without jobs that leaves, and others of which one was last heard before."""

    def setUp(self) -> None:
        super().setUp()
        self.flow.run(1_000)
        self.evacuate(0)
        self.begun_ms = self.flow.now_ms
        for at in (1, 2, 3):
            self.flow.entry(0, at).pong_received_ms = self.begun_ms + 1

    def test_all_know(self) -> None:
        """Once all others have answered since it began to leave it is empty, but not before two
        seconds, in which messages of others may be under way."""
        self.pass_ms(1_900)
        self.assertEqual(1, self.left(0))
        self.pass_ms(_EMPTY_AFTER_MS - 1_900)
        self.assertEqual(0, self.left(0))

    def test_one_may_not_know(self) -> None:
        """While a node that can be reached has not answered since then, it is not empty."""
        for at, before_ms in ((1, 1_000), (2, 1), (3, 0)):
            self.setUp()
            entry = self.flow.entry(0, at)
            entry.pong_received_ms = self.begun_ms - before_ms
            self.pass_ms(_EMPTY_AFTER_MS)
            self.assertEqual(1, self.left(0), at)
            entry.pong_received_ms = self.begun_ms + 1
            self.pass_ms(1_000)
            self.assertEqual(0, self.left(0))

    def test_not_waited_for(self) -> None:
        """One that cannot be reached, fails, or is only being met, is not waited for."""
        for flag in (0, FAIL, HANDSHAKE):
            self.setUp()
            entry = self.flow.entry(0, 2)
            entry.pong_received_ms = self.begun_ms - 1
            entry.flags |= flag
            if not flag:
                self.cut(2)
            self.pass_ms(_EMPTY_AFTER_MS)
            self.assertEqual(0, self.left(0), flag)
