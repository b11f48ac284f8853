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
from disque_tx.spark.pipeline.local.ingestion import ingest as by_duckdb
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
from disque_tx.spark.pipeline.ingest import files
from disque_tx.spark.pipeline.tables.upkeep import optimize, vacuum

files._BATCH_FILES = 1
while True:
    print("begun", flush=True)
    ingest([sys.argv[1]], sys.argv[2], lambda name: print(name, flush=True))
    optimize(sys.argv[2], again=True)
    print("optimized", flush=True)
    vacuum(sys.argv[2], keep_hours=0)
    print("cleaned", flush=True)
"""


#: Before it, the engine defines ``ingest``.
_BY_SPARK = """
from functools import partial
from disque_tx.spark import session
from disque_tx.spark.pipeline.ingest import ingest
ingest = partial(ingest, session("working", "local[1]"))
"""
_BY_DUCKDB = "from disque_tx.spark.pipeline.local.ingestion import ingest\n"


class KillTests(PipelineCase):
    """The program, with the Java that it started, is killed at once."""

    engine = _BY_SPARK

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
        below = [path.relative_to(self.table) for path in Path(self.table).rglob("*.parquet")]
        # The log may have a checkpoint.
        files = {str(path) for path in below if path.parts[0] != "_delta_log"}
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
        program = self.engine + _WORKING
        words = [sys.executable, "-c", program, str(self.folder / "logs"), self.table]
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


class DuckKillTests(KillTests):
    """The same by DuckDB, which Spark follows."""

    engine = _BY_DUCKDB

    def test_nothing_is_lost(self) -> None:
        """Whenever ingest, optimize or vacuum is killed, each event is in the table once, and what
        DuckDB had on the disk meanwhile is gone after the next run."""
        super().test_nothing_is_lost()
        by_duckdb([str(self.folder / "logs")], self.table)
        self.assertEqual([], list(self.folder.glob(".*")))
