"""The outcome of jobs, queues and nodes, compared with a model in plain Python."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

from pyspark.sql import Row

from disque_tx.spark.errors import BadTable
from disque_tx.spark.pipeline.lifecycle.made import RESULTS
from disque_tx.spark.pipeline.lifecycle.results import lifecycle
from tests.spark.pipeline import model
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.logs import Node, job_id, node_id


def random_nodes(seed: int, jobs: int, over_s: float = 300, ttl_s: int = 86_400) -> list[Node]:
    """Three nodes whose jobs, added over this time, have all kinds of outcomes, and sometimes
    move."""
    chance = random.Random(seed)
    nodes = [Node(letter) for letter in "abc"]
    for number in range(jobs):
        home = chance.choice(nodes)
        job, at_s = job_id(number, home.letter), chance.uniform(0, over_s)
        queue = {"queue": chance.choice(["mail", "sms", "größe"])}
        home.add(at_s, job, **queue, replicate=chance.choice([1, 2]), ttl_s=ttl_s)
        if chance.random() < 0.3:
            other = chance.choice([node for node in nodes if node is not home])
            home.log(at_s + 1, "exported", job, peer=node_id(other.letter), **queue)
            other.log(at_s + 1.001, "imported", job, peer=node_id(home.letter), **queue)
            home = other
        for _ in range(chance.choice([0, 0, 1, 3])):
            home.log(at_s + 2, "delivered", job, wait_ms=chance.randrange(90), **queue)
            home.log(at_s + 3, "nacked", job, run_ms=9, **queue)
            home.log(at_s + 3, "requeued", job, reason="nack", **queue)
        end = chance.choice(["acked", "acked", "acked", "expired", "deleted", "none"])
        if end == "acked":
            home.work(at_s + 4, job, chance.randrange(1, 90), **queue)
        elif end != "none":
            more = {"reason": "command"} if end == "deleted" else {}
            home.log(at_s + 4, end, job, **queue, **more)
    return nodes


class LifecycleTests(PipelineCase):
    """The tables that ``lifecycle`` writes."""

    def made(self, *nodes: Node, window_s: int = 60) -> dict[str, list[Row]]:
        """The rows of each table."""
        table = self.ingested(*nodes)
        paths = lifecycle(self.spark, table, str(self.folder / "out"), window_s).paths
        self.assertEqual(set(RESULTS), set(paths))
        return {part: self.read(path).collect() for part, path in paths.items()}

    def test_model(self) -> None:
        """The outcomes of hundreds of jobs on three nodes are those of the model."""
        nodes = random_nodes(5, 400)
        events = [event for node in nodes for event in node.events]
        out = self.made(*nodes)
        names = ("queue", "outcome", "wait_ms", "deliveries", "nacks", "requeues", "moves")
        actual: dict[str, dict[str, Any]] = {
            row.job_id: {"nodes": row.nodes, **{name: row[name] for name in names}}
            for row in out["jobs"]
        }
        self.assertEqual(model.jobs(events), actual)
        windows = sorted(out["queues"], key=lambda row: row.window)
        backlog = {row.queue: row.backlog for row in windows}
        self.assertEqual(model.backlog(events), {q: n for q, n in backlog.items() if n})
        added = [event for event in events if model.kind_of(event) == "added"]
        self.assertEqual(len(added), sum(row.added for row in windows))
        self.assertEqual(sum(row.jobs for row in out["totals"]), len(actual))
        moved = [event for event in events if model.kind_of(event) == "imported"]
        self.assertEqual(len(moved), sum(row.imported for row in out["flow"]))
        self.assertEqual(len(moved), sum(row.exported for row in out["flow"]))

    def test_times(self) -> None:
        """Percentiles are computed from waits and runs, rates are per second of the window, and
        windows begin at round times."""
        node = Node("a")
        for number in range(100):
            node.add(number / 100, job_id(number))
            node.work(number / 100 + 5, job_id(number), number + 1)
        out = self.made(node, window_s=10)
        (window,) = out["queues"]
        self.assertEqual(0, window.window.timestamp() % 10)
        self.assertEqual((100, 100, 0), (window.begun, window.ended, window.backlog))
        self.assertEqual(10.0, window.acked_per_s)
        runs = (window.run_p50_ms, window.run_p95_ms, window.run_p99_ms, window.run_p999_ms)
        self.assertEqual((50, 95, 99, 100), runs)
        self.assertEqual((40, 40), (window.wait_p50_ms, window.wait_p999_ms))
        (total,) = out["totals"]
        self.assertEqual((50, 5_050), (total.run_p50_ms, total.total_p50_ms))
        row = out["jobs"][0]
        self.assertEqual(5_000, (row.first_delivered_at - row.added_at).total_seconds() * 1000)

    def test_clock_jump(self) -> None:
        """A clock that jumps back affects differences of times, but no counts."""
        node = Node("a")
        node.add(100, job_id(1))
        node.work(40, job_id(1))
        out = self.made(node)
        (row,) = out["jobs"]
        self.assertEqual(("acked", 40, 20), (row.outcome, row.wait_ms, row.run_ms))
        last = max(out["queues"], key=lambda row: row.window)
        self.assertEqual(0, last.backlog)

    def test_findings(self) -> None:
        """Planted problems are found, with a recommended value, and nothing else."""
        one, two = Node("a"), Node("b", ahead_s=5)
        for number in range(50):
            one.add(number, job_id(number), queue="slow", retry_s=2)
            one.work(number, job_id(number), 3_000 + number, queue="slow")
        for number in range(50, 100):
            one.add(number, job_id(number), queue="flaky")
            for attempt in range(1 + number % 2):
                one.log(number + attempt, "delivered", job_id(number), wait_ms=1, queue="flaky")
            one.log(number + 2, "acked", job_id(number), run_ms=5, queue="flaky")
        one.add(100, job_id(100), queue="poison")
        for attempt in range(6):
            one.log(101 + attempt, "delivered", job_id(100), wait_ms=1, queue="poison")
        for number, (source, target) in enumerate([(one, two), (two, one)], 101):
            source.log(number, "added", job_id(number, source.letter), replicate=1, ttl_s=9_999)
            for way, at, other in (("exported", source, target), ("imported", target, source)):
                peer = node_id(other.letter)
                at.log(number + 0.01, way, job_id(number, source.letter), peer=peer)
        found = {row.finding: row for row in self.made(one, two)["findings"]}
        expected = {"retry-too-short", "redelivered", "dead-letter-candidate", "clock-skew"}
        self.assertEqual(expected, set(found))
        self.assertEqual("slow", found["retry-too-short"].queue)
        self.assertIn(f"RETRY {math.ceil(3.049 * 1.5)}.", found["retry-too-short"].advice)
        self.assertEqual(
            ("flaky", 0.5), (found["redelivered"].queue, found["redelivered"].measured)
        )
        self.assertEqual(job_id(100), found["dead-letter-candidate"].job_id)
        skew = found["clock-skew"]
        self.assertEqual((node_id("b"), node_id("a")), (skew.node, skew.peer))
        self.assertEqual(5_000, skew.measured)

    def test_out_exists(self) -> None:
        """Earlier results are not overwritten by accident, and an empty table is an error."""
        table = self.ingested(*random_nodes(6, 5))
        out = str(self.folder / "out")
        lifecycle(self.spark, table, out)
        lifecycle(self.spark, table, out, whole=True)
        self.assertEqual(set(RESULTS), {path.name for path in Path(out).glob("[!.]*")})
        self.assertRaises(BadTable, lifecycle, self.spark, str(self.folder / "no"), out + "2")
