"""One run: what its rows share."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs

from benchmarks.daemon.report import Report
from benchmarks.daemon.servers import Cluster, Server, disque, redis, started

_HERE = Path(__file__).parent


class Loaded(Protocol):
    """What can be loaded: one server, or several of which one is connected to."""

    kind: str
    port: int

    def cpu_s(self) -> float:
        """Processor time used so far."""


@attrs.frozen
class Load:
    """What the load generator does. ``options``: more of its options."""

    jobs: int
    depth: int = 1
    connections: int = 50
    queues: int = 50
    options: tuple[str, ...] = ()


@attrs.frozen
class Result:
    """``jobs_s``: jobs per second. ``cpu_us``: server processor time per job. ``add_p50_us`` and
    ``add_p99_us``: how long adding took. ``jobs``: how many were done."""

    jobs_s: float
    cpu_us: float
    add_p50_us: float
    add_p99_us: float
    jobs: int


class Comparison:
    """A load generator, and several servers that it loads in turn. ``folder``: where it is built.
    ``sources``: its files in C. ``rounds``: how often each server is loaded."""

    def __init__(self, folder: Path, sources: list[Path], rounds: int) -> None:
        self.rounds = rounds
        self._generator = folder / "generator"
        subprocess.run(["cc", "-O2", "-o", self._generator, *sources], check=True)

    def run(self, server: Loaded, load: Load) -> Result:
        """Load a server once. Ends the program when it answers errors."""
        command = [str(self._generator), "-t", server.kind, "-p", str(server.port)]
        command += ["-c", str(load.connections), "-q", str(load.queues), "-d", str(load.depth)]
        command += ["-n", str(load.jobs), *load.options]
        before_s = server.cpu_s()
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
        result: dict[str, Any] = json.loads(done.stdout)
        if result["errors"]:
            raise SystemExit(f"{server.kind} answered errors: {result.get('first_error')}")
        cpu_us = (server.cpu_s() - before_s) * 1e6 / result["jobs"]
        add = result["add"]
        return Result(result["jobs_s"], cpu_us, add["p50"], add["p99"], result["jobs"])

    def turns(self, name: str, runs: Sequence[Callable[[], Result]]) -> list[list[Result]]:
        """Results of several, round by round, the order alternating; one round before those counted
        warms all up."""
        rows = []
        for number in range(self.rounds + 1):
            progress(f"{name}, round {number} of {self.rounds}")
            order = runs if number % 2 else runs[::-1]
            results = [run() for run in order]
            rows.append(results if number % 2 else results[::-1])
        return rows[1:]

    def in_turn(
        self, name: str, one: Callable[[], Result], other: Callable[[], Result]
    ) -> list[tuple[Result, Result]]:
        """:meth:`turns` for two."""
        return [(a, b) for a, b in self.turns(name, [one, other])]

    def pair(
        self, name: str, one: tuple[Loaded, Load], other: tuple[Loaded, Load]
    ) -> list[tuple[Result, Result]]:
        """:meth:`in_turn` for two servers and what each is to do."""
        return self.in_turn(name, lambda: self.run(*one), lambda: self.run(*other))


class Bench(Comparison):
    """``folder``: holds the load generator and the data. ``rounds``: how often each is measured.
    ``jobs``: per round at depth 1. ``python``: the interpreter for which the version under
    measurement is installed; ``other``: the one of a version to compare it with, or empty for
    redis-server. ``backlog``: how many jobs wait in the rows about waiting jobs."""

    def __init__(
        self, folder: Path, rounds: int, jobs: int, backlog: int, python: str, other: str
    ) -> None:
        super().__init__(folder, [_HERE / "loadgen.c"], rounds)
        self.folder = folder
        self.jobs = jobs
        self.backlog = backlog
        self.python = python
        self.other = other
        self.report = Report(goals=not other)

    def disque(self, *options: str) -> Server:
        """A node of the version under measurement."""
        return disque(self.python, self.folder, *options)

    def reference(self, *options: str) -> Server:
        """What it is compared with: a node of the other version, or Redis."""
        if self.other:
            return disque(self.other, self.folder, *options)
        return redis(self.folder)

    def cluster(self, size: int, python: str = "", *options: str) -> Cluster:
        """Nodes of the version under measurement, or of the one for ``python``."""
        python = python or self.python
        return Cluster(started([lambda: disque(python, self.folder, *options)] * size))

    @property
    def beside(self) -> str:
        """How the reference is called in the report."""
        return "the other version" if self.other else "the Redis list"


def progress(text: str) -> None:
    """Show on standard error what is being done."""
    sys.stderr.write(f"\r\033[K{text}" if sys.stderr.isatty() else f"{text}\n")
    sys.stderr.flush()
