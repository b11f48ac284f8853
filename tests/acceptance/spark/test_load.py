"""Jobs from tables are added to the queues of a real daemon: ``export``, ``load`` and
``replay``."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result
from pyspark.sql import Row

from disque_tx.spark.pipeline.cli import program as cli
from disque_tx.spark.pipeline.transfer.replay import Ledger
from tests.acceptance.daemon import Daemon, free_port, wait_for
from tests.acceptance.spark.case import SparkTestCase, address, finished_events
from tests.acceptance.spark.commands import OPTIONS


class PipelineTestCase(SparkTestCase):
    """Runs commands as users do."""

    def run_command(self, *words: str, answer: str = "") -> Result:
        """Run a command to its end."""
        return CliRunner().invoke(cli.command, [*OPTIONS, *words], input=answer)

    def ran(self, *words: str, answer: str = "") -> str:
        """The output of a command that must succeed."""
        result = self.run_command(*words, answer=answer)
        self.assertEqual(0, result.exit_code, result.output)
        return result.output

    def refused(self, *words: str, answer: str = "") -> str:
        """The output of a command that must fail without a traceback."""
        result = self.run_command(*words, answer=answer)
        self.assertEqual(1, result.exit_code, result.output)
        self.assertNotIn("Traceback", result.output)
        return result.output

    def bodies_in(self, daemon: Daemon, queue: str) -> list[bytes]:
        """The bodies that can be fetched from a queue, sorted."""
        jobs = self.client(daemon).get_jobs(queue, count=1000, no_hang=True)
        return sorted(job.body for job in jobs)


class LoadTests(PipelineTestCase):
    """``load``."""

    def setUp(self) -> None:
        super().setUp()
        self.source = str(self.folder() / "table")
        rows = [Row(line=f"job {number}", number=number) for number in range(20)]
        rows.append(Row(line=None, number=20))
        self.spark.createDataFrame(rows).write.parquet(self.source)

    def words(self, servers: str, *more: str) -> list[str]:
        """The arguments of the command."""
        line = ["load", self.source, "--queue", "q", "--body-column", "line"]
        return [*line, "--servers", servers, *more]

    def test_load(self) -> None:
        """Each row becomes a job with the given options; rows without a body are skipped."""
        daemon = self.running()
        words = self.words(address(daemon), "--retry", "7", "--ttl", "900", "--where", "number > 9")
        output = self.ran(*words, "--dry-run")
        self.assertIn("10 jobs for the queue 'q'", output)
        self.assertIn("1 row without a body", output)
        self.assertEqual("0", daemon.info()["registered_jobs"])
        self.assertIn("10 jobs added", self.ran(*words, answer="y\n"))
        (first, *_) = self.client(daemon).job_scan("q")
        self.assertEqual(7, first.retry_s)
        self.assertIn(first.ttl_s, range(800, 901))
        self.assertEqual([b"job %d" % n for n in range(10, 20)], self.bodies_in(daemon, "q"))

    def test_not_confirmed(self) -> None:
        """Without a confirmation, no job is added."""
        daemon = self.running()
        self.assertIn("Aborted", self.refused(*self.words(address(daemon)), answer="n\n"))
        self.assertEqual("0", daemon.info()["registered_jobs"])

    def test_errors(self) -> None:
        """Errors are one line that names the node, the column, the table, or the option."""
        daemon = self.running()
        self.client(daemon).pause("q", "in")
        self.assertIn("PAUSED", self.refused(*self.words(address(daemon), "--yes")))
        self.assertEqual("0", daemon.info()["registered_jobs"])
        gone = f"127.0.0.1:{free_port()}"
        output = self.refused(*self.words(gone, "--yes"))
        self.assertIn("No Disque node could be reached", output)
        self.assertIn(
            "Choose one of line, number", self.refused(*self.words(gone)[:4], *self.to(gone))
        )
        number = ["--body-column", "number", *self.to(gone)]
        self.assertIn("'number' of", self.refused(*self.words(gone)[:4], *number))
        self.assertIn(
            "does not exist", self.refused("load", "/none", "--queue", "q", *self.to(gone))
        )
        self.assertIn("is not understood", self.refused(*self.words("no:address:at:all")))

    def to(self, servers: str) -> list[str]:
        """The option with the nodes."""
        return ["--servers", servers]


class ReplayTests(PipelineTestCase):
    """``replay``, with events or after ``export``."""

    def history(self, bodies: str) -> tuple[Daemon, str]:
        """A daemon, and the table of its events: 5 jobs acknowledged, 3 deleted."""
        daemon = self.running("eventlog yes", "eventlog-rotate-time 1", f"eventlog-body {bodies}")
        client = self.client(daemon)
        done = [client.add_job("q", f"done {number}", retry_s=7) for number in range(5)]
        client.get_jobs("q", count=5)
        client.ack_jobs(*done)
        client.delete_jobs(*(client.add_job("q", b"\xff%d" % n, ttl_s=900) for n in range(3)))
        table = str(self.folder() / "table")

        def deleted() -> int:
            return sum(event["type"] == "disque.job.deleted" for event in finished_events(daemon))

        wait_for(lambda: deleted() == 3, "all events are in finished files", 60)
        self.ran("ingest", str(daemon.folder / "events"), "--into", table)
        return daemon, table

    def test_events(self) -> None:
        """Jobs are added again with the same options, to their queue, and only once, however often
        the command is run."""
        daemon, table = self.history("yes")
        words = ["replay", table, "--servers", address(daemon), "--yes", "--where"]
        output = self.ran(*words, "outcome = 'deleted' AND queue = 'q'")
        self.assertIn("3 jobs to replay", output)
        (job, *_) = self.client(daemon).job_scan("q")
        self.assertIn(job.ttl_s, range(800, 901))
        self.assertEqual([b"\xff0", b"\xff1", b"\xff2"], self.bodies_in(daemon, "q"))
        output = self.ran(*words, "true", "--queue", "again", "--retry", "9")
        self.assertIn("5 jobs to replay", output)
        self.assertIn("3 jobs replayed before", output)
        (job, *_) = self.client(daemon).job_scan("again")
        self.assertEqual(9, job.retry_s)
        self.assertEqual(5, len(self.bodies_in(daemon, "again")))
        self.assertNotIn("jobs added", self.ran(*words, "true"))

    def test_bodies_not_logged(self) -> None:
        """Without bodies in the log, no job is added, and the error says how to log them."""
        daemon, table = self.history("hash")
        words = ["replay", table, "--servers", address(daemon), "--where", "outcome = 'acked'"]
        self.assertIn("eventlog-body yes", self.refused(*words))

    def test_append_only_file(self) -> None:
        """The jobs of a node that no longer exists can be exported from its files and added
        again."""
        old = self.running("appendonly yes")
        client = self.client(old)
        for number in range(4):
            client.add_job("q", f"job {number}", retry_s=7)
        old.terminate()
        with open(next(old.folder.glob("*.aof")), "ab") as log:
            log.write(b"*2\r\n$7\r\nLOADJOB\r\n$100\r\ncut")
        daemon, table = self.running(), str(self.folder() / "jobs")
        output = self.ran("export", str(old.folder), "--into", table)
        self.assertIn("4 jobs of 1 queue from 1 file", output)
        self.assertIn("where it is cut", output)
        self.assertIn("--overwrite", self.refused("export", str(old.folder), "--into", table))
        self.assertIn("4 jobs", self.ran("export", str(old.folder), "--into", table, "--overwrite"))
        words = ["replay", table, "--servers", address(daemon), "--where"]
        self.assertIn("4 jobs to replay", self.ran(*words, "queue = 'q'", "--dry-run"))
        self.assertIn("4 jobs added", self.ran(*words, "retry_s = 7", "--yes"))
        self.assertEqual([b"job %d" % n for n in range(4)], self.bodies_in(daemon, "q"))
        self.assertIn("COLUMN", self.refused(*words, "colour = 'red'"))

    def test_unfinished(self) -> None:
        """After a failed replay, the next one asks what to do with jobs that may have been
        added."""
        table = str(self.folder() / "jobs")
        log = Path(__file__).resolve().parents[2] / "vectors" / "aof" / "node0.aof"
        self.ran("export", str(log), "--into", table)
        daemon = self.running()
        where = ["--where", "true", "--yes"]
        gone = f"127.0.0.1:{free_port()}"
        self.assertIn("reached", self.refused("replay", table, "--servers", gone, *where))
        words = ["replay", table, "--servers", address(daemon), *where]
        self.assertIn("--unfinished again", self.refused(*words))
        self.assertIn("jobs added", self.ran(*words, "--unfinished", "again", "--queue", "q"))
        added = self.client(daemon).queue_length("q")
        self.assertEqual(added, Ledger(self.spark, f"{table}/_replayed").known().count())
        self.assertNotIn("jobs added", self.ran(*words))

    def test_wrong_table(self) -> None:
        """A table with other content, or a missing one, is reported as an error."""
        table = str(self.folder() / "table")
        self.spark.range(3).write.parquet(table)
        words = ["--servers", "127.0.0.1:7711", "--where", "true"]
        self.assertIn("is neither a table of events", self.refused("replay", table, *words))
        self.assertIn("does not exist", self.refused("replay", f"{table}-no", *words))
