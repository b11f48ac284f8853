"""Results whose maker is killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from itertools import cycle, islice
from pathlib import Path

from disque_tx.spark.pipeline.ingest.ingestion import ingest
from disque_tx.spark.pipeline.lifecycle import results
from disque_tx.spark.pipeline.lifecycle.made import RESULTS
from disque_tx.spark.pipeline.lifecycle.results import lifecycle
from tests.acceptance.spark.case import KILLS, rows_of
from tests.acceptance.spark.objectstores import package_environment
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.logs import Event, Node, job_id, write

#: Some tables are published; all rows are computed; all tables are published, and it has not
#: ended. Then the others.
_STEPS = [f"{what} {part}" for what in ("written", "published") for part in RESULTS]
_POINTS = ("published queues", _STEPS[len(RESULTS) - 1], _STEPS[-1], *_STEPS)
#: In the gates, the first one.
_KILLS = max(1, min(KILLS - 1, len(_POINTS)))
#: What a run over new events says that follows a kill at these points.
_SAID = {
    "published queues": "before it had published all results",
    "written findings": "Brought up to date: ",
    "published findings": "Up to date: no event was added.",
}
_HOUR_S = 3600


class KillTests(PipelineCase):
    """Driver and Java are killed at once, between two steps."""

    def setUp(self) -> None:
        super().setUp()
        self.patch(results, "WHOLE_BELOW", 0)
        self.ingest("first", self.events(0))
        self.base = self.folder / "base"
        self.lifecycle(self.base)
        self.ingest("second", self.events(1))
        expected = self.folder / "expected"
        self.lifecycle(expected)
        #: The rows of each table before and after.
        self.before, self.after = self.rows(self.base), self.rows(expected)

    def ingest(self, name: str, events: Iterable[Event]) -> None:
        """Add events to the table."""
        path = write(self.folder / "logs" / f"{name}.jsonl", events)
        ingest(self.spark, [str(path)], self.table)

    def events(self, hour: int) -> list[Event]:
        """Jobs of an hour on two nodes, with moves, that change all results."""
        nodes = [Node("a", boot=2 * hour + 1), Node("b", boot=2 * hour + 2)]
        for number in range(24 * hour, 24 * hour + 24):
            node, other = nodes[number % 2], nodes[1 - number % 2]
            job, at_s = job_id(number, node.letter), hour * _HOUR_S + 60.0 * number
            node.add(at_s, job, retry_s=1)
            if number % 8 == 0:
                node.log(at_s + 1, "exported", job, peer=other.letter * 40)
                other.log(at_s + 1 + 0.01 / (hour + 1), "imported", job, peer=node.letter * 40)
                other.log(at_s + 1.02, "queued", job, reason="import")
                other.work(at_s + 2, job, run_ms=40 * (hour + 1))
            else:
                node.log(at_s + 1, "delivered", job, wait_ms=number)
                node.log(at_s + 2, "requeued", job, reason="retry")
                node.work(at_s + 3 + hour, job, run_ms=10 * number)
        return [event for node in nodes for event in node.events]

    def lifecycle(self, out: Path) -> str:
        """Make the results in this process; what it says."""
        return lifecycle(self.spark, self.table, str(out), _HOUR_S).how

    def rows(self, out: Path) -> dict[str, list[str]]:
        """The rows of each result, as a program without Spark reads them."""
        return {part: rows_of(f"{out}/{part}") for part in RESULTS}

    def test_whole(self) -> None:
        """Wherever a run over all events is killed, a reader sees old or new rows in each table,
        and the next run has the results of one that was not killed."""
        self.kill_at_each_point("whole")

    def test_update(self) -> None:
        """The same for a run over new events; the next one does not take rows of two runs for
        results that belong together."""
        said = self.kill_at_each_point("update")
        for point in said.keys() & _SAID.keys():
            self.assertIn(_SAID[point], said[point], point)

    def kill_at_each_point(self, how: str) -> dict[str, str]:
        """Kill it at each point; returns what the next run said."""
        self.assertEqual([], [part for part in RESULTS if self.before[part] == self.after[part]])
        said = {}
        for number, point in enumerate(islice(cycle(_POINTS), _KILLS)):
            out = self.folder / f"out-{number}"
            shutil.copytree(self.base, out)
            self.run_until(point, how, out)
            said[point] = self.lifecycle(out)
            self.assertEqual(self.after, self.rows(out), point)
        return said

    def run_until(self, point: str, how: str, out: Path) -> None:
        """Run it up to a point, and look at the tables after each step until it is killed."""
        words = [sys.executable, "-m", "tests.acceptance.spark.lifecycles", self.table, str(out)]
        process = subprocess.Popen(
            [*words, how],
            env=package_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        assert process.stdin is not None and process.stdout is not None
        published: set[str] = set()
        try:
            while step := process.stdout.readline().strip():
                if step.startswith("published"):
                    published.add(step.partition(" ")[2])
                seen = {part: self.before[part] for part in RESULTS}
                seen |= {part: self.after[part] for part in published}
                self.assertEqual(seen, self.rows(out), step)
                if step == point:
                    break
                print(file=process.stdin, flush=True)
            self.assertEqual(point, step, "the process ended before it was killed")
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdin.close()
            process.stdout.close()
