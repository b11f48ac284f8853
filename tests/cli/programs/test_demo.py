"""The output of the demonstration."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.programs.demo import introduction, progress_line


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
        self.assertNotIn("jobs/s", progress_line(245, 245, 0.002))
        self.assertTrue(
            progress_line(6100, 6000, 2.0).endswith("6100 added      6000 done      3000 jobs/s")
        )
