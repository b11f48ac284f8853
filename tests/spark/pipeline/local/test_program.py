"""``disque-pipeline --engine duckdb``, as users run it: without Java and Spark's library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.pipeline.cli.program import command
from tests.acceptance.daemon import environment
from tests.spark.pipeline import shop
from tests.spark.pipeline.local.tables import rows
from tests.spark.pipeline.logs import Node, job_id, write

#: Found before the real packages.
_ABSENT = "raise ModuleNotFoundError('not here', name=__name__)\n"


class ProgramTests(SynchronousTestCase):
    """A process of its own, in which neither a Java nor pyspark can be used."""

    def setUp(self) -> None:
        self.folder = Path(self.mktemp()).resolve()
        (self.folder / "absent").mkdir(parents=True)
        (self.folder / "bin").mkdir()
        self.absent("pyspark", "py4j")

    def absent(self, *packages: str) -> None:
        """Let these packages fail to be imported."""
        for package in packages:
            (self.folder / "absent" / f"{package}.py").write_text(_ABSENT)

    def run_program(self, *words: object, status: int = 0) -> str:
        """The output of the program, which must end with this status."""
        given = environment()
        path = os.pathsep.join([str(self.folder / "absent"), given["PYTHONPATH"]])
        given |= {"PYTHONPATH": path, "JAVA_HOME": "/nowhere", "PATH": str(self.folder / "bin")}
        done = subprocess.run(
            [sys.executable, "-m", "disque_tx.spark.pipeline", *map(str, words)],
            env=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.assertEqual(status, done.returncode, done.stdout)
        return done.stdout

    def duckdb(self, *words: object, status: int = 0) -> str:
        """The same with the option."""
        return self.run_program("--engine", "duckdb", *words, status=status)

    def test_without_java(self) -> None:
        """Who has no Java gets the whole pipeline, from logs to findings and verdicts, and all
        upkeep of the table."""
        for at, node in enumerate(shop.nodes()):
            write(self.folder / "logs" / f"{at}.jsonl.zst", node.events, b"torn")
        table, out = self.folder / "table", self.folder / "out"
        said = self.duckdb("ingest", self.folder / "logs", "--into", table)
        self.assertIn("3 new files: 1076 events, 1076 of them new, 0 known already; 3 lines", said)
        said = self.duckdb("lifecycle", table, "--into", out, "--window", 300)
        self.assertIn("Computed from all events, as --engine duckdb always does.\n", said)
        self.assertIn(f"{out}/findings\n", said)
        self.assertEqual(shop.JOBS + 8, len(rows(out / "jobs")[1]))
        self.assertIn("248 jobs.\nNo violations were found.\n", self.duckdb("audit", table))
        page = self.folder / "report.html"
        for engine in ((), ("--engine", "duckdb")):
            said = self.run_program(*engine, "report", out, "--html", page, "--events", table)
            self.assertEqual(f"{page}\n", said)
        self.assertIn("Nothing is wrong with 248 jobs", page.read_text())
        self.assertIn("files became 1", self.duckdb("optimize", table, "--all"))
        self.assertIn("OPTIMIZE", self.duckdb("history", table))
        done = json.loads(self.duckdb("forget", table, "--queue", "orders", "--json"))
        self.assertLess(0, done["events"])
        self.assertIn(" removed.", self.duckdb("vacuum", table))
        self.assertIn("events deleted", self.duckdb("expire", table, "--before", "2027-01-01"))

    def test_violation(self) -> None:
        """The status of the audit shows a violation, and its output the job."""
        node = Node("a")
        node.add(0, job_id(1), retry_s=0)
        for at_s in (1, 2):
            node.log(at_s, "delivered", job_id(1), wait_ms=3)
        self.duckdb("ingest", write(self.folder / "x.jsonl", node.events), "--into", "table")
        said = self.duckdb("audit", "table", status=1)
        self.assertIn(f"retry0-twice: violated: 1 job\n  {job_id(1)}  mail", said)

    def test_not_installed(self) -> None:
        """Without the package duckdb, one sentence says what to install."""
        self.absent("duckdb")
        for words in (("--engine", "duckdb", "audit", "table"), ("report", "x", "--html", "y")):
            said = self.run_program(*words, status=1)
            self.assertIn("needs the package duckdb: pip install 'disque-tx[lake]'", said)
            self.assertEqual(1, said.count("\n"))


class MistakeTests(SynchronousTestCase):
    """Options that do not go together."""

    def run_command(self, *words: object) -> Result:
        """Run the program in this process."""
        return CliRunner().invoke(command, ["--engine", "duckdb", *map(str, words)])

    def test_spark_options(self) -> None:
        """Settings of Spark are not ignored in silence."""
        for option, value in (("--master", "local[2]"), ("--conf", "a=b")):
            wrong = self.run_command(option, value, "audit", "table")
            self.assertEqual(2, wrong.exit_code)
            self.assertIn(f"{option} is for Spark: leave it out", wrong.output)

    def test_spark_alone(self) -> None:
        """Commands that only Spark has say so, and start nothing."""
        folder = self.mktemp()
        for words in (
            ("export", folder, "--into", "x"),
            ("convert", "table"),
            ("stream", "q", "--into", "x", "--servers", "127.0.0.1:1"),
        ):
            wrong = self.run_command(*words)
            self.assertEqual(2, wrong.exit_code, wrong.output)
            self.assertIn(f"{words[0]} runs on Spark alone: leave out --engine", wrong.output)

    def test_elsewhere(self) -> None:
        """Tables that are on no disk of this machine are refused, with what reads them."""
        for words in (
            ("ingest", "logs", "--into", "s3://bucket/table"),
            ("ingest", "s3://bucket/logs", "--into", self.mktemp()),
            ("lifecycle", "s3://bucket/table", "--into", self.mktemp()),
            ("lifecycle", self.mktemp(), "--into", "s3://bucket/results"),
        ):
            wrong = self.run_command(*words)
            self.assertEqual(1, wrong.exit_code)
            self.assertIn("is not on a disk of this machine. Use --engine spark", wrong.output)
