"""Figures of queues, summed over nodes and compared over time."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.modes.bigqueues import Longest
from disque_tx.cli.verbs.queues.figures import JobRates, QueueSummary, cells, rates, total
from disque_tx.cli.verbs.queues.watch import summed
from disque_tx.client.requests.counting import QueueCounts
from disque_tx.client.values import QueueStat

STAT = QueueStat("q", 3, 10, 1, 2, (), 0, 100, 90, "none")


class TotalsTests(SynchronousTestCase):
    """Totals over all queues of the nodes."""

    def test_summed(self) -> None:
        """Numbers of jobs are summed, and the oldest age is that of all nodes; nodes of the
        original do not report them, and a cluster with only such nodes has no totals."""
        ours = [
            {"queued_jobs": "3", "jobs_in_flight": "1", "oldest_queued_job_age_seconds": "60"},
            {"queued_jobs": "4", "jobs_in_flight": "0", "oldest_queued_job_age_seconds": "5"},
        ]
        expected = {"queued_jobs": 7, "jobs_in_flight": 1, "oldest_queued_job_age_seconds": 60}
        self.assertEqual(expected, summed([*ours, {}]))
        self.assertEqual({}, summed([{}, {"queued_jobs": "-"}]))

    def test_former_name(self) -> None:
        """Nodes of 1.0.0 in the cluster are counted; newer ones report both names, and once."""
        older, newer = {"jobs_in_hand": "1"}, {"jobs_in_flight": "2", "jobs_in_hand": "2"}
        self.assertEqual({"jobs_in_flight": 3}, summed([older, newer]))


class FiguresTests(SynchronousTestCase):
    """``total``, ``rates`` and ``cells``."""

    def test_total(self) -> None:
        """The figures of a queue are summed over all nodes; a node without the queue adds
        nothing."""
        other = attrs.evolve(STAT, length=4, age_s=5, pause="out")
        expected = QueueSummary("q", 7, 10, 4, 200, 180, "none/out")
        self.assertEqual(expected, total("q", [(STAT, None), (None, None), (other, None)]))
        self.assertEqual(QueueSummary("q"), total("q", [(None, None)]))

    def test_counted(self) -> None:
        """What nodes of disque-tx count is summed over them; without any of these it is unknown,
        and not zero."""
        counts = QueueCounts("q", 3, 1, 2, 4, 5, 0, 0, 1.5, 2.5, 6)
        figures = total("q", [(STAT, counts), (None, counts), (STAT, None)])
        counted = (figures.delayed, figures.backoff, figures.in_flight, figures.dead)
        self.assertEqual((2, 4, 8, 10, 12), (*counted, figures.loaded))
        self.assertEqual(JobRates(3.0, 5.0), rates(None, figures, 0))
        self.assertEqual(("2", "4", "8", "10", "12"), cells(figures, JobRates())[-5:])
        self.assertEqual(("-",) * 5, cells(QueueSummary("q"), JobRates())[-5:])

    def test_rates(self) -> None:
        """Rates are per second, never negative when a node was restarted, and unknown at first."""
        before = QueueSummary("q", jobs_in=100, jobs_out=50)
        after = QueueSummary("q", jobs_in=110, jobs_out=20)
        self.assertEqual(JobRates(5.0, 0.0), rates(before, after, 2.0))
        self.assertEqual(JobRates(None, None), rates(None, after, 2.0))

    def test_names_are_escaped(self) -> None:
        """Control bytes in the name of a queue never reach the terminal."""
        self.assertEqual("a?[31m", cells(QueueSummary("a\x1b[31m"), JobRates())[0])


class LongestTests(SynchronousTestCase):
    """``Longest``."""

    def test_keeps_the_longest(self) -> None:
        """The longest queues come first; a queue that a scan returns twice counts once."""
        longest = Longest(3)
        for length in (5, 1, 9, 7, 9, 3, 7):
            longest.add(f"q{length}", length)
        self.assertEqual(["q9", "q7", "q5"], [name for _, name in longest.found()])
