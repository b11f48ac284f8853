"""Log lines about the thresholds of memory usage."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.tables.policies import qpolicy
from disque_tx.config.settings import Settings
from disque_tx.core.base.client import Client
from disque_tx.core.jobs.memory import Memory
from disque_tx.engine.periodic import PAUSE_MS, MemoryWatch, PeriodicWork
from disque_tx.services.machine.log import DaemonLog
from tests.commands.desk import NOW_MS, UNIX_S, DeskCase
from tests.engine.aof.bench import Lines


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


class NoConnections:
    """Clients that read all they get."""

    def output_bytes(self, client: Client) -> int:
        """Bytes that wait."""
        return 0

    def resume_all(self) -> None:
        """Nobody is paused."""


class TableTests(DeskCase):
    """Tables that all nodes share."""

    def test_deletions(self) -> None:
        """A deletion is remembered for a week, so that a node which was away learns of it, and then
        forgotten."""
        work = PeriodicWork(self.server, Settings(dir="/"), NoConnections(), None, Lines())
        for words in ([b"SET", b"q", b"ttl", b"5"], [b"DEL", b"q"]):
            self.call(qpolicy, b"QPOLICY", *words)
        for after_s, kept in ((0, 1), (7 * 86_400 - 1, 1), (7 * 86_400, 0)):
            self.node.begin(NOW_MS + after_s * 1_000, (UNIX_S + after_s) * 1_000_000 + 183_936)
            work.run()
            self.assertEqual(kept, len(list(self.node.policy_table.registers.all())), after_s)
