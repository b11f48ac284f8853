"""The examples of the documentation."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path

from disque_tx.spark.pipeline.tables import Table
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from tests.acceptance.spark.case import SparkTestCase, address

_HOW_TO = Path(__file__).resolve().parents[3] / "docs/how-to/read-and-write-queues-with-spark.md"
_PLACES = (
    '"mail.parquet"',
    '"mail.checkpoint"',
    '"lake"',
    '"lake.checkpoint"',
    '"*.aof"',
    '"events',
    '"history',
    '"additions"',
)
_EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)


class HowToTests(SparkTestCase):
    """Examples that readers copy."""

    def test_examples(self) -> None:
        """All examples run one after the other, with a daemon that writes a log and events."""
        daemon = self.running("appendonly yes", "eventlog yes", "eventlog-rotate-time 1")
        names: dict[str, object] = {}
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(daemon.folder)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            for program in _EXAMPLE.findall(_HOW_TO.read_text()):
                program = program.replace("127.0.0.1:7711", address(daemon))
                for name in _PLACES:
                    program = program.replace(name, f'"{daemon.folder}/{name[1:]}')
                exec(program, names)
        self.assertEqual(1000, self.spark.read.parquet(f"{daemon.folder}/mail.parquet").count())
        additions = self.spark.read.parquet(f"{daemon.folder}/additions").count()
        added = Table(self.spark, f"{daemon.folder}/history").rows().where("kind = 'added'")
        self.assertEqual(added.count(), additions)
        self.assertEqual(1000, DeltaLog(f"{daemon.folder}/lake").rows())
        self.assertIn("'queued': 0", printed.getvalue().replace('"', "'"))
        self.assertEqual("0", daemon.info()["registered_jobs"])
        self.assertIn("disque.job.added", printed.getvalue())
