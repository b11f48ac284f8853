"""How fast the pipeline is, and how much memory it needs.

``python -m benchmarks.pipeline [--events N] [--rounds N] [--folder F]``: makes the event logs of
five nodes (benchmarks/eventlogs.py), one tenth of N and N events, and measures ``ingest`` and
``lifecycle`` on ``local[2]`` after a warm-up, and by DuckDB, each engine in a process of its own.
Prints Markdown. Exit status 1 below the bars: 150,000 and 200,000 events/s, 4 GiB of driver, tasks
and JVM together, or of DuckDB's process, and no more than ten times the time for ten times the
events, with a tenth for chance.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from benchmarks.eventlogs import generate
from disque_tx.spark import session
from disque_tx.spark.pipeline.engines.runner import SETTINGS
from disque_tx.spark.pipeline.ingest.ingestion import ingest
from disque_tx.spark.pipeline.lifecycle.results import lifecycle
from disque_tx.spark.pipeline.local.engine import DuckEngine

_BARS_PER_S: Final = {"ingest": 150_000, "lifecycle": 200_000}
_GIB: Final = 1 << 30
_BYTES_MAX: Final = 4 * _GIB
_GROWTH_MAX: Final = 1.1
_SAMPLE_S: Final = 0.2
_WARM_UP_EVENTS: Final = 200_000


class Memory:
    """Watches this process and all below it. ``peak_bytes``: the most they held at a time; what
    several share counts once."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.peak_bytes = max(self.peak_bytes, _held_bytes(os.getpid()))
            time.sleep(_SAMPLE_S)


def _held_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        children = Path(f"/proc/{pid}/task").glob("*/children")
        below = [int(word) for path in children for word in path.read_text().split()]
    except OSError:
        return 0
    own_kib = next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return own_kib * 1024 + sum(map(_held_bytes, below))


def _seconds(call: Callable[..., object], *words: object) -> float:
    begun = time.monotonic()
    call(*words)
    return time.monotonic() - begun


def _spark(logs: str, table: str, out: str) -> Iterator[tuple[str, float]]:
    spark = session("benchmark", "local[2]", SETTINGS)
    yield "ingest", _seconds(ingest, spark, [logs], table)
    yield "lifecycle", _seconds(lifecycle, spark, table, out)


def _duckdb(logs: str, table: str, out: str) -> Iterator[tuple[str, float]]:
    engine = DuckEngine()
    yield "ingest", _seconds(engine.ingest, [logs], table)
    yield "lifecycle", _seconds(engine.lifecycle, table, out, 60, False, None)


_ENGINES: Final = {"Spark": _spark, "DuckDB": _duckdb}


def measured(
    name: str, folder: Path, logs: dict[str, int], rounds: int
) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Command → the least seconds per million events, for each of the logs but the first, which
    warm up; and → the most bytes of memory. ``logs``: their folders below this one, and events."""
    memory = Memory()
    peaks = dict.fromkeys(_BARS_PER_S, 0)
    least: dict[str, list[float]] = {command: [] for command in _BARS_PER_S}
    table, out = folder / "table", folder / "out"
    for source, events in logs.items():
        taken: dict[str, list[float]] = {command: [] for command in _BARS_PER_S}
        for _ in range(rounds):
            shutil.rmtree(table, ignore_errors=True)
            shutil.rmtree(out, ignore_errors=True)
            for command, seconds in _ENGINES[name](str(folder / source), str(table), str(out)):
                taken[command].append(seconds)
                peaks[command] = max(peaks[command], memory.peak_bytes)
                memory.peak_bytes = 0
        for command, times in taken.items():
            least[command].append(min(times) / events * 1e6)
    return {command: seconds[1:] for command, seconds in least.items()}, peaks


def main() -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--engines", nargs="+", choices=_ENGINES, default=list(_ENGINES))
    parser.add_argument("--folder", type=Path, help="for the files; by default a temporary one")
    given = parser.parse_args()
    good = True
    print("| | 1/10, events/s | all, events/s | wanted | time per event, all : 1/10 |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=given.folder) as made:
        folder = Path(made)
        wanted_events = {
            "warm-up": _WARM_UP_EVENTS,
            "tenth": given.events // 10,
            "all": given.events,
        }
        logs = {source: generate(folder / source, some) for source, some in wanted_events.items()}
        for name in given.engines:
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                found = process.submit(measured, name, folder, logs, given.rounds)
                per_million, peaks = found.result()
            for command, (small, large) in per_million.items():
                wanted = _BARS_PER_S[command]
                print(
                    f"| {command}, {name} | {1e6 / small:,.0f} | {1e6 / large:,.0f} | {wanted:,} "
                    f"| {large / small:.2f} |"
                )
                good = good and 1e6 / large >= wanted and large <= small * _GROWTH_MAX
            for command, peak_bytes in peaks.items():
                print(f"| {command}, {name}: peak | | {peak_bytes / _GIB:.2f} GiB | 4 GiB | |")
            good = good and max(peaks.values()) <= _BYTES_MAX
    print(f"\n{given.events:,} events.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
