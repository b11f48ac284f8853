"""The made-up shop."""

from __future__ import annotations

import json
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import zstandard
from deltalake import DeltaTable
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.pipeline.local.auditing import audit
from disque_tx.spark.pipeline.local.ingestion import ingest
from disque_tx.spark.pipeline.local.lifecycle import lifecycle
from disque_tx.spark.pipeline.sample import write_sample

_DONE = ["added", "queued", "delivered", "acked"]


class SampleTests(SynchronousTestCase):
    """Event logs that nobody has logged."""

    def setUp(self) -> None:
        self.folder = Path(self.mktemp()).resolve()

    def test_same_each_time(self) -> None:
        """Two people who talk about the sample see the same numbers."""
        first, second = (write_sample(self.folder / name) for name in ("one", "two"))
        self.assertEqual(
            [path.relative_to(self.folder / "one") for path in first],
            [path.relative_to(self.folder / "two") for path in second],
        )
        for one, other in zip(first, second, strict=True):
            self.assertEqual(one.read_bytes(), other.read_bytes())

    def test_times(self) -> None:
        """The durations of an event are those between its time and that of the event that they
        begin at, so that charts of both agree."""
        lives: dict[str, list[dict[str, Any]]] = {}
        for path in write_sample(self.folder):
            for line in zstandard.decompress(path.read_bytes(), 1 << 24).splitlines():
                event = json.loads(line)
                lives.setdefault(event["subject"], []).append(event)
        whole = [life for life in lives.values() if self.kinds(life) == _DONE]
        self.assertGreater(len(whole), 500)
        for _, queued, delivered, acked in whole:
            times = [datetime.fromisoformat(one["time"]) for one in (queued, delivered, acked)]
            waited, ran = (after - before for before, after in pairwise(times))
            self.assertApproximates(delivered["wait_ms"], waited.total_seconds() * 1_000, 1)
            self.assertApproximates(acked["run_ms"], ran.total_seconds() * 1_000, 1)

    def kinds(self, life: list[dict[str, Any]]) -> list[str]:
        """What happened to a job."""
        return [event["type"].removeprefix("disque.job.") for event in life]

    def test_faults(self) -> None:
        """The pipeline takes every line, and finds the faults that the sample is made with."""
        table, out = str(self.folder / "table"), str(self.folder / "out")
        write_sample(self.folder / "logs")
        report = ingest([str(self.folder / "logs")], table)
        self.assertEqual((2, 0, {}), (report.files, report.rejected, report.refused))
        self.assertEqual([1], [count for count in report.missing.values() if count])
        paths = lifecycle(table, out).paths
        rows = DeltaTable(paths["totals"]).to_pyarrow_table().to_pylist()
        totals = {row["queue"]: row for row in rows}
        self.assertLess(10_000, totals["mail"]["wait_p99_ms"])
        self.assertLess(0, totals["orders"]["nacks"])
        self.assertLess(0, totals["thumbnails"]["retries"])
        self.assertLess(0, totals["reports"]["pending"])
        self.assertLess(0, totals["imports"]["dead"])
        self.assertEqual(2, totals["mail"]["lost"])
        counts = audit(table).counts
        self.assertEqual({("lost", "unknown"): 1, ("lost", "violated"): 1}, counts)
        findings = DeltaTable(paths["findings"]).to_pyarrow_table().to_pylist()
        self.assertIn("retry-too-short", {row["finding"] for row in findings})
