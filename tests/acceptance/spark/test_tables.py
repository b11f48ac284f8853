"""Queues as tables, and tables written to queues."""

from __future__ import annotations

import threading

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from disque_tx import Disque
from disque_tx.spark.sink.staging import discard_staged
from tests.acceptance.daemon import free_port
from tests.acceptance.spark.case import SparkTestCase, add_many, address, dotted


class ReadTests(SparkTestCase):
    """``read``."""

    def test_peek(self) -> None:
        """Reading leaves the jobs in their queues, and can be repeated."""
        daemon = self.running()
        add_many(address(daemon), "a", 3)
        add_many(address(daemon), "b", 2)
        table = self.read(address(daemon), "a,b")
        self.assertEqual(5, table.count())
        self.assertEqual(3, table.where("queue = 'a'").count())
        self.assertEqual(3, self.client(daemon).queue_length("a"))


class WriteTests(SparkTestCase):
    """``write``."""

    def refusal(self, table: DataFrame, servers: str, **options: str) -> str:
        """The error message of a write that fails."""
        with self.assertRaises(PySparkException) as raised:
            self.write(table, servers, **options)
        return str(raised.exception)

    def test_columns(self) -> None:
        """Columns give the options of each job; null means the default of the write."""
        daemon = self.running()
        table = self.spark.sql(
            "SELECT 'x' AS queue, X'00FF' AS body, 7 AS retry, CAST(NULL AS INT) AS ttl, 0 AS delay"
        )
        self.write(table, address(daemon), ttl="100", disque_replicate="1")
        (job,) = self.client(daemon).job_scan("x")
        self.assertEqual((b"\0\xff", 7, 1), (job.body, job.retry_s, job.replicate))
        self.assertIn(job.ttl_s, range(90, 101))
        self.write(table, address(daemon), queue="y")
        self.assertEqual(1, self.client(daemon).queue_length("y"))

    def test_what_cannot_be_written(self) -> None:
        """Unknown columns, wrong types and nulls are reported as errors, and no job is added."""
        daemon = self.running()
        servers = address(daemon)
        sql = self.spark.sql
        error = self.refusal(sql("SELECT 1 AS body, 'a' AS ttl, 2 AS colour"), servers)
        for words in ("'body' is int", "'ttl' is string", "'colour' is not known", "neither a col"):
            self.assertIn(words, error)
        null = sql("SELECT 'q' AS queue, CAST(NULL AS STRING) AS body UNION ALL SELECT 'q', 'x'")
        self.assertIn("column 'body' is null", self.refusal(null.coalesce(1), servers))
        late = sql("SELECT 'q' AS queue, 'x' AS body, -1 AS delay")
        self.assertIn("value -1", self.refusal(late, servers))
        self.assertEqual("0", daemon.info()["registered_jobs"])

    def test_refusals(self) -> None:
        """A write fails when a node refuses a job, or when no node can be reached."""
        daemon = self.running()
        client = self.client(daemon)
        client.pause("q", "in")
        self.assertIn("PAUSED", self.refusal(self.table(2), address(daemon)))
        self.assertIn("NOREPL", self.refusal(self.table(1), address(daemon), disque_replicate="3"))
        gone = f"127.0.0.1:{free_port()}"
        self.assertIn("No Disque node could be reached", self.refusal(self.table(1), gone))
        self.write(self.table(2, "other"), f"{gone},{address(daemon)}")
        self.assertEqual(2, client.queue_length("other"))

    def test_overwrite(self) -> None:
        """Overwriting is refused: jobs can only be added."""
        writer = self.table(1).write.format("disque").mode("overwrite")
        with self.assertRaises(PySparkException) as raised:
            writer.options(**dotted({"disque_servers": "h:1"})).save()
        self.assertIn("append", str(raised.exception))


class StagedTests(SparkTestCase):
    """``deliveryMode=staged``."""

    def test_shown_at_once(self) -> None:
        """When all tasks are done, all jobs can be fetched, with the requested RETRY and TTL."""
        daemon = self.running()
        self.write(self.table(500), address(daemon), deliveryMode="staged", retry="9", ttl="1000")
        client = self.client(daemon)
        self.assertEqual(500, client.queue_length("q"))
        job = client.show(client.get_jobs("q")[0].id)
        assert job is not None
        self.assertEqual(9, job.retry_s)
        self.assertIn(job.ttl_s, range(900, 1001))

    def test_failing_task(self) -> None:
        """When one task fails, no job of any task is delivered, and all can be deleted."""
        daemon = self.running()
        body = "IF(id = 999, CAST(raise_error('broken') AS STRING), CAST(id AS STRING)) AS body"
        table = self.spark.range(0, 1000, 1, 4).selectExpr("'q' AS queue", body)
        with self.assertRaises(PySparkException):
            self.write(table, address(daemon), deliveryMode="staged")
        client = self.client(daemon)
        self.assertEqual(0, client.queue_length("q"))
        self.assertEqual([], client.get_jobs("q", timeout_ms=500))
        discard_staged(address(daemon), "q")
        self.assertEqual("0", daemon.info()["registered_jobs"])

    def test_slow(self) -> None:
        """Jobs of a write that takes longer than their TTL are never visible, whoever looks."""
        daemon = self.running()
        sleep = "java_method('java.lang.Thread', 'sleep', 4000L)"
        slow = self.spark.range(0, 2, 1, 2).selectExpr(
            "'q' AS queue", f"IF(id = 1, {sleep}, 'early') AS body"
        )
        seen: list[bytes] = []
        done = threading.Event()

        def watch() -> None:
            with Disque(address(daemon)) as other:
                while not done.is_set():
                    seen.extend(job.body for job in other.get_jobs(match="*", timeout_ms=100))

        watching = threading.Thread(target=watch)
        watching.start()
        try:
            with self.assertRaises(PySparkException) as raised:
                self.write(slow, address(daemon), deliveryMode="staged", retry="1", ttl="2")
        finally:
            done.set()
            watching.join()
        self.assertIn("1 of 2 staged jobs could not be made visible", str(raised.exception))
        self.assertNotIn(b"early", seen)

    def test_discard(self) -> None:
        """The staged jobs of a killed write are found and deleted; other jobs stay."""
        daemon = self.running()
        client = self.client(daemon)
        add_many(address(daemon), "staged:q", 3)
        client.add_job("q", "delayed", delay_s=60)
        client.add_job("q", "taken")
        client.get_jobs("q")
        self.assertEqual(3, discard_staged(address(daemon), "q"))
        self.assertEqual("2", daemon.info()["registered_jobs"])
