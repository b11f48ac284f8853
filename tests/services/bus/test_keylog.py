"""Log lines about jobs with the key of an earlier one."""

from __future__ import annotations

from disque_tx.services.bus.tablelog import KEY_PERIOD_MS, KeyLog
from disque_tx.services.machine.log import DaemonLog
from tests.services.nodebench import NodeCase


class KeyLogTests(NodeCase):
    """A node finds such jobs."""

    def setUp(self) -> None:
        super().setUp()
        self.lines: list[tuple[str, str]] = []
        log = DaemonLog(
            "notice", self.mktemp(), lambda level, text: self.lines.append((level, text))
        )
        self.key_log = KeyLog(self.node, log)

    def found(self, dropped: int, doubled: int) -> list[tuple[str, str]]:
        """The lines after so many more were found."""
        self.lines.clear()
        self.node.totals.keys_dropped += dropped
        self.node.totals.keys_doubled += doubled
        self.key_log.update()
        return self.lines

    def later(self, ms: int) -> None:
        """Let time pass."""
        self.node.begin(self.node.now_ms + ms, self.node.wall_us + ms * 1_000)

    def test_nothing(self) -> None:
        """Without such jobs nothing is logged."""
        self.assertEqual([], self.found(0, 0))

    def test_dropped(self) -> None:
        """A job that was dropped is worth knowing, and no more: its client may look for it."""
        ((level, text),) = self.found(1, 0)
        self.assertEqual("notice", level)
        self.assertIn("1 that had not been delivered were dropped, 0 that may", text)

    def test_doubled(self) -> None:
        """Work that may be done twice is a warning."""
        ((level, text),) = self.found(1, 2)
        self.assertEqual("warning", level)
        self.assertIn("1 that had not been delivered were dropped, 2 that may", text)

    def test_many(self) -> None:
        """The end of a partition does not flood the log: there is a line a second, and it counts
        what came since the one before."""
        self.assertEqual(1, len(self.found(5, 0)))
        self.assertEqual([], self.found(3, 0))
        self.later(KEY_PERIOD_MS - 1)
        self.assertEqual([], self.found(4, 0))
        self.later(1)
        ((_, text),) = self.found(0, 0)
        self.assertIn("7 that had not been delivered", text)

    def test_counters_reset(self) -> None:
        """After CONFIG RESETSTAT the next ones are logged, too."""
        self.found(5, 5)
        self.node.totals.reset()
        self.later(KEY_PERIOD_MS)
        self.assertEqual([], self.found(0, 0))
        ((_, text),) = self.found(0, 2)
        self.assertIn("2 that may have been delivered", text)
