"""Queues as streams, and streams written to queues."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from disque_tx.spark.bodies import from_disque_task
from disque_tx.spark.foreach import disque_nack, good_records
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
        query = self.stored(self.stream(address(daemon), folder, maxJobsPerTrigger="100"), folder)
        sizes = [progress["numInputRows"] for progress in query.recentProgress]
        self.assertEqual([100, 100, 50], [size for size in sizes if size])
        self.assertEqual("0", daemon.info()["registered_jobs"])
        add_many(address(daemon), "q", 10)
        self.stored(self.stream(address(daemon), folder), folder)
        self.assertEqual(sorted([*range(250), *range(10)]), self.bodies(folder))
        self.assertEqual("0", daemon.info()["registered_jobs"])

    def test_pattern(self) -> None:
        """Queues that match a pattern are read as well, and a progress says what waits in them."""
        daemon = self.running()
        folder = self.folder()
        for queue, count in (("q", 3), ("mail-a", 2), ("mail-b", 1), ("other", 4)):
            add_many(address(daemon), queue, count)
        query = self.stored(self.stream(address(daemon), folder, subscribePattern="mail-*"), folder)
        self.assertEqual([0, 0, 0, 1, 1, 2], self.bodies(folder))
        self.assertEqual(4, self.client(daemon).queue_length("other"))
        behind = [
            json.loads(source.latestOffset)
            for progress in query.recentProgress
            for source in progress.sources
        ]
        self.assertEqual((0, 6), (behind[0]["queued"], behind[0]["inFlight"]))
        self.assertEqual({"q", "mail-a", "mail-b"}, set(behind[0]["queues"]))

    def test_row(self) -> None:
        """A row contains the counters of the job and, on request, the options that it was added
        with."""
        daemon = self.running()
        client = self.client(daemon)
        job_id = client.add_job("q", b"\0\xff")
        client.get_jobs("q")
        client.nack(job_id)
        folder = self.folder()
        self.stored(self.stream(address(daemon), folder, includeDetails="true"), folder)
        row = self.spark.read.parquet(str(folder / "out")).collect()[0]
        self.assertEqual((job_id, "q", bytearray(b"\0\xff"), 1, 0), (*row[:5],))
        self.assertEqual((300, 0, 1), (row.retry_s, row.delay_s, row.replicate))
        self.assertLess(abs(row.ctime.timestamp() - int(daemon.client().call("TIME")[0])), 60)

    def test_kept_while_a_batch_runs(self) -> None:
        """Jobs whose RETRY is shorter than their batch are not delivered to other clients
        meanwhile."""
        daemon = self.running()
        client = self.client(daemon)
        client.add_job("q", "1", retry_s=1)
        seen: list[int] = []
        folder = self.folder()

        def slow(table: object, batch: int) -> None:
            for _ in range(4):
                seen.append(len(client.get_jobs("q", timeout_ms=1000)))

        query = (
            self.stream(address(daemon), folder)
            .writeStream.foreachBatch(slow)
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        self.addCleanup(query.stop)
        self.assertTrue(query.awaitTermination(STREAM_S))
        self.assertEqual([0, 0, 0, 0], seen)

    def test_given_back(self) -> None:
        """A job that ``foreachBatch`` gives back is not acknowledged with its batch: it is queued
        again, with the reason."""
        daemon = self.running()
        client = self.client(daemon)
        folder = self.folder()
        add_many(address(daemon), "q", 10)
        given: list[int] = []

        def sort_out(table: DataFrame, batch: int) -> None:
            bad = table.where("CAST(body AS STRING) = '7'")
            place = str(folder / "checkpoint")
            given.append(disque_nack(bad, "bad", servers=address(daemon), checkpoint=place))

        query = (
            self.stream(address(daemon), folder)
            .writeStream.foreachBatch(sort_out)
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        self.addCleanup(query.stop)
        self.assertTrue(query.awaitTermination(STREAM_S))
        self.assertEqual(1, sum(given))
        (left,) = client.job_scan("q")
        self.assertEqual((b"7", 1, "queued"), (left.body, left.nacks, left.state))
        self.assertEqual([left.id], [job.id for job in client.job_scan("q", reason="bad")])
        self.assertEqual("1", daemon.info()["registered_jobs"])

    def test_bad_records(self) -> None:
        """Bodies that cannot be read end the query, are rows like others, or become dead letters by
        the policy of their queue, as the query says; the good ones are stored."""
        stored: dict[str, list[tuple[str, str | None]]] = {}
        for mode in ("fail", "column", "dead-letter"):
            daemon, folder = self.running(), self.folder()
            client = self.client(daemon)
            daemon.client().call("QPOLICY", "SET", "q", "max-deliveries", "1")
            for body in ('{"task":"pay","kwargs":{"order":7}}', "no call"):
                client.add_job("q", body, retry_s=60)
            place, servers = str(folder / "checkpoint"), address(daemon)

            def store(
                rows: DataFrame,
                batch: int,
                mode: str = mode,
                place: str = place,
                servers: str = servers,
            ) -> None:
                read = from_disque_task(rows, "order BIGINT")
                good = good_records(read, mode, servers=servers, checkpoint=place)
                found = good.select("task", "kwargs.order").collect()
                stored.setdefault(mode, []).extend(map(tuple, found))

            query = (
                self.stream(address(daemon), folder)
                .writeStream.foreachBatch(store)
                .option("checkpointLocation", place)
                .trigger(availableNow=True)
                .start()
            )
            self.addCleanup(query.stop)
            if mode == "fail":
                self.assertIn("has no JSON object. Correct what adds", self.failure(query))
            else:
                self.assertTrue(query.awaitTermination(STREAM_S))
        good = ("pay", 7)
        self.assertEqual({"column": [good, (None, None)], "dead-letter": [good]}, stored)
        (letter,) = client.job_scan("dead:q")
        self.assertIn(b"no JSON object", letter.body or b"")
        self.assertEqual("1", daemon.info()["registered_jobs"])

    def test_stopped(self) -> None:
        """When a query is stopped, its leases expire and other clients get the jobs."""
        daemon = self.running()
        client = self.client(daemon)
        begun: list[int] = []
        folder = self.folder()

        def stuck(table: object, batch: int) -> None:
            begun.append(batch)
            raise RuntimeError("no more")

        client.add_job("q", "1", retry_s=1)
        query = (
            self.stream(address(daemon), folder)
            .writeStream.foreachBatch(stuck)
            .option("checkpointLocation", str(folder / "checkpoint"))
            .start()
        )
        self.failure(query)
        self.assertEqual([0], begun)
        self.assertEqual(1, len(client.get_jobs("q", timeout_ms=20_000)))

    def test_stopped_between_batches(self) -> None:
        """What is stored is acknowledged when a query is stopped, although Spark asks for no
        further batch; and a progress has a bounded size, whatever the size of its batches."""
        daemon = self.running()
        folder = self.folder()
        add_many(address(daemon), "q", 3000, retry_s=3600)
        writer = self.stream(address(daemon), folder).writeStream.format("parquet")
        query = (
            writer.option("path", str(folder / "out"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(processingTime="1 hour")
            .start()
        )
        self.addCleanup(query.stop)
        wait_for(lambda: query.lastProgress, "the batch is stored", STREAM_S)
        self.assertEqual("3000", daemon.info()["registered_jobs"])
        self.assertLess(max(len(progress.json) for progress in query.recentProgress), 2000)
        query.stop()
        wait_for(lambda: daemon.info()["registered_jobs"] == "0", "all are acknowledged")
        self.assertEqual(list(range(3000)), self.bodies(folder))

    def test_once(self) -> None:
        """``trigger(once=True)`` is refused with what to use instead."""
        daemon = self.running()
        folder = self.folder()
        writer = self.stream(address(daemon), folder).writeStream.format("parquet")
        query = (
            writer.option("path", str(folder / "out"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(once=True)
            .start()
        )
        self.assertIn("availableNow", self.failure(query))

    def test_paused_queue(self) -> None:
        """Jobs of a paused queue are not read; the query waits, and continues when the queue is
        resumed."""
        daemon = self.running()
        folder = self.folder()
        add_many(address(daemon), "q", 5)
        client = self.client(daemon)
        client.pause("q", "out")
        query = self.started(self.stream(address(daemon), folder), folder, once=False)
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
        error = self.failure(self.started(self.stream(address(daemon), folder), folder))
        self.assertIn("3 jobs that", error)
        self.assertIn("failOnDataLoss", error)
        add_many(address(daemon), "q", 2)
        self.stored(self.stream(address(daemon), folder, failOnDataLoss="false"), folder)
        self.assertEqual([0, 1], self.bodies(folder))

    def broken_batch(self, servers: str, folder: Path) -> None:
        """Leave a checkpoint with a batch that is begun but not stored."""
        broken = self.stream(servers, folder).selectExpr("*", "raise_error('broken') AS error")
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
        self.stored(self.stream(address(daemon), folder), folder)
        self.assertEqual([0, 1], self.bodies(folder))

    def test_bad_password(self) -> None:
        """A wrong password ends the query; the message does not show it."""
        daemon = self.running("requirepass right")
        folder = self.folder()
        stream = self.stream(address(daemon), folder, disque_password="wrong-one")
        error = self.failure(self.started(stream, folder))
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
        self.stored(self.stream(address(daemon), folder, disque_password="right"), folder)
        self.assertEqual([0, 1, 2], self.bodies(folder))

    def test_unreachable(self) -> None:
        """When no node can be reached, the query fails and names the address."""
        servers, folder = f"127.0.0.1:{free_port()}", self.folder()
        error = self.failure(self.started(self.stream(servers, folder), folder))
        self.assertIn("No Disque node could be reached", error)
        self.assertIn(servers, error)

    def test_wrong_options(self) -> None:
        """Unknown or impossible options are refused before any task runs."""
        for options, words in (
            ({"maxOffsetsPerTrigger": "5"}, "maxJobsPerTrigger"),
            ({"startingOffsets": "earliest"}, "startingOffsets"),
            ({"maxJobsPerTrigger": "0"}, "whole number from 1 to 1000000"),
            ({"mode": "peek"}, "no option 'mode' here"),
        ):
            folder = self.folder()
            error = self.failure(self.started(self.stream("h:1", folder, **options), folder))
            self.assertIn(words, error)


class StreamSinkTests(SparkTestCase):
    """``writeStream``."""

    def test_again(self) -> None:
        """A batch that runs again, because the query was killed before it was committed, adds
        nothing with the mode ``unique``."""
        daemon = self.running()
        folder = self.folder()
        self.table(50).select("body").repartition(3).write.parquet(str(folder / "in"))
        for _ in range(2):
            query = (
                self.spark.readStream.schema("body STRING")
                .parquet(str(folder / "in"))
                .writeStream.format("disque")
                .option("disque.servers", address(daemon))
                .option("queue", "q")
                .option("deliveryMode", "unique")
                .option("checkpointLocation", str(folder / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            self.assertTrue(query.awaitTermination(STREAM_S))
            self.assertEqual(50, self.client(daemon).queue_length("q"))
            (folder / "checkpoint" / "commits" / "0").unlink()
            (folder / "checkpoint" / "commits" / ".0.crc").unlink(missing_ok=True)
        bodies = {job.body for job in self.client(daemon).get_jobs("q", count=100)}
        self.assertEqual(50, len(bodies))

    def test_both_ways(self) -> None:
        """A stream from one queue to another moves all jobs, in both delivery modes."""
        daemon = self.running()
        for queue, mode in (("direct", "direct"), ("staged", "staged")):
            add_many(address(daemon), "q", 20)
            folder = self.folder()
            query = (
                self.stream(address(daemon), folder)
                .selectExpr("body")
                .writeStream.format("disque")
                .option("disque.servers", address(daemon))
                .option("queue", queue)
                .option("deliveryMode", mode)
                .option("checkpointLocation", str(folder / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            self.assertTrue(query.awaitTermination(STREAM_S))
            self.assertEqual(20, self.client(daemon).queue_length(queue))
            self.assertEqual(0, self.client(daemon).queue_length("q"))
