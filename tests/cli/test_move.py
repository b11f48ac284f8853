"""How fast ``disque move`` goes."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.move import Pace


class PaceTests(SynchronousTestCase):
    """``Pace``."""

    def test_rate(self) -> None:
        """So many a second, what the work itself takes included."""
        clock = Clock()
        pace = Pace(4.0, clock.advance, clock.seconds)
        for work_s in (0.0, 0.1, 0.25):
            began_s = clock.seconds()
            clock.advance(work_s)
            pace.rest(began_s)
        self.assertAlmostEqual(0.75, clock.seconds())

    def test_behind(self) -> None:
        """Work that takes longer is not made up for."""
        clock = Clock()
        clock.advance(10)
        Pace(4.0, clock.advance, clock.seconds).rest(0.0)
        self.assertEqual(10.0, clock.seconds())

    def test_no_limit(self) -> None:
        """Without a rate nobody waits."""
        clock = Clock()
        Pace(None, clock.advance, clock.seconds).rest(0.0)
        self.assertEqual(0.0, clock.seconds())
