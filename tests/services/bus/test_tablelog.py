"""Log lines about changes of shared tables that were refused."""

from __future__ import annotations

from disque_tx.services.bus.tablelog import PERIOD_MS, TableLog
from disque_tx.services.host.log import DaemonLog
from tests.services.nodebench import NodeCase

B, C = b"b" * 40, b"c" * 40


class TableLogTests(NodeCase):
    """A member sends what cannot be taken."""

    def setUp(self) -> None:
        super().setUp()
        self.lines: list[str] = []
        log = DaemonLog("notice", self.mktemp(), lambda level, text: self.lines.append(text))
        self.table_log = TableLog(self.node, log)

    def new_lines(self) -> list[str]:
        """What is logged now."""
        self.lines.clear()
        self.table_log.update()
        return self.lines

    def later(self, ms: int) -> None:
        """Let time pass."""
        self.node.begin(self.node.now_ms + ms, self.node.wall_us + ms * 1_000)

    def test_by_sender_and_minute(self) -> None:
        """Who runs a table's counters ahead is named once a minute, with how many changes that
        were, and others beside it."""
        refused = self.node.policy_table.refused
        self.assertEqual([], self.new_lines())
        for _ in range(3):
            refused.count(B)
        (line,) = self.new_lines()
        self.assertIn(f"3 changes of policies that node {B.decode()} sent", line)
        self.assertIn("QPOLICY REPAIR", line)
        refused.count(B)
        refused.count(C)
        (line,) = self.new_lines()
        self.assertIn(f"1 changes of policies that node {C.decode()} sent", line)
        self.later(PERIOD_MS - 1)
        refused.count(B)
        self.assertEqual([], self.new_lines())
        self.later(1)
        (line,) = self.new_lines()
        self.assertIn(f"2 changes of policies that node {B.decode()} sent", line)
        self.assertEqual([], self.new_lines())

    def test_schedules(self) -> None:
        """The same holds for the table of schedules."""
        self.node.timetable.refused.count(B)
        (line,) = self.new_lines()
        self.assertIn("1 changes of schedules", line)
        self.assertIn("SCHEDULE REPAIR", line)
