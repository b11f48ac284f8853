"""The pipeline on a standalone cluster, whose executors have only what they were given: ``make
spark-standalone``. Each of its commands starts three more Javas, too many for a gate."""

from __future__ import annotations

import subprocess
import sys

import pyarrow.dataset as pads
from deltalake import DeltaTable

from tests.acceptance.daemon import Daemon, DaemonTestCase, environment, wait_for
from tests.acceptance.spark.case import address
from tests.acceptance.spark.standalone import StandaloneCluster, packed_environment

_SECRET = "hunter-91c4"
_JOBS = 2_000
_RUN_S = 300.0


class StandaloneTests(DaemonTestCase):
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

    def pipeline(self, *words: str) -> str:
        """Run ``disque-pipeline`` on the cluster; its output."""
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
        done = subprocess.run(
            [
                *(sys.executable, "-m", "disque_tx.spark.pipeline", "--no-progress"),
                *("--master", self.cluster.url, *confs, *words),
            ],
            check=False,
            env=environment(),
            cwd=self.place,
            capture_output=True,
            timeout=_RUN_S,
        )
        output = (done.stdout + done.stderr).decode()
        self.assertEqual(0, done.returncode, output)
        return output

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
