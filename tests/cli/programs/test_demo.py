"""The output of the demonstration."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.programs.demo import progress_line


class ProgressTests(SynchronousTestCase):
    """The progress line."""

    def test_rate(self) -> None:
        """The rate is the average since the start, and is not shown in the first moment."""
        self.assertNotIn("jobs/s", progress_line(245, 245, 0.002))
        self.assertTrue(
            progress_line(6100, 6000, 2.0).endswith("6100 added      6000 done      3000 jobs/s")
        )
