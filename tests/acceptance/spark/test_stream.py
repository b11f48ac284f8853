"""Queues as streams, and streams written to queues."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from tests.acceptance.daemon import free_port, wait_for
from tests.acceptance.spark.case import STREAM_S, SparkTestCase, add_many, address


class StreamSourceTests(SparkTestCase):
    """``readStream``."""

    def failure(self, query: StreamingQuery) -> str:
        """The error message of a query that fails."""
        with self.assertRaises(PySparkException) as raised:
            query.awaitTermination(STREAM_S)
        return str(raised.exception)

    def test_to_a_table_and_again(self) -> None:
        """Available jobs are stored once, in batches of the requested size, and acknowledged; a
        second run of the query stores those that were added since."""
        daemon = self.running()
        folder = self.folder()
        add_many(address(daemon), "q", 250)
        query = self.stored(self.stream(address(daemon), maxJobsPerTrigger="100"), folder)
        sizes = [progress["numInputRows"] for progress in query.recentProgress]
        self.assertEqual([100, 100, 50], [size for size in sizes if size])
        self.assertEqual("0", daemon.info()["registered_jobs"])
        add_many(address(daemon), "q", 10)
        self.stored(self.stream(address(daemon)), folder)
        self.assertEqual(sorted([*range(250), *range(10)]), self.bodies(folder))
        self.assertEqual("0", daemon.info()["registered_jobs"])

    def test_row(self) -> None:
        """A row contains the options the job was added with, and its counters."""
        daemon = self.running()
        client = self.client(daemon)
        job_id = client.add_job("q", b"\0\xff")
        client.get_jobs("q")
        client.nack(job_id)
        folder = self.folder()
        self.stored(self.stream(address(daemon)), folder)
        row = self.spark.read.parquet(str(folder / "out")).collect()[0]
        self.assertEqual((job_id, "q", bytearray(b"\0\xff"), 1, 0), (*row[:5],))
        self.assertLess(abs(row.ctime.timestamp() - int(daemon.client().call("TIME")[0])), 60)

    def test_kept_while_a_batch_runs(self) -> None:
        """Jobs whose RETRY is shorter than their batch are not delivered to other clients
        meanwhile."""
        daemon = self.running()
        client = self.client(daemon)
        client.add_job("q", "1", retry_s=1)
        seen: list[int] = []

        def slow(table: object, batch: int) -> None:
            for _ in range(4):
                seen.append(len(client.get_jobs("q", timeout_ms=1000)))

        query = (
            self.stream(address(daemon))
            .writeStream.foreachBatch(slow)
            .option("checkpointLocation", str(self.folder()))
            .trigger(availableNow=True)
            .start()
        )
        self.addCleanup(query.stop)
        self.assertTrue(query.awaitTermination(STREAM_S))
        self.assertEqual([0, 0, 0, 0], seen)

    def test_stopped(self) -> None:
        """When a query is stopped, its leases expire and other clients get the jobs."""
        daemon = self.running()
        client = self.client(daemon)
        begun: list[int] = []

        def stuck(table: object, batch: int) -> None:
            begun.append(batch)
            raise RuntimeError("no more")

        client.add_job("q", "1", retry_s=1)
        query = (
            self.stream(address(daemon))
            .writeStream.foreachBatch(stuck)
            .option("checkpointLocation", str(self.folder()))
            .start()
        )
        self.failure(query)
        self.assertEqual([0], begun)
        self.assertEqual(1, len(client.get_jobs("q", timeout_ms=20_000)))

    def test_paused_queue(self) -> None:
        """Jobs of a paused queue are not read; the query waits, and continues when the queue is
        resumed."""
        daemon = self.running()
        folder = self.folder()
        add_many(address(daemon), "q", 5)
        client = self.client(daemon)
        client.pause("q", "out")
        query = self.started(self.stream(address(daemon)), folder, once=False)
        wait_for(lambda: query.lastProgress, "the query looks for jobs", STREAM_S)
        self.assertEqual(5, client.queue_length("q"))
        client.pause("q", "none")
        wait_for(lambda: daemon.info()["registered_jobs"] == "0", "all jobs are stored", STREAM_S)
        query.stop()
        self.assertEqual([0, 1, 2, 3, 4], self.bodies(folder))

    def test_taken_by_others(self) -> None:
        """Jobs acknowledged by another client cannot be read again: the query stops with an error,
        or continues without them if ``failOnDataLoss`` is false. The same happens with an outdated
        checkpoint."""
        daemon = self.running()
        folder = self.folder()
        ids = add_many(address(daemon), "q", 3)
        self.broken_batch(address(daemon), folder)
        self.client(daemon).ack_jobs(*ids)
        error = self.failure(self.started(self.stream(address(daemon)), folder))
        self.assertIn("3 jobs that", error)
        self.assertIn("failOnDataLoss", error)
        add_many(address(daemon), "q", 2)
        self.stored(self.stream(address(daemon), failOnDataLoss="false"), folder)
        self.assertEqual([0, 1], self.bodies(folder))

    def broken_batch(self, servers: str, folder: object) -> None:
        """Leave a checkpoint with a batch that is begun but not stored."""
        broken = self.stream(servers).selectExpr("*", "raise_error('broken') AS error")
        query = (
            broken.writeStream.format("parquet")
            .option("path", f"{folder}/out")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        self.assertIn("broken", self.failure(query))

    def test_half_of_the_ttl(self) -> None:
        """Jobs beyond half of their TTL can still be read, although their leases cannot be
        renewed."""
        daemon = self.running()
        folder = self.folder()
        add_many(address(daemon), "q", 2, ttl_s=24, retry_s=60)
        client = self.client(daemon)
        wait_for(lambda: all(job.ttl_s <= 11 for job in client.job_scan("q")), "the jobs are old")
        self.stored(self.stream(address(daemon)), folder)
        self.assertEqual([0, 1], self.bodies(folder))

    def test_bad_password(self) -> None:
        """A wrong password ends the query; the message does not show it."""
        daemon = self.running("requirepass right")
        stream = self.stream(address(daemon), disque_password="wrong-one")
        error = self.failure(self.started(stream, self.folder()))
        self.assertIn("AuthenticationRefused", error)
        self.assertNotIn("wrong-one", error)
        table = self.read(address(daemon), disque_password="wrong-one")
        plan = str(table._jdf.queryExecution())
        self.assertNotIn("wrong-one", plan)

    def test_password(self) -> None:
        """With the right password, reading and writing work."""
        daemon = self.running("requirepass right")
        folder = self.folder()
        self.write(self.table(3), address(daemon), disque_password="right")
        self.stored(self.stream(address(daemon), disque_password="right"), folder)
        self.assertEqual([0, 1, 2], self.bodies(folder))

    def test_unreachable(self) -> None:
        """When no node can be reached, the query fails and names the address."""
        servers = f"127.0.0.1:{free_port()}"
        error = self.failure(self.started(self.stream(servers), self.folder()))
        self.assertIn("No Disque node could be reached", error)
        self.assertIn(servers, error)

    def test_wrong_options(self) -> None:
        """Unknown or impossible options are refused before any task runs."""
        for options, words in (
            ({"maxOffsetsPerTrigger": "5"}, "maxJobsPerTrigger"),
            ({"startingOffsets": "earliest"}, "startingOffsets"),
            ({"maxJobsPerTrigger": "0"}, "whole number from 1 to 10000"),
            ({"mode": "peek"}, "no option 'mode' here"),
        ):
            error = self.failure(self.started(self.stream("h:1", **options), self.folder()))
            self.assertIn(words, error)


class StreamSinkTests(SparkTestCase):
    """``writeStream``."""

    def test_both_ways(self) -> None:
        """A stream from one queue to another moves all jobs, in both delivery modes."""
        daemon = self.running()
        for queue, mode in (("direct", "direct"), ("staged", "staged")):
            add_many(address(daemon), "q", 20)
            query = (
                self.stream(address(daemon))
                .selectExpr("body")
                .writeStream.format("disque")
                .option("disque.servers", address(daemon))
                .option("queue", queue)
                .option("deliveryMode", mode)
                .option("checkpointLocation", str(self.folder()))
                .trigger(availableNow=True)
                .start()
            )
            self.assertTrue(query.awaitTermination(STREAM_S))
            self.assertEqual(20, self.client(daemon).queue_length(queue))
            self.assertEqual(0, self.client(daemon).queue_length("q"))
