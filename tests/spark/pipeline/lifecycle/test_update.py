"""Results that are brought up to date by new events are those of a run over all events."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

from disque_tx.spark.errors import OutputExists
from disque_tx.spark.pipeline.ingest.ingestion import ingest
from disque_tx.spark.pipeline.lifecycle import results, sizing
from disque_tx.spark.pipeline.lifecycle.results import lifecycle
from disque_tx.spark.pipeline.lifecycle.sizing import FEW_ROWS
from disque_tx.spark.pipeline.local.lifecycle import lifecycle as by_duckdb
from disque_tx.spark.pipeline.outputs import Output
from disque_tx.spark.pipeline.tables.table import EventTable
from disque_tx.spark.pipeline.tables.upkeep import optimize
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.lifecycle.test_lifecycle import random_nodes
from tests.spark.pipeline.logs import Event, Node, job_id, write

_DAY_S = 86_400


class UpdateTests(PipelineCase):
    """``lifecycle``, again on the same results."""

    def setUp(self) -> None:
        super().setUp()
        self.patch(results, "WHOLE_BELOW", 0)
        self.out = str(self.folder / "out")
        self._batches = 0

    def ingest(self, events: Iterable[Event]) -> None:
        """Add a file of events to the table."""
        self._batches += 1
        path = write(self.folder / "logs" / f"{self._batches}.jsonl", events)
        ingest(self.spark, [str(path)], self.table)

    def lifecycle(self, out: str, whole: bool = False) -> str:
        """Run it; returns what it says."""
        return lifecycle(self.spark, self.table, out, 3600, whole).how

    def rows(self, out: str) -> dict[str, list[str]]:
        """The rows of each result."""
        return {
            path.name: sorted(map(str, self.read(str(path)).collect()))
            for path in sorted(Path(out).glob("[!.]*"))
        }

    def assert_as_whole(self) -> None:
        """Assert that the results are those of a run over all events, which DuckDB does soonest."""
        whole = str(self.folder / f"whole-{self._batches}")
        by_duckdb(self.table, whole, 3600)
        expected, actual = self.rows(whole), self.rows(self.out)
        for part, rows in expected.items():
            self.assertEqual(rows, actual[part], part)
        self.assertEqual(set(expected), set(actual))

    def test_shuffled(self) -> None:
        """Whatever events come first, late or twice, each prefix has the results of a whole run,
        however many rows count as few."""
        chance = random.Random(3)
        nodes = random_nodes(3, 200, over_s=3 * _DAY_S, ttl_s=7200)
        events = sorted((e for node in nodes for e in node.events), key=lambda e: e["time"])
        batches: list[list[Event]] = [[] for _ in range(3)]
        for at, event in enumerate(events):
            due = at * len(batches) // len(events)
            late = chance.random() < 0.1
            batches[chance.randrange(due, len(batches)) if late else due].append(event)
        for number, batch in enumerate(batches):
            chance.shuffle(batch)
            self.patch(sizing, "FEW_ROWS", 0 if number == 1 else FEW_ROWS)
            self.ingest(batch + chance.sample(batches[number - 1], 9) if number else batch)
            said = self.lifecycle(self.out)
            self.assertIn("Brought up to date" if number else "there were no results", said)
            if number:
                self.assert_as_whole()

    def day(self, day: int) -> Node:
        """A node with the jobs of a day, one of which stays."""
        node = Node("a", boot=day)
        for number in range(20):
            job, at_s = job_id(100 * day + number), day * _DAY_S + 60.0 * number
            node.add(at_s, job, ttl_s=600)
            node.log(at_s + 1, "delivered", job, wait_ms=1)
            if number:
                node.log(at_s + 2, "acked", job, run_ms=number)
        return node

    def test_files(self) -> None:
        """Only files with new events, or from the time of jobs that these are about, are read; what
        was merged is not new; and results of which not all were published are computed again."""
        self.ingest(event for day in range(4) for event in self.day(day).events)
        self.lifecycle(self.out)
        optimize(self.table, again=True)
        self.assertEqual("Up to date: no event was added.", self.lifecycle(self.out))
        self.ingest(self.day(4).events)
        self.assertEqual(
            "Brought up to date: 1 of 5 files of events were read, and 1 of 2 files of jobs"
            " written again.",
            self.lifecycle(self.out),
        )
        late = Node("b")
        late.log(3700, "expired", job_id(0))
        self.ingest(late.events)

        self.assertIn(" 2 of 6 files of events were read", self.lifecycle(self.out))
        self.assert_as_whole()
        # As if that run had been killed before it published this table.
        flow = Output(self.spark, f"{self.out}/flow", "lifecycle: flow")
        flow.publish([], {**flow.notes, "version": 1})
        self.assertIn("before it had published all results", self.lifecycle(self.out))
        self.assert_as_whole()

    def test_unmoved(self) -> None:
        """What is known about pairs of nodes is kept when no job moved since."""
        self.ingest(event for node in random_nodes(4, 30) for event in node.events)
        self.lifecycle(self.out)
        before = self.rows(self.out)
        self.assertTrue(before["flow"] and before["clocks"])
        self.ingest(self.day(4).events)
        self.lifecycle(self.out)
        after = self.rows(self.out)
        self.assertEqual(before["flow"], after["flow"])
        self.assertEqual(before["clocks"], after["clocks"])
        self.assert_as_whole()

    def test_other_origin(self) -> None:
        """Results of another window, or of another table, are not brought up to date, and only
        replaced on request."""
        self.ingest(self.day(0).events[:4])
        self.lifecycle(self.out)
        for table, window_s in ((self.table, 60), (str(self.folder / "other"), 3600)):
            EventTable(self.spark, table, create=True)
            with self.assertRaises(OutputExists) as raised:
                lifecycle(self.spark, table, self.out, window_s)
            self.assertIn("add --whole to replace them", str(raised.exception))
        self.ingest(self.day(0).events[4:])
        self.patch(results, "WHOLE_BELOW", 1_000_000)
        said = self.lifecycle(self.out)
        self.assertEqual("Computed from all events: there are few, so this is faster.", said)
        said = self.lifecycle(self.out, whole=True)
        self.assertEqual("Computed from all events: that was asked for.", said)
