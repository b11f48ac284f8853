"""The pipeline on a standalone cluster, whose executors have only what they were given: ``make
spark-standalone``. Each of its commands starts three more Javas, too many for a gate."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as pads
from deltalake import DeltaTable

from tests.acceptance.daemon import Daemon, DaemonTestCase, environment, wait_for
from tests.acceptance.spark.case import add_many, address
from tests.acceptance.spark.standalone import StandaloneCluster, packed_environment
from tests.spark.pipeline.logs import Node, job_id, segment

_SECRET = "hunter-91c4"
_JOBS = 2_000
#: Per file, of which each is one task: a second of work.
_EVENTS = 20_000
#: More than one batch.
_STREAMED = 60_000
_RUN_S = 300.0


class StandaloneCase(DaemonTestCase):
    """Two workers with a core each."""

    def setUp(self) -> None:
        self.place = self.folder()
        self.log = self.place / "log"
        self.log.mkdir()
        self.password = self.place / "password"
        self.password.write_text(f"{_SECRET}\n")
        (self.place / "cluster").mkdir()
        self.cluster = StandaloneCluster(self.place / "cluster", 2)
        self.addCleanup(self.cluster.close)
        self.archive = packed_environment(self.place)

    def started(self, *words: str) -> subprocess.Popen[str]:
        """Start ``disque-pipeline`` on the cluster."""
        settings = {
            "spark.archives": f"{self.archive}#environment",
            "spark.pyspark.driver.python": sys.executable,
            "spark.pyspark.python": "./environment/bin/python",
            "spark.executor.memory": "512m",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file://{self.log}",
            "spark.eventLog.compress": "false",
        }
        confs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        with (self.place / "output").open("wb") as out:
            running = subprocess.Popen(
                [
                    *(sys.executable, "-m", "disque_tx.spark.pipeline", "--no-progress"),
                    *("--master", self.cluster.url, *confs, *words),
                ],
                env=environment(),
                cwd=self.place,
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        return running

    def finished(self, running: subprocess.Popen[str]) -> str:
        """What a command printed, that must succeed."""
        status = running.wait(_RUN_S)
        output = (self.place / "output").read_text()
        self.assertEqual(0, status, output)
        return output

    def pipeline(self, *words: str) -> str:
        """Run ``disque-pipeline`` on the cluster; its output."""
        return self.finished(self.started(*words))


class ChainTests(StandaloneCase):
    """The whole pipeline."""

    def test_chain(self) -> None:
        """From a queue into a table, and from the events to the report, with executors whose
        Python comes in an archive; each job is in the table once, and the password is nowhere."""
        daemon = self.running(f"requirepass {_SECRET}", "eventlog yes")
        client = daemon.client()
        client.call("AUTH", _SECRET)
        added = {
            str(client.call("ADDJOB", "q", "x" * 100, "0", "RETRY", "60")) for _ in range(_JOBS)
        }
        stored = self.place / "jobs"
        words = ("--servers", address(daemon), "--password-file", str(self.password))
        output = self.pipeline("stream", "q", "--into", str(stored), *words)
        rows = DeltaTable(str(stored)).to_pyarrow_table(columns=["id"])["id"].to_pylist()
        self.assertEqual(_JOBS, len(rows))
        self.assertEqual(set(), added.symmetric_difference(rows))
        output += self.report_of(daemon)
        self.assertEqual(
            {"FINISHED"}, {one["state"] for one in (self.cluster.state() or {})["completedapps"]}
        )
        shown = {"output": output.encode()}
        kept = (self.log, self.place / "cluster", stored, self.place / "events")
        shown |= {str(p): p.read_bytes() for k in kept for p in k.rglob("*") if p.is_file()}
        self.assertTrue(any(b"SparkListenerExecutorAdded" in text for text in shown.values()))
        self.assertEqual([], [where for where, text in shown.items() if _SECRET.encode() in text])

    def report_of(self, daemon: Daemon) -> str:
        """End the daemon, and make a report of its events; what the commands print."""
        self.assertEqual(0, daemon.terminate())
        log = daemon.folder / "events"
        wait_for(lambda: not [*log.rglob("_*")], "all segments are converted", _RUN_S)
        events, out = str(self.place / "events"), self.place / "out"
        output = self.pipeline("ingest", str(log), "--into", events)
        output += self.pipeline("lifecycle", events, "--into", str(out))
        page = self.place / "report.html"
        output += self.pipeline("report", str(out), "--html", str(page), "--events", events)
        self.assertIn("<html", page.read_text())
        jobs = DeltaTable(str(out / "jobs"))
        outcomes = jobs.to_pyarrow_dataset().to_table(filter=pads.field("outcome") == "acked")
        self.assertEqual(_JOBS, outcomes.num_rows)
        return output


class WorkerTests(StandaloneCase):
    """A worker is killed in the middle of a command."""

    def kill_writer(self, running: subprocess.Popen[str], table: Path) -> None:
        """Kill one, and look whether a task was lost; the command must succeed."""
        wait_for(
            lambda: self.cluster.kill_writer(table) or running.poll() is not None,
            "a task writes a file",
            2 * _RUN_S,
        )
        self.finished(running)
        self.assertEqual(1, self.cluster.alive())
        events = "".join(path.read_text() for path in self.log.rglob("*") if path.is_file())
        ended = [json.loads(line) for line in events.splitlines() if "TaskEnd" in line[:60]]
        lost = [
            task for task in ended if task["Task End Reason"]["Reason"] == "ExecutorLostFailure"
        ]
        self.assertNotEqual([], lost, "no task was running on the worker")

    def test_ingest(self) -> None:
        """An ingest goes on with the other worker, and the table has each event once."""
        logs, table = self.place / "logs", self.place / "events"
        nodes = [Node(letter) for letter in "abcdef"]
        for node in nodes:
            for number in range(_EVENTS):
                node.log(number, "delivered", job_id(number, node.letter), wait_ms=number)
            segment(logs, node.events)
        self.kill_writer(self.started("ingest", str(logs), "--into", str(table)), table)
        found = DeltaTable(str(table)).to_pyarrow_table(columns=["node", "boot", "seq"])
        expected = {
            (node.letter * 40, *map(int, event["id"].split(".")))
            for node in nodes
            for event in node.events
        }
        rows = list(zip(*(found[name].to_pylist() for name in found.column_names), strict=True))
        self.assertEqual((len(expected), expected), (len(rows), set(rows)))

    def test_stream(self) -> None:
        """A stream whose driver is killed when it has written the file of a batch, and one of whose
        workers is lost, goes on with the other worker when it is started again: it stores each job
        once and acknowledges it."""
        daemon = self.running()
        ids = add_many(address(daemon), "q", _STREAMED, retry_s=600)
        table = self.place / "jobs"
        words = ("stream", "q", "--into", str(table), "--servers", address(daemon))
        first = self.started(*words)
        wait_for(lambda: [*table.glob("staged-*/*.parquet")], "the driver writes a file", _RUN_S)
        first.kill()
        first.wait()
        self.assertFalse([*table.glob("_checkpoint/commits/0")])
        self.cluster.kill_worker()
        self.pipeline(*words)
        self.assertEqual(1, self.cluster.alive())
        rows = DeltaTable(str(table)).to_pyarrow_table(columns=["id"])["id"].to_pylist()
        self.assertEqual((_STREAMED, ids), (len(rows), set(rows)))
        self.assertEqual("0", daemon.info()["registered_jobs"])
