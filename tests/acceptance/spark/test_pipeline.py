"""The event log of a real daemon, through the whole pipeline."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Final

import polars

from disque_tx.spark.pipeline.ingest.ingestion import ingest
from disque_tx.spark.pipeline.lifecycle.audit import audit
from disque_tx.spark.pipeline.lifecycle.results import lifecycle
from disque_tx.spark.pipeline.local.engine import DuckEngine
from disque_tx.spark.pipeline.tables import Table
from tests.acceptance.daemon import DaemonTestCase
from tests.spark.shared import shared_session

_HOW_TO: Final = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "analyse-events.md"
_EXAMPLE: Final = re.compile(r"```python\n(.*?)```", re.DOTALL)


class PipelineTests(DaemonTestCase):
    """The pipeline reads what a daemon writes."""

    def log(self) -> tuple[Path, dict[str, str]]:
        """The events of a daemon, with jobs that ended as their names say."""
        daemon = self.running("eventlog yes")
        client = daemon.client()
        jobs = {
            name: client.call("ADDJOB", "mäil".encode(), "body", "0")
            for name in ("acked", "deleted", "pending")
        }
        for _ in jobs:
            client.call("GETJOB", "FROM", "mäil".encode())
        client.call("NACK", jobs["acked"])
        client.call("GETJOB", "FROM", "mäil".encode())
        client.call("ACKJOB", jobs["acked"])
        client.call("DELJOB", jobs["deleted"])
        client.call("PAUSE", "mäil".encode(), "in")
        self.assertEqual(0, daemon.terminate())
        return daemon.folder / "events", {str(job): name for name, job in jobs.items()}

    def test_chain(self) -> None:
        """No line is rejected, no number is missing, every job has its outcome, and the audit finds
        nothing."""
        spark = shared_session()
        events, expected = self.log()
        table, out = str(self.folder() / "table"), str(self.folder() / "out")
        report = ingest(spark, [str(events)], table)
        self.assertEqual((0, 0), (report.rejected, report.duplicates))
        self.assertEqual([0], list(report.missing.values()))
        paths = lifecycle(spark, table, out).paths
        rows = {row.job_id: row for row in Table(spark, paths["jobs"]).rows().collect()}
        self.assertEqual(expected, {job_id: row.outcome for job_id, row in rows.items()})
        (acked,) = [row for row in rows.values() if row.outcome == "acked"]
        self.assertEqual(("mäil", 2, 1), (acked.queue, acked.deliveries, acked.nacks))
        self.assertEqual({}, audit(spark, table).counts)
        self.run_how_to(out)

    def test_chain_without_spark(self) -> None:
        """By DuckDB, no line is rejected, every job has its outcome, and the audit finds
        nothing."""
        events, expected = self.log()
        engine = DuckEngine()
        table, out = str(self.folder() / "table"), str(self.folder() / "out")
        report = engine.ingest([str(events)], table)
        missing = list(report.missing.values())
        self.assertEqual((0, 0, [0]), (report.rejected, report.duplicates, missing))
        engine.lifecycle(table, out, 60, False, None)
        jobs = polars.read_delta(f"{out}/jobs")
        found = dict(zip(jobs["job_id"], jobs["outcome"], strict=True))
        self.assertEqual(expected, found)
        self.assertEqual({}, engine.audit(table, 100, 1000, None).counts)

    def run_how_to(self, out: str) -> None:
        """The Python example of the how-to guide works on these tables."""
        (example,) = _EXAMPLE.findall(_HOW_TO.read_text())
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(example.replace("/data/today", out), {})
        self.assertIn("job_id", output.getvalue())
