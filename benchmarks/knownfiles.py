"""What an ingest of one new file costs beside files that were read before, as a user runs it.

``python -m benchmarks.knownfiles [COUNT] [ROUNDS]``: ``disque-pipeline ingest`` as a program of
its own, in turn on folders with 100 known files and with COUNT (300,000), by Spark on ``local[2]``
and by DuckDB. Prints the seconds of the whole command as Markdown. Exit status 1 if one with Spark
takes more than 1.1 times as long beside COUNT files, by the medians.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.spark.pipeline.logs import Node, job_id, segment

_FEW: Final = 100
_BAR: Final = 1.1
_ENGINES: Final = {"Spark": ["--master", "local[2]"], "DuckDB": ["--engine", "duckdb"]}


class Logs:
    """A folder with finished files of one event each, and the table that has them."""

    def __init__(self, folder: Path, count: int, engine: list[str]) -> None:
        self._logs, self._table, self._engine = folder / "logs", folder / "table", engine
        self._node = Node("a")
        for number in range(count):
            self._node.log(number / 1000, "delivered", job_id(number))
        whole = segment(self._logs, self._node.events)
        self.ingest(files=2)
        # The events of all these files are known now, whatever they hold.
        stem = whole.name.rpartition("-")[0]
        for number in range(1, count):
            (self._logs / f"{stem}-{number:012d}.jsonl.zst").touch()
        self.ingest()

    def ingest(self, files: int = 1) -> float:
        """The seconds that the command takes with one more file. ``files``: how many are new."""
        number = len(self._node.events)
        self._node.log(number / 1000, "delivered", job_id(number))
        segment(self._logs, self._node.events[number:])
        words = ["ingest", str(self._logs), "--into", str(self._table), "--json"]
        begun_s = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "disque_tx.spark.pipeline", *self._engine, *words],
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        taken_s = time.perf_counter() - begun_s
        if json.loads(done.stdout)["files"] != files:
            raise SystemExit(f"{files} files should have been new: {done.stdout.decode()}")
        return taken_s


def main(count: int, rounds: int) -> int:
    """Measure, print, and judge."""
    good = True
    print("| | known files | median s | min | max |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="disque-known-") as folder:
        for name, engine in _ENGINES.items():
            logs = {
                some: Logs(Path(folder, f"{name}-{some}"), some, engine) for some in (_FEW, count)
            }
            taken: dict[int, list[float]] = {some: [] for some in logs}
            for _ in range(rounds):
                for some, one in logs.items():
                    taken[some].append(one.ingest())
            for some, times in taken.items():
                median = statistics.median(times)
                print(f"| {name} | {some:,} | {median:.2f} | {min(times):.2f} | {max(times):.2f} |")
            ratio = statistics.median(taken[count]) / statistics.median(taken[_FEW])
            print(f"| {name}, ratio | | {ratio:.2f} | | |", flush=True)
            good = good and (name != "Spark" or ratio <= _BAR)
    return 0 if good else 1


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    sys.exit(main(words[0] if words else 300_000, words[1] if len(words) > 1 else 7))
