"""The program, as users run it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from click.testing import CliRunner, Result

from disque_tx.spark.pipeline.cli import program as cli
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from tests.spark.pipeline.cases import PipelineCase
from tests.spark.pipeline.logs import Node, job_id, write
from tests.spark.pipeline.transfer.test_former import FormerCase


def run_command(*words: object) -> Result:
    """Run the program in this process, with the shared session."""
    return CliRunner().invoke(
        cli.command, ["--master", "local[2]", "--no-progress", *map(str, words)]
    )


class ConvertTests(FormerCase):
    """Tables of an earlier version."""

    def test_convert(self) -> None:
        """Who converts a table is told how much it has, to compare it, and whether the former one
        is still there."""
        self.batch(0)
        for words, end in ((), "is still there."), (("--remove",), "was removed."):
            done = run_command("convert", self.table, *words)
            self.assertEqual(
                f"4 events in 1 file, as many as before. The former table {end}\n", done.output
            )


class CommandTests(PipelineCase):
    """Output and exit status."""

    def logged(self) -> Path:
        """A log with a job that was delivered twice despite RETRY 0."""
        node = Node("a")
        node.add(0, job_id(1), retry_s=0)
        node.work(1, job_id(1))
        node.log(0.5, "delivered", job_id(1), wait_ms=3)
        node.events.insert(2, node.events.pop())
        return write(self.folder / "x.jsonl", node.events, b"torn")

    def test_whole(self) -> None:
        """Ingest, lifecycle and audit work in sequence; the status of the audit shows a violation,
        and its output the job."""
        ingested = run_command("ingest", self.logged(), "--into", self.table)
        self.assertIn(
            "1 new file: 5 events, 5 of them new, 0 known already; 1 line", ingested.output
        )
        out = self.folder / "out"
        made = run_command("lifecycle", self.table, "--into", out)
        self.assertEqual((0, True), (made.exit_code, f"{out}/jobs" in made.output))
        audited = run_command("audit", self.table)
        self.assertEqual(1, audited.exit_code)
        self.assertIn(f"retry0-twice: violated: 1 job\n  {job_id(1)}  mail", audited.output)
        audit = json.loads(run_command("audit", self.table, "--json").output)
        self.assertIn(
            {"check": "retry0-twice", "verdict": "violated", "job_id": job_id(1), "queue": "mail"},
            audit["suspects"],
        )

    def test_unfinished(self) -> None:
        """Who ingests the log of a node that was just stopped is told that the end is missing, and
        how to get it."""
        events = self.folder / "events"
        events.mkdir()
        (events / "_full-3c0f1d52-1-000000000000.events").write_bytes(b"x")
        ingested = run_command("ingest", events, "--into", self.table)
        self.assertIn("1 segment not finished yet.", ingested.output)

    def test_upkeep(self) -> None:
        """The commands that keep a table in order print what they did, as text or as JSON."""
        run, table = run_command, self.table
        run("ingest", self.logged(), "--into", table)
        more = Node("b")
        more.add(0, job_id(2))
        run("ingest", write(self.folder / "y.jsonl", more.events), "--into", table)
        done = run("optimize", table)
        self.assertIn("2 files became 1; the table has 1 now.", done.output)
        result = json.loads(run("optimize", table, "--json").output)
        self.assertEqual({"merged": 0, "new": 0, "files": 1}, result)
        versions = run("history", table, "--limit", 2, "--json").output.splitlines()
        newest = json.loads(versions[0])
        self.assertEqual("OPTIMIZE", newest["operation"])
        self.assertIn("  WRITE", run("history", table).output)
        first = run("audit", table, "--as-of", 1, "--json").output
        self.assertEqual((1, 2), (json.loads(first)["jobs"], self.jobs(table)))
        done = run("forget", table, "--job", job_id(2), "--json")
        self.assertEqual((0, []), (done.exit_code, json.loads(done.output)["left"]))
        self.assertEqual(1, self.jobs(table))
        self.assertIn("0 events deleted", run("forget", table, "--queue", "x").output)
        self.assertIn("5 events deleted", run("expire", table, "--before", "2026-11-21").output)
        self.assertRegex(run("vacuum", table, "--keep", 0).output, "^[1-9] files? removed.")
        self.assertIn("nothing to convert", run("convert", table).output)
        self.assertEqual(2, run("forget", table).exit_code)

    def test_odd_words(self) -> None:
        """Dates long ago, versions that no table can have, and names of queues that are not UTF-8,
        which events spell with ``\\xff``, end in words and not in tracebacks."""
        node = Node("a")
        node.add(0, job_id(1), queue="bad\\xff")
        run_command("ingest", write(self.folder / "x.jsonl", node.events), "--into", self.table)
        done = run_command("expire", self.table, "--before", "0001-01-01")
        self.assertEqual("0 events deleted.\n", done.output)
        for digits in (19, 5000):
            done = run_command("audit", self.table, "--as-of", "9" * digits)
            self.assertEqual((2, True), (done.exit_code, "digits" in done.output), done.output)
        done = run_command("audit", self.table, "--as-of", "9" * 18)
        self.assertEqual((1, True), (done.exit_code, "cannot be read as of" in done.output))
        done = run_command("forget", self.table, "--queue", os.fsdecode(b"bad\xff"))
        self.assertIn("2 events deleted", done.output)

    def test_left(self) -> None:
        """Who must forget something is told of each file in which it may still be, since another
        process wrote it meanwhile, and the status shows it: somebody has to look at them."""
        run_command("ingest", self.logged(), "--into", self.table)
        (file,) = DeltaLog(self.table).files()
        name = Path(self.table, file.path)
        newer = [name.with_name(f"{letter}.parquet") for letter in "ab"]
        places = [str(path.relative_to(self.table)) for path in newer]
        delete, content = DeltaLog.delete, name.read_bytes()

        def meanwhile(log: DeltaLog, condition: str, numbers: Mapping[str, int]) -> int:
            for path in newer:
                path.write_bytes(content)
                path.with_name(f".{path.name}.crc").write_bytes(b"x")
            return delete(log, condition, numbers)

        self.patch(DeltaLog, "delete", meanwhile)
        done = run_command("forget", self.table, "--queue", "mail")
        self.assertEqual(1, done.exit_code)
        first, *lines = done.output.splitlines()
        self.assertTrue(first.startswith("5 events deleted, and "), first)
        begin = "This file is newer, and was left: "
        self.assertEqual([begin + place for place in places], sorted(lines))
        newer = [path.with_name(f"c{path.name}") for path in newer]
        places = [str(path.relative_to(self.table)) for path in newer]
        done = run_command("forget", self.table, "--queue", "mail", "--json")
        self.assertEqual(1, done.exit_code)
        self.assertEqual(places, sorted(json.loads(done.output)["left"]))

    def jobs(self, table: str) -> int:
        """How many jobs the audit counts."""
        return int(json.loads(run_command("audit", table, "--json").output)["jobs"])

    def test_mistakes(self) -> None:
        """An error is one line with what to do, without a traceback."""
        wrong = run_command("audit", self.folder / "nothing")
        self.assertEqual(1, wrong.exit_code)
        self.assertIn(
            "does not exist or is empty. 'disque-pipeline ingest' creates one", wrong.output
        )
        wrong = run_command("ingest", self.folder / "nothing", "--into", self.table)
        self.assertIn("nothing does not exist. Name folders or files", wrong.output)
        wrong = CliRunner().invoke(cli.command, ["--conf", "x", "audit", "t"])
        self.assertEqual((2, True), (wrong.exit_code, "is not KEY=VALUE" in wrong.output))
