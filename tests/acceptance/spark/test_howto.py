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

_HOW_TO = Path(__file__).resolve().parents[3] / "docs/how-to"
_PAGES = (
    "write-queues-with-spark",
    "read-queues-with-spark",
    "keep-jobs-in-a-lake",
    "operate-spark-queries",
)
#: Relative paths in the examples.
_PLACE = re.compile(
    r'"((?:mail|lake|operate|history|letters)\.(?:parquet|checkpoint)'
    r'|lake|operated|history|additions|letters|events[^"]*|\*\.aof)"'
)
_EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)


class HowToTests(SparkTestCase):
    """Examples that readers copy."""

    def test_examples(self) -> None:
        """The examples of each page run one after the other, with a daemon that writes a log and
        events, and jobs in the queue."""
        daemon = self.running("appendonly yes", "eventlog yes", "eventlog-rotate-time 1")
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(daemon.folder)
        letters = Path(daemon.folder, "letters")
        letters.mkdir()
        (letters / "some.txt").write_text("first\nsecond\n")

        def run(programs: list[str]) -> None:
            names: dict[str, object] = {}
            for program in programs:
                program = program.replace("127.0.0.1:7711", address(daemon))
                exec(_PLACE.sub(rf'"{daemon.folder}/\1"', program), names)

        pages = [_EXAMPLE.findall((_HOW_TO / f"{page}.md").read_text()) for page in _PAGES]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            for page in pages:
                if page is not pages[0]:
                    run(pages[0][:1])
                run(page)
        self.assertEqual(2000, self.spark.read.parquet(f"{daemon.folder}/mail.parquet").count())
        additions = self.spark.read.parquet(f"{daemon.folder}/additions").count()
        added = Table(self.spark, f"{daemon.folder}/history").rows().where("kind = 'added'")
        self.assertEqual(added.count(), additions)
        for table in ("lake", "operated"):
            self.assertEqual(1000, DeltaLog(f"{daemon.folder}/{table}").rows())
        self.assertIn("'queued': 0", printed.getvalue().replace('"', "'"))
        client = self.client(daemon)
        left = {queue: client.queue_length(queue) for queue in ("mail", "bills", "letters")}
        self.assertEqual({"mail": 0, "bills": 100, "letters": 2}, left)
        self.assertIn("disque.job.added", printed.getvalue())
