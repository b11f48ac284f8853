"""What is measured of each contest: speed, latency, and memory of jobs that wait."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from benchmarks.daemon.bench import Comparison, Load, Result, progress
from benchmarks.peers.contests import Contest, Running, Setting
from benchmarks.peers.report import begin, judged, ratios, row, spread

_BODY: Final = 100
_QUEUES: Final = 10
#: Connections that add the jobs that wait.
_FILLING: Final = 200
#: Connections and depths; the queues that the connections share.
_LOADS: Final = [(1, 1, 1), (1, 16, 1), (50, 1, _QUEUES), (50, 16, _QUEUES)]
#: More than any server does in a run: the seconds end it.
_ENDLESS: Final = 1_000_000_000
#: After so many seconds without load, memory is looked at.
_SETTLED_S: Final = 5.0


@attrs.frozen
class Plan:
    """``seconds``: how long each server is loaded in a round. ``backlog``: how many jobs wait where
    memory is measured, at most; filling ends after ``fill_s`` seconds."""

    seconds: float
    backlog: int
    fill_s: float


class Bench(Comparison):
    """Servers of others and of ours, in turn. ``folder``: for the generator and all data."""

    def __init__(self, folder: Path, rounds: int, plan: Plan) -> None:
        generator = Path(__file__).with_name("generator")
        super().__init__(folder, sorted(generator.glob("*.c")), rounds)
        self._folder = folder
        self._plan = plan
        self._settled_s = _SETTLED_S

    def speed(self, contest: Contest) -> None:
        """How many jobs a second, at which cost; and how long a waiting consumer waits."""
        with self._started(contest) as servers:
            self._cycles(contest, servers)
            self._waits(contest, servers)

    def memory(self, contest: Contest) -> None:
        """What jobs that wait take. One server after the other, each with nothing before."""
        begin(
            f"{contest.title}: memory",
            ["server", "jobs that wait", "MB, empty", "bytes per job, all nodes"],
        )
        for setting in filter(lambda each: each.filled, (contest.theirs, *contest.ours)):
            progress(f"{setting.name}, {self._plan.backlog:,} jobs that wait")
            server = setting.start(self._folder)
            try:
                row([setting.name, *self._filled(setting, server)])
            finally:
                server.stop()

    @contextmanager
    def _started(self, contest: Contest) -> Iterator[list[tuple[Setting, Running]]]:
        servers: list[tuple[Setting, Running]] = []
        try:
            for setting in (contest.theirs, *contest.ours):
                servers.append((setting, setting.start(self._folder)))
            yield servers
        finally:
            for _, server in servers:
                server.stop()

    def _load(self, setting: Setting, jobs: int, seconds: float, *options: str) -> Load:
        always = ("-b", str(_BODY), "-s", str(seconds), "-r", str(setting.copies))
        return Load(jobs, options=(*always, *options))

    def _cycles(self, contest: Contest, servers: list[tuple[Setting, Running]]) -> None:
        names = ["work", "server", "jobs/s", "÷ theirs", "CPU µs per job"]
        begin(contest.title, [*names, "jobs per CPU s ÷ theirs", "goal", "confirmed, p50 ms"])
        for connections, depth, queues in _LOADS:
            work = f"{connections} connection{'s' * (connections > 1)}, depth {depth}"
            loads = [
                attrs.evolve(
                    self._load(setting, _ENDLESS, self._plan.seconds),
                    connections=connections,
                    depth=depth,
                    queues=queues,
                )
                for setting, _ in servers
            ]
            results = self._in_turn(f"{contest.title}, {work}", servers, loads)
            theirs = results[0]
            for (setting, _), each in zip(servers, results, strict=True):
                jobs_s = [result.jobs_s for result in each]
                cpu_us = [result.cpu_us for result in each]
                beside: Sequence[str] = ["", ""]
                goal = ""
                if setting is not contest.theirs:
                    times = ratios(jobs_s, [result.jobs_s for result in theirs])
                    # Jobs per second of processor time are the inverse of the time per job.
                    better = ratios([result.cpu_us for result in theirs], cpu_us)
                    beside = [spread(times), spread(better)]
                    goal = judged(contest.efficiency, better)
                confirmed = spread([result.add_p50_us / 1000 for result in each])
                row([work, setting.name, spread(jobs_s), beside[0], spread(cpu_us),
                     beside[1], goal, confirmed])  # fmt: skip

    def _waits(self, contest: Contest, servers: list[tuple[Setting, Running]]) -> None:
        begin(
            f"{contest.title}: a job for a consumer that waits",
            ["server", "p50 µs", "p99 µs", "p50 ÷ theirs", "p99 ÷ theirs", "goal"],
        )
        loads = [
            self._load(setting, _ENDLESS, self._plan.seconds, "-m", "blocked")
            for setting, _ in servers
        ]
        results = self._in_turn(f"{contest.title}, latency", servers, loads)
        halves, tails = ([r.add_p50_us for r in results[0]], [r.add_p99_us for r in results[0]])
        for (setting, _), each in zip(servers, results, strict=True):
            p50, p99 = [r.add_p50_us for r in each], [r.add_p99_us for r in each]
            cells = ["", "", ""]
            if setting is not contest.theirs:
                beside = ratios(p99, tails)
                cells = [spread(ratios(p50, halves)), spread(beside), judged(contest.tail, beside)]
            row([setting.name, spread(p50), spread(p99), *cells])

    def _in_turn(
        self, name: str, servers: list[tuple[Setting, Running]], loads: list[Load]
    ) -> list[list[Result]]:
        """The results of each server."""
        runs = [
            lambda server=server, load=load: self.run(server, load)
            for (_, server), load in zip(servers, loads, strict=True)
        ]
        return [list(each) for each in zip(*self.turns(name, runs), strict=True)]

    def _filled(self, setting: Setting, server: Running) -> list[str]:
        before = server.resident()
        load = self._load(setting, self._plan.backlog, self._plan.fill_s, "-m", "add")
        filling = attrs.evolve(load, connections=_FILLING, queues=_QUEUES, depth=10)
        jobs = self.run(server, filling).jobs
        time.sleep(self._settled_s)
        growth = (server.resident() - before) / jobs
        return [f"{jobs:,}", f"{before / 1e6:,.0f}", f"{growth:,.0f}"]
