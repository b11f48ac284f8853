"""How long something took, counted by bounds."""

from __future__ import annotations

from bisect import bisect_left

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.statistics.waits import BOUNDS_MS, Histogram, place_of


class HistogramTests(SynchronousTestCase):
    """One histogram."""

    def test_bounds(self) -> None:
        """A duration that is as long as a bound belongs to it, as Prometheus wants it."""
        for elapsed_ms, bound_ms in (
            (0, 1.0), (1, 1.0), (2, 2.5), (3, 5.0), (999, 1_000.0), (1_000, 1_000.0),
            (1_001, 2_500.0), (2_500, 2_500.0), (2_501, 5_000.0), (7_199_999, 7_200_000.0),
            (7_200_000, 7_200_000.0),
        ):  # fmt: skip
            histogram = Histogram()
            histogram.add(elapsed_ms)
            self.assertEqual(1, histogram.counts()[BOUNDS_MS.index(bound_ms)], elapsed_ms)
        histogram = Histogram()
        for elapsed_ms in (7_200_001, 10_000_000):
            histogram.add(elapsed_ms)
        self.assertEqual(2, histogram.counts()[-1])
        self.assertEqual(17_200_001, histogram.sum_ms)

    def test_searched(self) -> None:
        """The place that is looked up is the one that a search finds."""
        for elapsed_ms in (*range(5_000), *range(5_000, 7_300_000, 997)):
            expected = bisect_left(BOUNDS_MS, elapsed_ms)
            self.assertEqual(expected, place_of(elapsed_ms), elapsed_ms)
