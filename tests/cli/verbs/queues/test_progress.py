"""How far jobs are, as ``disque watch`` shows it."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.verbs.queues.progress import JobReport, newest


class NewestTests(SynchronousTestCase):
    """``newest``."""

    def test_once(self) -> None:
        """Of a job that was delivered twice, people see how far its present worker is."""
        before, now = (JobReport("q", "D-1", 0.9, "", 60.0), JobReport("q", "D-1", 0.1, "", 1.0))
        self.assertEqual([now], newest([before, now]))
        self.assertEqual([now], newest([now, before]))

    def test_many(self) -> None:
        """Among many jobs, those that were heard of last are shown, the latest first."""
        reports = [JobReport("q", f"D-{age_s}", 0.5, "", age_s) for age_s in range(20, 0, -1)]
        shown = newest(reports)
        self.assertLess(len(shown), 20)
        self.assertEqual([*range(1, len(shown) + 1)], [report.age_s for report in shown])


class LineTests(SynchronousTestCase):
    """A line for people."""

    def test_line(self) -> None:
        """It says which job, how far it is, and how old that is; a note only if there is one."""
        report = JobReport("mail", "D-1", 0.254, "page 3", 4.2)
        self.assertEqual("mail D-1: 25%: page 3 (4 s ago)", report.line())
        self.assertEqual("q D-2: 0% (0 s ago)", JobReport("q", "D-2", 0.0, "", 0.0).line())
