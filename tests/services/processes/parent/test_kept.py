"""What processes that have ended had counted."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.config.settings import Settings
from disque_tx.services.processes.parent.kept import Kept
from disque_tx.services.processes.parent.reports import ProcessReports
from disque_tx.services.processes.parent.supervision import Member


def figures(added: int) -> dict[str, Any]:
    """Of a process that has added so many jobs."""
    durations = {"bounds_s": [1.0], "counts": [added, 1], "sum_s": added / 2}
    return {
        "info": {
            "total_jobs_added": str(added), "used_cpu_user": "1.25", "registered_jobs": "9",
            "role": "x",
        },
        "commands": [["addjob", added, 10]],
        "protocols": [{"name": "resp", "connected": 4, "commands": added}],
        "nodes": {"connected": 1},
        "leaving": True,
        "write_ok": False,
        "wait": durations,
        "run": durations,
    }  # fmt: skip


class KeptTests(SynchronousTestCase):
    """Processes that end, and are started again."""

    def test_counters(self) -> None:
        """What they have counted is kept, however often they end, and nothing of what they had."""
        kept = Kept()
        self.assertIsNone(kept.figures)
        for number, added in ((1, 3), (2, 4)):
            kept.seen(number, figures(1))
            kept.seen(number, figures(added))
            kept.ended(number)
            kept.ended(number)
        self.assertEqual(
            {
                "info": {"total_jobs_added": "7", "used_cpu_user": "2.5"},
                "commands": [["addjob", 7, 20]],
                "protocols": [{"name": "resp", "connected": 0, "commands": 7}],
                "nodes": {},
                "leaving": False,
                "write_ok": True,
                "wait": {"bounds_s": [1.0], "counts": [7, 2], "sum_s": 3.5},
                "run": {"bounds_s": [1.0], "counts": [7, 2], "sum_s": 3.5},
            },
            kept.figures,
        )

    def test_silent(self) -> None:
        """A process that does not answer counts as it did last; once, when it turns out gone."""
        kept = Kept()
        kept.seen(1, figures(3))
        for _ in range(2):
            late: Any = kept.also([1, 2])
            self.assertEqual("3", late["info"]["total_jobs_added"])
            kept.ended(1)

    def test_reports(self) -> None:
        """INFO processes keeps the counters of the last report of a process that has ended."""
        member = Member(1)
        reports = ProcessReports(Settings(), {1: member})
        for _ in range(2):
            reports.launched(1, 7, 0.0)
            last = {"total_jobs_added": 5, "registered_jobs": 3}
            reports.receive(1, {"ip": "", "figures": last})
            reports.ended(1)
            reports.ended(1)
        self.assertEqual(10, reports.counted["total_jobs_added"])
        self.assertNotIn("registered_jobs", reports.counted)
        self.assertEqual({}, reports.of(1)["figures"])
