"""Queues into Delta tables: each job once, whatever is killed when."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import duckdb
import polars

from disque_tx.spark.foreach import disque_delta
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from tests.acceptance.daemon import Daemon, DaemonTestCase, environment, wait_for
from tests.acceptance.spark.case import STREAM_S, SparkTestCase, add_many, address

_KILLS = int(os.environ.get("SPARK_KILLS", "4"))
_ROOT = Path(__file__).resolve().parents[3]
#: Where the report of the kills goes, as lines of JSON.
_REPORT = os.environ.get("SPARK_KILL_REPORT")
_STEPS = {
    "stream": ("written", "committed"),
    "drain": ("fetched", "written", "committed", "acknowledged"),
}
_RUN_S = 300.0


class LakeTests(SparkTestCase):
    """``foreachBatch(disque_delta(…))``, and the command line."""

    def ids(self, table: Path) -> Counter[str]:
        """How often each job is in the table."""
        return Counter(polars.read_delta(str(table)).get_column("id").to_list())

    def test_stream(self) -> None:
        """Jobs are stored with their bodies and acknowledged; a second run adds those that were
        added since, and a column."""
        daemon = self.running()
        folder = self.folder()
        ids = add_many(address(daemon), "q", 300)
        for column in ("body", "CAST(CAST(body AS STRING) AS INT) AS number"):
            ids |= add_many(address(daemon), "q", 10)
            query = (
                self.stream(address(daemon), folder)
                .selectExpr("id", column)
                .writeStream.foreachBatch(disque_delta(str(folder / "table")))
                .option("checkpointLocation", str(folder / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            self.assertTrue(query.awaitTermination(STREAM_S))
        self.assertEqual(Counter(dict.fromkeys(ids, 1)), self.ids(folder / "table"))
        self.assertEqual("0", daemon.info()["registered_jobs"])

    def test_command_line(self) -> None:
        """``stream`` and ``drain`` add to the same table, and end when the queues are empty."""
        daemon = self.running()
        table = self.folder() / "table"
        ids: set[str] = set()
        for command in ("stream", "drain"):
            ids |= add_many(address(daemon), "q", 100)
            words = [command, "q", "--into", str(table), "--servers", address(daemon)]
            subprocess.run(
                [sys.executable, "-m", "disque_tx.spark.pipeline", *words],
                check=True,
                env=environment(),
                timeout=_RUN_S,
            )
        self.assertEqual(Counter(dict.fromkeys(ids, 1)), self.ids(table))
        self.assertEqual("0", daemon.info()["registered_jobs"])


class KillTests(DaemonTestCase):
    """Everything but the nodes is killed at once, after a step of a batch."""

    def test_stream(self) -> None:
        """A stream that is killed at any step stores each job once."""
        self.kill("stream")

    def test_drain(self) -> None:
        """A drain that is killed at any step stores each job once."""
        self.kill("drain")

    def kill(self, how: str) -> None:
        """Kill it after each of its steps in turn, then let it finish."""
        daemon = self.running()
        table = self.folder() / "table"
        random = Random(1)
        ids: set[str] = set()
        steps = _STEPS[how]
        for number in range(_KILLS):
            ids |= add_many(address(daemon), "q", 2000, retry_s=4)
            step = steps[number % len(steps)]
            self.run_until(how, daemon, table, step, random.randrange(1, 3), random.random() * 0.1)
        running = self.started_process(how, daemon, table)
        wait_for(lambda: daemon.info()["registered_jobs"] == "0", "all are acknowledged", _RUN_S)
        self.end(running)
        self.check(how, table, ids)

    def check(self, how: str, table: Path, ids: set[str]) -> None:
        """Each job is in the table once, as two readers see it."""
        log = DeltaLog(str(table))
        paths = [f"{table}/{file.path}" for file in log.files()]
        readers = {
            "polars": polars.read_delta(str(table)).get_column("id").to_list(),
            "duckdb": [row[0] for row in duckdb.read_parquet(paths).select("id").fetchall()],
        }
        for reader, found in readers.items():
            counted = Counter(found)
            lost, doubled = len(ids - counted.keys()), len(found) - len(counted)
            report = {"what": how, "reader": reader, "kills": _KILLS, "jobs": len(ids)}
            if _REPORT:
                with open(_REPORT, "a") as out:
                    print(json.dumps({**report, "lost": lost, "doubled": doubled}), file=out)
            self.assertEqual((0, 0), (lost, doubled), report)

    def run_until(
        self, how: str, daemon: Daemon, table: Path, step: str, times: int, pause_s: float
    ) -> None:
        """Kill a process when it has done a step so often, and so many seconds later."""
        running = self.started_process(how, daemon, table)
        assert running.stdout is not None
        seen = 0
        for line in running.stdout:
            seen += line.strip() == step
            if seen == times:
                break
        self.assertEqual(times, seen, "the process ended before")
        try:
            running.wait(pause_s)
        except subprocess.TimeoutExpired:
            pass
        self.end(running)

    def started_process(self, how: str, daemon: Daemon, table: Path) -> subprocess.Popen[str]:
        """Start a process group that stores jobs."""
        paths = os.pathsep.join((environment()["PYTHONPATH"], str(_ROOT)))
        words = [sys.executable, "-m", "tests.acceptance.spark.lakes", how]
        running = subprocess.Popen(
            [*words, address(daemon), str(table)],
            env={**os.environ, "PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self.addCleanup(self.end, running)
        return running

    def end(self, running: subprocess.Popen[str]) -> None:
        """Kill the process group."""
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        if running.stdout is not None:
            running.stdout.close()
