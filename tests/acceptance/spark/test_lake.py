"""Queues into Delta tables: each job once, whatever dies or hangs when."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import cycle, islice, product
from pathlib import Path
from random import Random

import duckdb
import polars

from disque_tx.spark.foreach import disque_delta
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from tests.acceptance.daemon import Daemon, DaemonTestCase, environment, wait_for
from tests.acceptance.spark.case import KILLS, STREAM_S, SparkTestCase, add_many, address

_ROOT = Path(__file__).resolve().parents[3]
#: Where the report of the kills goes, as lines of JSON.
_REPORT = os.environ.get("SPARK_KILL_REPORT")
#: Jobs that are added before each kill.
_JOBS = int(os.environ.get("SPARK_KILL_JOBS", "2000"))
_STEPS = {
    "stream": ("written", "committed"),
    "rows": ("written", "committed"),
    "drain": ("fetched", "written", "committed", "acknowledged"),
}
#: What dies: everything but the node, one Python worker of Spark, the node with the only copies,
#: which comes back; or everything but the node hangs for a while.
_VICTIMS = {
    "stream": ("all", "worker", "node", "hang"),
    "rows": ("all", "worker", "node", "hang"),
    "drain": ("all", "node", "hang"),
}
_RETRY_S = 4
#: How long it stays away: the jobs are delivered again meanwhile, or not.
_OUTAGES_S = (0.5, _RETRY_S + 2.0)
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
    """Something dies or hangs after a step of a batch."""

    def test_stream(self) -> None:
        """A stream whose source writes files stores each job once, whatever dies at whichever
        step."""
        self.kill("stream")

    def test_rows(self) -> None:
        """A stream whose rows are jobs stores each once, whatever dies at whichever step."""
        self.kill("rows")

    def test_drain(self) -> None:
        """A drain stores each job once, whatever dies at whichever step."""
        self.kill("drain")

    def kill(self, how: str) -> None:
        """Do harm in each of the ways, in an order of their own, then let it finish."""
        daemon = self.running("appendonly yes", "appendfsync always")
        table = self.folder() / "table"
        random = Random(1)
        ways = [*product(_VICTIMS[how], _STEPS[how], _OUTAGES_S)]
        random.shuffle(ways)
        ids: set[str] = set()
        done = [*islice(cycle(ways), KILLS)]
        for victim, step, outage_s in done:
            ids |= add_many(address(daemon), "q", _JOBS, retry_s=_RETRY_S)
            running = self.run_until(how, daemon, table, step, random.randrange(1, 3))
            time.sleep(random.random() * 0.1)
            self.harm(victim, running, daemon, outage_s)
        running = self.started_process(how, daemon, table)
        wait_for(lambda: daemon.info()["registered_jobs"] == "0", "all are acknowledged", _RUN_S)
        self.end(running)
        self.check(how, table, ids)

    def harm(
        self, victim: str, running: subprocess.Popen[str], daemon: Daemon, outage_s: float
    ) -> None:
        """Let it die, or hang for so long. What goes on nevertheless is killed soon after."""
        if victim == "node":
            daemon.kill()
            time.sleep(outage_s)
            daemon.start()
        elif victim == "worker":
            for pid in workers(running.pid)[:1]:
                os.kill(pid, signal.SIGKILL)
        elif victim == "hang":
            os.killpg(running.pid, signal.SIGSTOP)
            time.sleep(outage_s)
            os.killpg(running.pid, signal.SIGCONT)
        try:
            running.wait(0 if victim == "all" else 2.0)
        except subprocess.TimeoutExpired:
            pass
        self.end(running)
        if victim in ("all", "worker"):
            time.sleep(outage_s)

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
            report = {"what": how, "reader": reader, "kills": KILLS, "jobs": len(ids)}
            if _REPORT:
                with open(_REPORT, "a") as out:
                    print(json.dumps({**report, "lost": lost, "doubled": doubled}), file=out)
            self.assertEqual((0, 0), (lost, doubled), report)

    def run_until(
        self, how: str, daemon: Daemon, table: Path, step: str, times: int
    ) -> subprocess.Popen[str]:
        """A process that has done a step so often."""
        running = self.started_process(how, daemon, table)
        assert running.stdout is not None
        seen = 0
        for line in running.stdout:
            seen += line.strip() == step
            if seen == times:
                break
        self.assertEqual(times, seen, "the process ended before")
        return running

    def started_process(self, how: str, daemon: Daemon, table: Path) -> subprocess.Popen[str]:
        """Start a process group that stores jobs."""
        paths = os.pathsep.join((environment()["PYTHONPATH"], str(_ROOT)))
        words = [sys.executable, "-m", "tests.acceptance.spark.lakes", how]
        running = subprocess.Popen(
            [*words, address(daemon), str(table), str(_JOBS // 4)],
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


def workers(pid: int) -> list[int]:
    """The Python workers of Spark below a process, but for those that only start others."""
    try:
        children = Path(f"/proc/{pid}/task").glob("*/children")
        below = [int(word) for path in children for word in path.read_text().split()]
        is_worker = Path(f"/proc/{pid}/cmdline").read_bytes().endswith(b"pyspark.worker\0")
    except OSError:  # it has ended
        return []
    if is_worker and not below:
        return [pid]
    return [found for child in below for found in workers(child)]
