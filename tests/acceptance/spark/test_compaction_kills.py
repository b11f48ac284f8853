"""A table that is compacted by a process that is killed again and again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

from disque_tx.spark.pipeline.ingest.ingestion import ingest
from disque_tx.spark.pipeline.tables.compaction import compact
from tests.acceptance.daemon import environment
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.logs import Event, Node, job_id, write

_KILLS = int(os.environ.get("SPARK_KILLS", "4"))
_ROOT = Path(__file__).resolve().parents[3]
#: Compacts in an endless loop and prints a line per step, so that it can be killed at any of them.
_COMPACTING = """
import sys
from disque_tx.spark import session
from disque_tx.spark.pipeline.tables.compaction import compact

spark = session("compacting", "local[1]")
while True:
    print("begun", flush=True)
    compact(spark, sys.argv[1], lambda name: print(name, flush=True), kept_ms=0)
"""


class KillTests(PipelineCase):
    """Driver and JVM are killed at once."""

    def test_nothing_is_lost(self) -> None:
        """When compaction is killed at any step, each event is in the table once, whatever is
        ingested in between."""
        random = Random(1)
        node = Node("a")
        for _ in range(_KILLS):
            for _ in range(3):
                self.add(node)
            self.compact_and_kill(random.randrange(1, 6), random.random() * 0.2)
            self.assert_each_once(node.events)
        compact(self.spark, self.table, kept_ms=0)
        self.assertEqual(1, len(list(Path(self.table).glob("dt=*/*.parquet"))))
        self.assert_each_once(node.events)

    def add(self, node: Node) -> None:
        """Ingest some more events of the node."""
        before = len(node.events)
        node.log(before, "delivered", job_id(before))
        node.log(before + 1, "acked", job_id(before))
        events: list[Event] = node.events[before:]
        ingest(self.spark, [str(write(self.folder / f"{before}.jsonl", events))], self.table)

    def compact_and_kill(self, steps: int, pause_s: float) -> None:
        """Kill a process that compacts, this many steps and seconds after its start."""
        paths = os.pathsep.join((environment()["PYTHONPATH"], str(_ROOT)))
        process = subprocess.Popen(
            [sys.executable, "-c", _COMPACTING, self.table],
            env={**os.environ, "PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        try:
            for _ in range(steps):
                self.assertNotEqual(
                    "", process.stdout.readline(), "the process ended before it was killed"
                )
            try:
                process.wait(pause_s)
            except subprocess.TimeoutExpired:
                pass
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()
