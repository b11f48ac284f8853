"""All processes of a daemon give their jobs away before it stops."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.config.settings import Settings
from disque_tx.services.processes.parent.evacuation import DaemonEvacuation
from disque_tx.services.processes.parent.memorychildren import MemoryChild
from disque_tx.services.processes.parent.reports import ProcessReports
from disque_tx.services.processes.parent.supervision import Member
from tests.forwardclock import ForwardClock


class EvacuationTests(SynchronousTestCase):
    """Two processes."""

    def setUp(self) -> None:
        self.clock = ForwardClock()
        settings = Settings(dir="/")
        settings.shutdown_evacuates = 10
        self.settings = settings
        self.members: dict[int, Member] = {}
        self.children = [MemoryChild(number, 1000 + number) for number in (1, 2)]
        self.reports = ProcessReports(settings, self.members)
        for child in self.children:
            member = self.members[child.number] = Member(child.number)
            member.child = child
            self.reports.launched(child.number, child.pid, 0.0)
        self.ended: list[float] = []
        self.evacuation = DaemonEvacuation(settings, self.members, self.reports, self.clock)

    def begin(self) -> bool:
        """SIGTERM."""
        return self.evacuation.begin(lambda: self.ended.append(self.clock.seconds()))

    def report(self, number: int, evacuated: bool) -> None:
        """A process reports."""
        self.reports.receive(number, {"ip": "", "evacuated": evacuated})

    def test_all(self) -> None:
        """The daemon waits until all processes have given their jobs away."""
        self.assertTrue(self.begin())
        self.assertEqual([[["evacuate"]]] * 2, [child.messages for child in self.children])
        self.report(1, True)
        self.report(2, False)
        self.clock.pump([0.5] * 4)
        self.assertEqual([], self.ended)
        self.report(2, True)
        self.clock.pump([0.5] * 2)
        self.assertEqual(1, len(self.ended))

    def test_ended(self) -> None:
        """A process that has ended is not waited for."""
        self.begin()
        self.report(1, True)
        self.members[2].child = None
        self.clock.pump([0.5] * 2)
        self.assertEqual(1, len(self.ended))

    def test_time_over(self) -> None:
        """A process that never reports does not hold the daemon for longer than was set."""
        self.begin()
        self.clock.pump([0.5] * 30)
        self.assertEqual(1, len(self.ended))

    def test_off(self) -> None:
        """Without the setting the daemon is stopped at once."""
        self.settings.shutdown_evacuates = 0
        self.assertFalse(self.begin())
        self.assertEqual([], self.children[0].messages)
