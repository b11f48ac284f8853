"""Jobs per CPU second from queues of three nodes into files, in three ways, in turn.

``python -m benchmarks.lakes [--jobs N] [--rounds N] [--batch N] [--compiled FOLDER] [--other
FOLDER]``:

- ``loop``: what somebody would write by hand (:mod:`benchmarks.handloop`). With ``--other FOLDER``
  also with the client of another version, whose package is in that folder.
- ``drain``: ``disque-pipeline drain`` into a Delta table.
- ``stream``: ``disque-pipeline stream`` into one, on ``local[2]``.

CPU seconds are those of this process, Java and Spark's workers, without the nodes; each way runs
once before, to warm up. The start of a query, half a second that a stream without an end pays once,
counts in each round. Prints Markdown. Exit status 1 below the bars: 0.8 of the loop for the
drain, 0.5 for the stream, by the medians.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from benchmarks.nodes import running
from disque_tx import Disque
from disque_tx.client.requests import adding
from disque_tx.spark import session
from disque_tx.spark.options import read_options
from disque_tx.spark.pipeline.engines.runner import SETTINGS
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.tables.jobs import JobTable
from disque_tx.spark.pipeline.transfer.drain import drain
from disque_tx.spark.pipeline.transfer.streaming import JAVA, started

_PORTS: Final = (17_721, 17_722, 17_723)
_BARS: Final = {"drain": 0.8, "stream": 0.5}
_QUEUE: Final = "lake"
_PR_SET_CHILD_SUBREAPER: Final = 36
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")

#: Stores all jobs in a folder; returns how many, and the CPU seconds that it took.
_Way = Callable[[Path], tuple[int, float]]


def cpu_s(without: set[int]) -> float:
    """CPU seconds of this process and all below it, also of those that have ended.

    One that is waited for while they are read can be in neither place, but not twice in a row; and
    these numbers only grow."""
    return max(_below_s(without), _below_s(without))


def _below_s(without: set[int]) -> float:
    spent_s: dict[int, float] = {}
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            words = path.read_text().rpartition(")")[2].split()
            pid = int(path.parent.name)
            parents[pid] = int(words[1])
            spent_s[pid] = sum(map(int, words[11:15])) / _TICKS_PER_S

    def is_below(pid: int) -> bool:
        while pid not in without and pid != os.getpid() and pid in parents:
            pid = parents[pid]
        return pid == os.getpid()

    return sum(spent_s[pid] for pid in spent_s if is_below(pid))


def adopt_orphans() -> None:
    """Processes whose parent ends become children of this one, which still counts them."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def fill(jobs: int) -> None:
    """Add the jobs, a third of them at each node."""
    for number, port in enumerate(_PORTS):
        body = f'{{"order": %d, "node": {number}, "text": "{"x" * 64}"}}'
        with Disque(f"127.0.0.1:{port}", discover=False) as client:
            servers = client.servers()
            wanted = [
                adding.add_job(_QUEUE, body % at, replicate=1, retry_s=600)
                for at in range(number, jobs, len(_PORTS))
            ]
            for answer in servers.any_connection(0).calls(wanted):
                if isinstance(answer, Exception):
                    raise answer
            servers.close()


def by_hand(folder: Path, other: str | None = None) -> tuple[int, float]:
    """The loop, in a process of its own, which what the other ways leave in memory cannot slow
    down; returns how many jobs it stored, and its CPU seconds. ``other``: a folder with the package
    of another version."""
    words = [sys.executable, "-m", "benchmarks.handloop", str(folder), _QUEUE]
    more = {} if other is None else {"PYTHONPATH": f"{other}{os.pathsep}{os.getcwd()}"}
    done = subprocess.run(
        [*words, *map(str, _PORTS)], env=os.environ | more, stdout=subprocess.PIPE, check=True
    )
    stored, taken_s = done.stdout.split()
    return int(stored), float(taken_s)


def drained(folder: Path) -> int:
    """``disque-pipeline drain``."""
    options = read_options(_connection(), streaming=False)
    return drain(options, JobTable(str(folder)), False, threading.Event()).stored


def timed(way: Callable[[Path], int], clock_s: Callable[[], float] = time.process_time) -> _Way:
    """A way with the CPU seconds that this clock counts."""

    def whole(folder: Path) -> tuple[int, float]:
        begun_s = clock_s()
        return way(folder), clock_s() - begun_s

    return whole


def streamed(spark: SparkSession, batch: int | None) -> Callable[[Path], int]:
    """``disque-pipeline stream``. ``batch``: maxJobsPerTrigger, if it is not the default."""
    more = {} if batch is None else {"maxJobsPerTrigger": str(batch)}

    def way(folder: Path) -> int:
        started(spark, str(folder), _connection() | more, False, 0.0).awaitTermination()
        return DeltaLog(str(folder)).rows()

    return way


def _connection() -> dict[str, str]:
    servers = ",".join(f"127.0.0.1:{port}" for port in _PORTS)
    return {"disque.servers": servers, "subscribe": _QUEUE}


def measured(
    ways: Mapping[str, _Way], folder: Path, jobs: int, rounds: int
) -> dict[str, list[float]]:
    """Way → jobs per CPU second in each round."""
    speeds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            fill(jobs if turn else jobs // 4)
            stored, taken_s = way(folder / f"{name}-{turn}")
            if stored != (jobs if turn else jobs // 4):
                raise SystemExit(f"{name} stored {stored} jobs of {jobs}.")
            if turn:
                speeds[name].append(stored / taken_s)
    return speeds


def main() -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, help="jobs of a batch of the stream")
    parser.add_argument("--compiled", default="build/compiled", help="the compiled package")
    parser.add_argument("--other", help="a folder with the package of another version")
    given = parser.parse_args()
    adopt_orphans()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        nodes = {
            stack.enter_context(running(port, folder / str(port), given.compiled)).pid
            for port in _PORTS
        }
        settings = {**SETTINGS, **JAVA, "spark.local.dir": str(folder / "tmp")}
        spark = session("lakes", "local[2]", settings)
        # Java is only there for the stream, but never quite idle.
        stream = timed(streamed(spark, given.batch), lambda: cpu_s(nodes))
        ways = {"loop": by_hand, "drain": timed(drained), "stream": stream}
        if given.other:
            ways["loop of the other version"] = lambda into: by_hand(into, given.other)
        speeds = measured(ways, folder, given.jobs, given.rounds)
        spark.stop()
    medians = {name: statistics.median(some) for name, some in speeds.items()}
    print(f"{given.jobs:,} jobs a round; jobs per CPU second\n")
    print("| | rounds | median | of the loop | wanted |\n|---|---|---|---|---|")
    for name, some in speeds.items():
        share, rounds = medians[name] / medians["loop"], ", ".join(f"{one:,.0f}" for one in some)
        print(f"| {name} | {rounds} | {medians[name]:,.0f} | {share:.2f} | {_BARS.get(name, 1)} |")
    return int(any(medians[name] < bar * medians["loop"] for name, bar in _BARS.items()))


if __name__ == "__main__":
    sys.exit(main())
