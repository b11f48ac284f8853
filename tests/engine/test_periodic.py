"""Log lines about the thresholds of memory usage."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.jobs.memory import Memory
from disque_tx.engine.periodic import PAUSE_MS, MemoryWatch
from disque_tx.services.machine.log import DaemonLog


class MemoryWatchTests(SynchronousTestCase):
    """A node with a limit of a thousand bytes."""

    def setUp(self) -> None:
        self.path = self.mktemp()
        self.memory = Memory()
        self.memory.limit = 1_000
        self.watch = MemoryWatch(self.memory, DaemonLog("notice", self.path))
        self.now_ms = 0

    def lines(self, used: int) -> list[str]:
        """The log lines some time after this many bytes are in use."""
        self.now_ms += PAUSE_MS
        return self.lines_at_once(used)

    def lines_at_once(self, used: int) -> list[str]:
        """The log lines at the same moment as this many bytes are in use."""
        self.memory.used = used
        open(self.path, "w").close()
        self.watch.check(self.now_ms)
        with open(self.path, encoding="utf-8") as file:
            return file.read().splitlines()

    def test_each_threshold(self) -> None:
        """Every crossing in either direction is logged with the numbers and its consequence."""
        for used, expected in (
            (760, "76 % of maxmemory is used (760 of 1000 bytes), above 75 %: this node keeps no"),
            (960, "96 % of maxmemory is used (960 of 1000 bytes), above 95 %: ADDJOB fails with"),
            (800, "80 % of maxmemory is used (800 of 1000 bytes), above 75 %: this node keeps no"),
            (100, "10 % of maxmemory is used (100 of 1000 bytes), below 75 %: new jobs are kept"),
        ):
            (line,) = self.lines(used)
            self.assertIn(expected, line)
            self.assertEqual([], self.lines(used))

    def test_to_and_fro(self) -> None:
        """Memory that fluctuates around a threshold does not flood the log, and its final level is
        logged."""
        self.assertEqual(1, len(self.lines(760)))
        for used in (740, 760, 740):
            self.assertEqual([], self.lines_at_once(used))
        self.assertEqual(1, len(self.lines(740)))

    def test_limit_taken_away(self) -> None:
        """CONFIG SET maxmemory 0 ends the warning, too."""
        self.lines(960)
        self.memory.limit = 0
        (line,) = self.lines(960)
        self.assertIn("no longer limited", line)
