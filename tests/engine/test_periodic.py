"""What a node does by itself: thresholds of memory, clients, and tables that all nodes share."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.commands.tables.policies import qpolicy
from disque_tx.config.lists import OutputLimit
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
        """Every crossing in either direction is logged with the numbers, its consequence, and what
        to do."""
        above = (
            "of 1000 bytes), above 75 %: this node keeps no new jobs. ADDJOB places them on other"
            " nodes, and fails with NOREPL if there are too few. Let workers catch up, or raise"
            " maxmemory."
        )
        for used, level, expected in (
            (760, "#", f"76 % of maxmemory is used (760 {above}"),
            (
                969,
                "#",
                "96 % of maxmemory is used (969 of 1000 bytes), above 95 %: ADDJOB fails with OOM"
                " when no acknowledged job is left to be evicted. Let workers catch up, or raise"
                " maxmemory.",
            ),
            (800, "#", f"80 % of maxmemory is used (800 {above}"),
            (
                100,
                "*",
                "10 % of maxmemory is used (100 of 1000 bytes), below 75 %: new jobs are kept on"
                " this node again.",
            ),
        ):
            (line,) = self.lines(used)
            self.assertTrue(line.endswith(f" {level} {expected}"), line)
            self.assertEqual([], self.lines(used))

    def test_to_and_fro(self) -> None:
        """Memory that fluctuates around a threshold does not flood the log, and its final level is
        logged."""
        self.assertEqual(1, len(self.lines(760)))
        for used in (740, 760, 740):
            self.assertEqual([], self.lines_at_once(used))
        self.now_ms += PAUSE_MS - 1
        self.assertEqual([], self.lines_at_once(740))
        self.now_ms += 1
        self.assertEqual(1, len(self.lines_at_once(740)))

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


class ClientTests(DeskCase):
    """Connections of clients, a slice at a time."""

    def setUp(self) -> None:
        super().setUp()
        self.settings = Settings(dir="/")
        self.lines = Lines()
        self.connections = Unread()
        self.work = PeriodicWork(self.server, self.settings, self.connections, None, self.lines)

    def run_at(self, after_ms: int) -> None:
        """One run, some time after the start."""
        self.node.begin(NOW_MS + after_ms, UNIX_S * 1_000_000 + after_ms * 1_000)
        self.work.run()

    def test_slices(self) -> None:
        """A run looks at a tenth of many clients, or at five of few, beginning behind the last one
        of the run before, and at each of them once in a round."""
        for count, slices in ((12, [5, 5, 5]), (100, [10] * 11), (5, [5, 5])):
            self.server.clients.clear()
            clients = [self.connect(b"%d" % number).id for number in range(count)]
            self.work = PeriodicWork(self.server, self.settings, self.connections, None, self.lines)
            self.settings.client_output_buffer_limit = OutputLimit(1, 0, 0)
            seen: list[int] = []
            for size in slices:
                self.connections.asked.clear()
                self.work.run()
                self.assertEqual(size, len(self.connections.asked))
                seen += self.connections.asked
            self.assertEqual((clients * 3)[: sum(slices)], seen)

    def test_idle(self) -> None:
        """A client is closed when more than ``timeout`` whole seconds have passed by the clock
        since it was seen."""
        self.settings.timeout = 3
        self.client.seen_ms = NOW_MS + 900
        self.run_at(3_999)
        self.assertEqual((False, []), (self.client.abort_now, self.lines.lines))
        self.run_at(4_000)
        self.assertEqual(["verbose: Closing idle client"], self.lines.lines)
        self.assertTrue(self.client.abort_now)
        self.assertEqual([self.client], self.node.outbox.touched)

    def test_output(self) -> None:
        """A client is closed at the hard limit exactly, or when it was at the soft one for more
        than its seconds without a break; the line says which client, and how much it was."""
        self.settings.client_output_buffer_limit = OutputLimit(1_000, 500, 2)
        for sizes, closed in (
            ([999, 0], False),
            ([1_000], True),
            ([500, 500, 500], False),
            ([500, 500, 500, 500], True),
            ([500, 499, 500, 500], False),
        ):
            self.setUp()
            self.settings.client_output_buffer_limit = OutputLimit(1_000, 500, 2)
            for number, size in enumerate(sizes):
                self.connections.size = size
                self.run_at(number * 1_000)
            said = (
                f"warning: Client 127.0.0.1:5001 closed: {sizes[-1]} bytes of replies not read,"
                " more than client-output-buffer-limit allows"
            )
            self.assertEqual([said] * closed, self.lines.lines, sizes)
            self.assertEqual(closed, self.client.abort_now)
            self.assertEqual([self.client] * closed, self.node.outbox.touched)

    def test_only_one_limit(self) -> None:
        """Either limit works without the other, and 0 is none: then nobody is looked at."""
        for limit, closed in (
            (OutputLimit(0, 0, 0), False),
            (OutputLimit(1_000, 0, 0), True),
            (OutputLimit(0, 1_000, 0), True),
        ):
            self.setUp()
            self.settings.client_output_buffer_limit = limit
            self.connections.size = 1_000
            self.run_at(0)
            self.run_at(1)
            self.assertEqual(closed, self.client.abort_now, limit)
            self.assertEqual(closed, bool(self.connections.asked))

    def test_pause(self) -> None:
        """A pause of all clients ends at its time, once."""
        self.server.paused_until_ms = NOW_MS + 500
        for after_ms, resumed in ((499, 0), (500, 1), (600, 1)):
            self.run_at(after_ms)
            self.assertEqual(resumed, self.connections.resumed)
        self.assertEqual(0, self.server.paused_until_ms)


class Unread:
    """Clients with output of this ``size`` that they have not read. ``asked``: who was looked at.
    ``resumed``: how often pauses ended."""

    def __init__(self) -> None:
        self.size = 0
        self.asked: list[int] = []
        self.resumed = 0

    def output_bytes(self, client: Client) -> int:
        """Bytes that wait."""
        self.asked.append(client.id)
        return self.size

    def resume_all(self) -> None:
        """The pause is over."""
        self.resumed += 1


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
