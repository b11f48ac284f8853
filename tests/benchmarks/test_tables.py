"""The tables of the benchmark beside other servers."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from benchmarks.daemon.bench import Load, Loaded, Result
from benchmarks.daemon.report import at_least
from benchmarks.peers.contests import CONTESTS, Contest, Setting
from benchmarks.peers.report import judged, ratios, spread
from benchmarks.peers.rows import Bench, Plan


class _Server:
    """A server that is only counted. ``speed``: its jobs per second."""

    kind = "double"
    port = 0

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self.stopped = 0
        self.waiting = 0

    def cpu_s(self) -> float:
        return 0.0

    def resident(self) -> int:
        return 5_000_000 + 300 * self.waiting

    def stop(self) -> None:
        self.stopped += 1


class _Bench(Bench):
    """Loads nothing: the speed of a server is what it says, and it takes a second per job of
    processor time and speed. ``loads``: what was to be done, in order."""

    def __init__(self, folder: Path) -> None:
        self.rounds = 3
        self._folder = folder
        self._plan = Plan(1.0, 1000, 1.0)
        self._settled_s = 0.0
        self.loads: list[tuple[Any, Load]] = []

    def run(self, server: Loaded, load: Load) -> Result:
        assert isinstance(server, _Server)
        self.loads.append((server, load))
        server.waiting += load.jobs
        return Result(server.speed, 1e6 / server.speed, 1000.0, 2000.0, load.jobs)


class FiguresTests(SynchronousTestCase):
    """Numbers as text."""

    def test_spread(self) -> None:
        """A median never stands without what it hides."""
        self.assertEqual("2 (1 to 9)", spread([9.0, 1.0, 2.0]))
        self.assertEqual("1,234", spread([1234.0]))

    def test_ratios(self) -> None:
        """Rounds are compared with rounds, as load of the machine changes between them."""
        self.assertEqual([2.0, 0.5], ratios([4.0, 1.0], [2.0, 2.0]))

    def test_goal(self) -> None:
        """A goal that is missed is seen."""
        self.assertEqual("≥ 3: yes", judged(at_least(3), [2.0, 3.0, 4.0]))
        self.assertEqual("≥ 3: **no**", judged(at_least(3), [2.0, 2.9, 4.0]))
        self.assertEqual("", judged(None, [1.0]))


class TablesTests(SynchronousTestCase):
    """A contest of servers that do nothing."""

    def setUp(self) -> None:
        self.theirs, self.ours, self.synced = _Server(100.0), _Server(400.0), _Server(50.0)
        self.contest = Contest(
            "A broker",
            Setting("broker", lambda _: self.theirs),
            (
                Setting("Disque", lambda _: self.ours, 2),
                Setting("Disque, always", lambda _: self.synced, 3, filled=False),
            ),
            at_least(3),
        )
        self.bench = _Bench(Path(self.mktemp()))

    def printed(self, part: str) -> list[list[str]]:
        """The cells of all lines of tables that are written."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            getattr(self.bench, part)(self.contest)
        lines = [line for line in said.getvalue().splitlines() if line.startswith("|")]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]

    def test_speed(self) -> None:
        """A line for each server and each work, with ratios to theirs in the right direction: more
        jobs, and more jobs for the same processor time, are above 1."""
        rows = self.printed("speed")
        one = {row[1]: row for row in rows if row[0] == "1 connection, depth 1"}
        self.assertEqual(["broker", "Disque", "Disque, always"], list(one))
        self.assertEqual(["", "", ""], [one["broker"][place] for place in (3, 5, 6)])
        ours, synced = one["Disque"], one["Disque, always"]
        self.assertEqual(("4 (4 to 4)", "4 (4 to 4)", "≥ 3: yes"), (ours[3], ours[5], ours[6]))
        self.assertEqual("0.5 (0.5 to 0.5)", synced[3])
        self.assertEqual("≥ 3: **no**", synced[6])
        self.assertEqual(4, len({row[0] for row in rows if row[1:2] == ["Disque"]}))

    def test_same_work(self) -> None:
        """Servers differ in the number of copies that are asked for, and in nothing else."""
        self.printed("speed")
        asked: dict[int, set[object]] = {}
        for server, load in self.bench.loads:
            options = list(load.options)
            copies = options[options.index("-r") + 1]
            options[options.index("-r") + 1] = "?"
            what = (load.jobs, load.depth, load.connections, load.queues, tuple(options))
            asked.setdefault(id(server), set()).add(what)
            expected = {self.theirs: "0", self.ours: "2", self.synced: "3"}[server]
            self.assertEqual(expected, copies)
        self.assertEqual(3, len(asked))
        self.assertEqual(1, len(set(map(frozenset, asked.values()))))

    def test_memory(self) -> None:
        """Memory is what grows with the jobs, not what an empty server has; and it is not measured
        twice for two ways to sync the same log."""
        rows = self.printed("memory")
        self.assertEqual(
            [["broker", "1,000", "5", "300"], ["Disque", "1,000", "5", "300"]], rows[2:]
        )

    def test_stopped(self) -> None:
        """No server is left behind, also when one does not start."""
        self.printed("speed")
        self.assertEqual([1, 1, 1], [s.stopped for s in (self.theirs, self.ours, self.synced)])

        def fails(_: Path) -> _Server:
            raise SystemExit("it did not start")

        self.contest = Contest("A broker", self.contest.theirs, (Setting("Disque", fails),))
        self.assertRaises(SystemExit, self.printed, "speed")
        self.assertEqual(2, self.theirs.stopped)


class ContestsTests(SynchronousTestCase):
    """Who is compared with whom."""

    def test_goals(self) -> None:
        """Quorum queues are the contest that the project set itself goals for."""
        quorum = CONTESTS["quorum"]
        self.assertEqual(("≥ 3", "≤ 1"), (str(quorum.efficiency), str(quorum.tail)))
        names = {setting.name for setting in quorum.ours}
        self.assertEqual(4, len(names))
        self.assertEqual({2, 3}, {setting.copies for setting in quorum.ours})
