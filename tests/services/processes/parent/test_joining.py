"""Processes that serve clients and do not reach the others yet."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.config.settings import Settings
from disque_tx.services.processes.parent.joining import PATIENCE_S, JoiningProcesses
from disque_tx.services.processes.parent.reports import ProcessReports
from disque_tx.services.processes.parent.supervision import Member


class JoiningTests(SynchronousTestCase):
    """Three processes, of which the third is still loading."""

    def setUp(self) -> None:
        self.members = {number: Member(number) for number in (1, 2, 3)}
        self.reports = ProcessReports(Settings(), self.members)
        self.joining = JoiningProcesses(self.reports, self.members)
        for number, member in self.members.items():
            self.reports.launched(number, number, 0)
            self.reports.opened(number, f"id{number}")
            member.ready = number < 3
            self.report(number)

    def report(self, number: int, *reached: str) -> None:
        """What a process reaches."""
        report: dict[str, Any] = {"ip": "", "reached": list(reached)}
        self.reports.receive(number, report)

    def test_reached(self) -> None:
        """A process is used once it reaches all others that serve clients."""
        self.joining.begin(1, 100.0)
        self.assertFalse(self.joining.is_over(1, 100.5))
        self.assertTrue(self.joining.busy)
        self.report(1, "id2")
        self.assertTrue(self.joining.is_over(1, 101.0))
        self.assertEqual((False, False), (self.joining.busy, self.joining.is_over(1, 102.0)))

    def test_patience(self) -> None:
        """A link that cannot be made, say for a firewall, does not keep a daemon from starting."""
        self.joining.begin(1, 100.0)
        self.assertTrue(self.joining.is_over(1, 100.0 + PATIENCE_S))

    def test_gone(self) -> None:
        """The daemon does not wait for a process that has ended."""
        self.joining.begin(1, 100.0)
        self.joining.end(1)
        self.joining.end(1)
        self.assertFalse(self.joining.busy)
