"""Numbers of things."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.text.counts import counted


class CountTests(SynchronousTestCase):
    """``counted``."""

    def test_plural(self) -> None:
        """One thing is one job, not one jobs; none are jobs."""
        self.assertEqual(
            ["0 jobs", "1 job", "2 jobs"], [counted(number, "job") for number in range(3)]
        )
        copies = [counted(number, "copy", "copies") for number in (1, 2)]
        self.assertEqual(["1 copy", "2 copies"], copies)
