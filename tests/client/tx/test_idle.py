"""How long a node may be silent."""

from __future__ import annotations

from math import inf

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.tx.idle import Silence


class SilenceTests(SynchronousTestCase):
    """A watch that looks once a second at least."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.allowed_s: float | None = 3.0
        self.over: list[float] = []
        self.silence = Silence(self.clock, 1.0, lambda: self.allowed_s, self.over.append)

    def begin(self) -> None:
        """Something is expected from now on."""
        self.silence.broken()
        self.silence.watch()

    def pass_s(self, seconds: int) -> None:
        """Let so much time pass."""
        self.clock.pump([0.5] * (2 * seconds))

    def test_too_long(self) -> None:
        """It counts from what was heard last, and it is reported once."""
        self.begin()
        self.pass_s(2)
        self.silence.broken()
        self.pass_s(2)
        self.assertEqual([], self.over)
        self.pass_s(9)
        self.assertEqual([3.0], self.over)

    def test_nothing_expected(self) -> None:
        """A connection that is idle costs no timer."""
        self.begin()
        self.allowed_s = None
        self.pass_s(9)
        self.assertEqual(([], []), (self.over, self.clock.getDelayedCalls()))

    def test_for_ever(self) -> None:
        """A wait without end is looked at again, as it may be followed by another request."""
        self.begin()
        self.allowed_s = inf
        self.pass_s(9)
        self.allowed_s = 3.0
        self.pass_s(1)
        self.assertEqual([3.0], self.over)

    def test_stopped(self) -> None:
        """Stopped, it leaves no timer, may be stopped again, and watched again."""
        for _ in range(2):
            self.begin()
            self.silence.watch()
            self.silence.stop()
            self.silence.stop()
            self.assertEqual([], self.clock.getDelayedCalls())
        self.begin()
        self.pass_s(3)
        self.assertEqual([3.0], self.over)
