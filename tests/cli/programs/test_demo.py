"""The output of the demonstration."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.programs.demo import DemoCounts, introduction, progress_line


class IntroductionTests(SynchronousTestCase):
    """What is said before anything starts."""

    def test_how_long(self) -> None:
        """Whoever has typed ``make demo`` knows what happens to the machine, and for how long."""
        for stays in (False, True):
            self.assertIn("for 6 seconds", introduction(stays))
            self.assertIn("Nothing is left behind", introduction(stays))
        self.assertNotIn("Ctrl-C", introduction(False))
        self.assertIn("Ctrl-C", introduction(True))


class ProgressTests(SynchronousTestCase):
    """The progress line."""

    def test_rate(self) -> None:
        """The rate is the average since the start, and is not shown in the first moment."""
        counts = DemoCounts()
        counts.added = counts.done = 245
        self.assertNotIn("jobs/s", progress_line(counts, 0.002))
        counts.added, counts.done = 6100, 6000
        line = progress_line(counts, 2.0)
        self.assertTrue(line.endswith("6100 added      6000 done      3000 jobs/s"), line)
        self.assertIn(f"[{'#' * 10}{' ' * 20}]", line)
