"""How fast the pipeline is, and how much memory it needs.

``python -m benchmarks.pipeline [--events N] [--rounds N] [--folder F]``: makes the event logs of
five nodes (benchmarks/eventlogs.py), one tenth of N and N events, and measures ``ingest`` and
``lifecycle`` on ``local[2]`` after a warm-up, and by DuckDB in this process. Prints Markdown. Exit
status 1 below the bars: 150,000 and 200,000 events/s, 4 GiB of driver, JVM and DuckDB together, and
no more than ten times the time for ten times the events, with a tenth for chance.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.eventlogs import generate
from disque_tx.spark import session
from disque_tx.spark.pipeline.engines.runner import SETTINGS
from disque_tx.spark.pipeline.ingest.ingestion import ingest
from disque_tx.spark.pipeline.lifecycle.results import lifecycle
from disque_tx.spark.pipeline.local.engine import DuckEngine

_BARS_PER_S: Final = {
    "ingest": 150_000,
    "lifecycle": 200_000,
    "ingest, DuckDB": 150_000,
    "lifecycle, DuckDB": 200_000,
}
_GIB: Final = 1 << 30
_BYTES_MAX: Final = 4 * _GIB
_GROWTH_MAX: Final = 1.1
_SAMPLE_S: Final = 0.2
_WARM_UP_EVENTS: Final = 200_000


class Memory:
    """Watches this process and all below it. ``peak_bytes``: the most they held at a time."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.peak_bytes = max(self.peak_bytes, _resident_bytes(os.getpid()))
            time.sleep(_SAMPLE_S)


def _resident_bytes(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        children = Path(f"/proc/{pid}/task").glob("*/children")
        below = [int(word) for path in children for word in path.read_text().split()]
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(map(_resident_bytes, below))


def _seconds(call: Callable[..., object], *words: object) -> float:
    begun = time.monotonic()
    call(*words)
    return time.monotonic() - begun


def measured(folder: Path, sizes: list[int], rounds: int) -> tuple[dict[str, list[float]], Memory]:
    """Command → the least seconds per million events, for each size; after a warm-up."""
    spark = session("benchmark", "local[2]", SETTINGS)
    engine, memory = DuckEngine(), Memory()
    least: dict[str, list[float]] = {name: [] for name in _BARS_PER_S}
    for size in [_WARM_UP_EVENTS, *sizes]:
        logs, table, out = (str(folder / f"{name}-{size}") for name in ("logs", "table", "out"))
        events = generate(Path(logs), size)
        taken: dict[str, list[float]] = {name: [] for name in _BARS_PER_S}
        for _ in range(rounds):
            shutil.rmtree(table, ignore_errors=True)
            shutil.rmtree(out, ignore_errors=True)
            taken["ingest"].append(_seconds(ingest, spark, [logs], table))
            taken["lifecycle"].append(_seconds(lifecycle, spark, table, out))
            local_table, local_out = f"{table}-duckdb", f"{out}-duckdb"
            shutil.rmtree(local_table, ignore_errors=True)
            shutil.rmtree(local_out, ignore_errors=True)
            taken["ingest, DuckDB"].append(_seconds(engine.ingest, [logs], local_table))
            taken["lifecycle, DuckDB"].append(
                _seconds(engine.lifecycle, local_table, local_out, 60, False, None)
            )
        for name, times in taken.items():
            least[name].append(min(times) / events * 1e6)
    return {name: seconds[1:] for name, seconds in least.items()}, memory


def main() -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="for the files; by default a temporary one")
    given = parser.parse_args()
    sizes = [given.events // 10, given.events]
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        found, memory = measured(Path(folder), sizes, given.rounds)
    good = memory.peak_bytes <= _BYTES_MAX
    print("| | 1/10, events/s | all, events/s | wanted | time per event, all : 1/10 |")
    print("|---|---|---|---|---|")
    for name, (small, large) in found.items():
        wanted = _BARS_PER_S[name]
        print(
            f"| {name} | {1e6 / small:,.0f} | {1e6 / large:,.0f} | {wanted:,} "
            f"| {large / small:.2f} |"
        )
        good = good and 1e6 / large >= wanted and large <= small * _GROWTH_MAX
    print(f"\n{given.events:,} events; peak {memory.peak_bytes / _GIB:.2f} GiB of 4 wanted.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
