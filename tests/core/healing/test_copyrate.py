"""How many copies may be made now."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.base.part import Turn
from disque_tx.core.healing.copyrate import RATE, CopyRate


class CopyRateTests(SynchronousTestCase):
    """The rate of one node, which begins at a second of its clock."""

    def setUp(self) -> None:
        self.turn = Turn()
        self.turn.begin(1_000, 0)
        self.rate = CopyRate(self.turn)

    def later(self, ms: int) -> None:
        """Time passes."""
        self.turn.begin(self.turn.now_ms + ms, 0)

    def spend(self) -> int:
        """Make all copies that may be made now; how many."""
        budget = int(self.rate.budget(0))
        self.rate.pay(budget)
        return budget

    def test_default(self) -> None:
        """Without configuration it is 2,000 jobs per second, 200 per turn at most."""
        self.assertEqual((2_000, 2_000), (RATE, self.rate.per_s))
        self.assertEqual(200, self.spend())

    def test_pace(self) -> None:
        """As many as the rate says in each second, however often is looked, and no more."""
        for per_s, step_ms in ((50, 20), (50, 100), (1_000, 10)):
            self.rate.set(per_s)
            self.spend()
            made = 0
            for _ in range(10_000 // step_ms):
                self.later(step_ms)
                made += self.spend()
            self.assertTrue(10 * per_s - 2 <= made <= 10 * per_s + 2, (per_s, step_ms, made))

    def test_slow(self) -> None:
        """Every slow rate makes copies, also one that does not divide a second evenly: never more
        than it says, and no less than half of that, however seldom is looked."""
        for per_s in range(1, 12):
            self.rate.set(per_s)
            made = 0
            for _ in range(600):
                self.later(100)
                made += self.spend()
            self.assertTrue(30 * per_s <= made <= 60 * per_s + 1, (per_s, made))

    def test_saved_up(self) -> None:
        """After a pause a tenth of a second is made up for, or one job of a slow rate, not the
        whole pause."""
        for per_s, burst in ((500, 50), (10, 1), (1, 1)):
            self.rate.set(per_s)
            self.later(60_000)
            self.assertEqual(burst, self.spend())
            self.assertEqual(0, self.spend())

    def test_under_way(self) -> None:
        """Nothing is made while as many wait for their confirmation as the rate allows in two
        seconds, or a hundred of a slower one."""
        self.assertEqual([200, 0], [int(self.rate.budget(n)) for n in (3_999, 4_000)])
        self.rate.set(10)
        self.assertEqual([1, 0], [int(self.rate.budget(n)) for n in (99, 100)])

    def test_none(self) -> None:
        """A rate of none makes nothing, and what is made all the same is not paid for later."""
        self.rate.set(0)
        self.assertEqual(0, self.rate.budget(0))
        self.rate.pay(1_000)
        self.rate.set(100)
        self.assertEqual(10, self.rate.budget(0))

    def test_another(self) -> None:
        """Another rate holds from now on: what was spent by the former one is over."""
        self.rate.set(1)
        self.rate.pay(100)
        self.assertEqual(0, self.rate.budget(0))
        self.rate.set(100)
        self.assertEqual(10, self.rate.budget(0))
