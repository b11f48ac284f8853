"""The idle timeout of connections."""

from __future__ import annotations

from math import inf

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.tx.idle import IdleTimeout
from tests.forwardclock import ForwardClock


class IdleTimeoutTests(SynchronousTestCase):
    """A timeout that is checked at least once a second."""

    def setUp(self) -> None:
        self.clock = ForwardClock()
        self.allowed_s: float | None = 3.0
        self.expired: list[float] = []
        self.timeout = IdleTimeout(self.clock, 1.0, lambda: self.allowed_s, self.expired.append)

    def begin(self) -> None:
        """From now on, a reply is expected."""
        self.timeout.restart()
        self.timeout.start()

    def pass_s(self, seconds: int) -> None:
        """Advance the clock."""
        self.clock.pump([0.5] * (2 * seconds))

    def test_too_long(self) -> None:
        """The timeout is measured from the latest reply, and expires once."""
        self.begin()
        self.pass_s(2)
        self.timeout.restart()
        self.pass_s(2)
        self.assertEqual([], self.expired)
        self.pass_s(9)
        self.assertEqual([3.0], self.expired)

    def test_nothing_expected(self) -> None:
        """A connection that expects no reply uses no timer."""
        self.begin()
        self.allowed_s = None
        self.pass_s(9)
        self.assertEqual(([], []), (self.expired, self.clock.getDelayedCalls()))

    def test_for_ever(self) -> None:
        """While a request without a timeout waits, the check continues, because another request may
        follow."""
        self.begin()
        self.allowed_s = inf
        self.pass_s(9)
        self.allowed_s = 3.0
        self.pass_s(1)
        self.assertEqual([3.0], self.expired)

    def test_shorter(self) -> None:
        """A long wait that is over at once does not keep the timeout of the next request from being
        noticed."""
        self.allowed_s = 300.0
        self.begin()
        self.pass_s(2)
        self.allowed_s = 3.0
        self.timeout.restart()
        self.pass_s(4)
        self.assertEqual([3.0], self.expired)

    def test_stopped(self) -> None:
        """Stopping leaves no timer; it may be repeated, and followed by a new start."""
        for _ in range(2):
            self.begin()
            self.timeout.start()
            self.timeout.stop()
            self.timeout.stop()
            self.assertEqual([], self.clock.getDelayedCalls())
        self.begin()
        self.pass_s(3)
        self.assertEqual([3.0], self.expired)
