"""A table of events whose writer is killed again and again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import polars

from disque_tx.spark.pipeline.ingest.ingestion import ingest
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.tables.upkeep import vacuum
from tests.acceptance.daemon import environment
from tests.acceptance.spark.case import KILLS
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.logs import Node, job_id, segment

_FILES = 6
#: Ingests a file at a time and optimizes, again and again, and prints a line per step, so that it
#: can be killed at any of them.
_WORKING = """
import sys
from disque_tx.spark import session
from disque_tx.spark.pipeline.ingest import files, ingestion
from disque_tx.spark.pipeline.tables.upkeep import optimize, vacuum

files._BATCH_FILES = 1
spark = session("working", "local[1]")
while True:
    print("begun", flush=True)
    ingestion.ingest(spark, [sys.argv[1]], sys.argv[2], lambda name: print(name, flush=True))
    optimize(sys.argv[2], again=True)
    print("optimized", flush=True)
    vacuum(sys.argv[2], keep_hours=0)
    print("cleaned", flush=True)
"""


class KillTests(PipelineCase):
    """Driver and Java are killed at once."""

    def test_nothing_is_lost(self) -> None:
        """Whenever ingest, optimize or vacuum is killed, each event is in the table once, as two
        readers see it, and after ``vacuum`` the folder has no file beside those of the table."""
        random = Random(1)
        nodes = [Node("a"), Node("b")]
        for _ in range(KILLS):
            for _ in range(_FILES):
                self.log(random.choice(nodes))
            self.work_and_kill(random.randrange(1, 4 * _FILES), random.random() * 0.2)
        ingest(self.spark, [str(self.folder / "logs")], self.table)
        vacuum(self.table, keep_hours=0)
        self.assert_each_once(event for node in nodes for event in node.events)
        found = polars.read_delta(self.table).select("node", "boot", "seq")
        wanted = sum(len(node.events) for node in nodes)
        self.assertEqual((wanted, wanted), (found.height, found.unique().height))
        files = {str(path.relative_to(self.table)) for path in Path(self.table).rglob("*.parquet")}
        self.assertEqual({file.path for file in DeltaLog(self.table).files()}, files)

    def log(self, node: Node) -> None:
        """Let the node finish a file."""
        before = len(node.events)
        for number in range(before, before + 20):
            node.log(number, "delivered", job_id(number, node.letter))
            node.log(number + 1, "acked", job_id(number, node.letter))
        segment(self.folder / "logs", node.events[before:])

    def work_and_kill(self, steps: int, pause_s: float) -> None:
        """Kill a process that works, this many steps and seconds after its start."""
        words = [sys.executable, "-c", _WORKING, str(self.folder / "logs"), self.table]
        process = subprocess.Popen(
            words,
            env=environment(),
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
