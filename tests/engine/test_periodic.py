"""Log lines about the thresholds of memory usage."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.tables.policies import qpolicy
from disque_tx.config.settings import Settings
from disque_tx.core.base.client import Client
from disque_tx.core.jobs.memory import Memory
from disque_tx.engine.periodic import PAUSE_MS, KeptTable, MemoryWatch, PeriodicWork
from disque_tx.errors import CommandError
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


class _Table:
    """A shared table that counts what it is told. ``unsaved``: there are changes."""

    def __init__(self) -> None:
        self.unsaved = True
        self.dropped: list[int] = []

    def drop_old(self, wall_s: int) -> None:
        """Drop what was deleted long ago."""
        self.dropped.append(wall_s)


class KeptTableTests(SynchronousTestCase):
    """When changes of other nodes are written."""

    def setUp(self) -> None:
        self.table = _Table()
        self.saves = 0
        self.error: CommandError | None = None
        table: Any = self.table
        self.kept = KeptTable(table, self.save)
        self.log = Lines()

    def save(self) -> None:
        """Write the table, or fail."""
        self.saves += 1
        if self.error is not None:
            raise self.error

    def kept_at(self, now_ms: int) -> int:
        """How often the table has been written after this moment."""
        self.kept.keep(now_ms, now_ms // 1000, self.log)
        return self.saves

    def test_once_a_second(self) -> None:
        """Many changes are written at once: a second passes between two times; without changes
        nothing is written, and what is old is dropped each time."""
        found = [self.kept_at(at_ms) for at_ms in (5_000, 5_999, 6_000, 6_001, 7_000)]
        self.assertEqual([1, 1, 2, 2, 3], found)
        self.table.unsaved = False
        self.assertEqual(3, self.kept_at(60_000))
        self.assertEqual([5, 5, 6, 6, 7, 60], self.table.dropped)

    def test_failed(self) -> None:
        """A disk that is full is said once a while, and tried again after a pause."""
        self.error = CommandError("ERR", "no room")
        self.assertEqual(1, self.kept_at(5_000))
        self.assertEqual(1, self.kept_at(5_999 + PAUSE_MS))
        self.assertEqual(2, self.kept_at(6_000 + PAUSE_MS))
        self.assertEqual(["warning: no room"] * 2, self.log.lines)
