"""What every PySpark from 4.0 on offers; these tests run with the oldest and the newest."""

from __future__ import annotations

from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row

from disque_tx.spark.pipeline.local.ingestion import ingest
from tests.acceptance.daemon import Daemon, wait_for
from tests.acceptance.spark.case import LoggingCase, SparkTestCase, add_many, address


class VersionTests(SparkTestCase):
    """What works the same everywhere."""

    def test_stream(self) -> None:
        """A query stores all jobs in batches of the size that was asked for, acknowledges them, and
        goes on after a restart with those that were added since; each is stored once."""
        daemon = self.running()
        folder = self.folder()
        stream = self.stream(address(daemon), folder, maxJobsPerTrigger="100")
        for count in (250, 10):
            add_many(address(daemon), "q", count)
            query = self.started(stream, folder, once=False)
            self.all_acknowledged(daemon)
            query.stop()
            sizes = [progress["numInputRows"] for progress in query.recentProgress]
            self.assertLessEqual(max(sizes), 100)
        self.assertEqual(sorted([*range(250), *range(10)]), self.bodies(folder))

    def test_batch_again(self) -> None:
        """A batch that failed runs again with the same jobs, although more are queued now; later
        batches have the others, and everything is acknowledged in the end."""
        daemon = self.running()
        folder = self.folder()
        ids = add_many(address(daemon), "q", 20)
        self.assertRaises(PySparkException, self.batches, daemon, folder, fail=True)
        self.assertEqual("20", daemon.info()["registered_jobs"])
        more = add_many(address(daemon), "q", 5)
        first, *others = self.batches(daemon, folder) + self.batches(daemon, folder)
        self.assertEqual(ids, first)
        self.assertEqual([more], others)
        self.all_acknowledged(daemon)

    def all_acknowledged(self, daemon: Daemon) -> None:
        """Those of the last batch are acknowledged by a process of their own, after its end."""
        wait_for(lambda: daemon.info()["registered_jobs"] == "0", "all are acknowledged")

    def batches(self, daemon: Daemon, folder: Path, fail: bool = False) -> list[set[str]]:
        """The IDs of each batch with jobs that are there now."""
        found: list[set[str]] = []

        def collect(table: DataFrame, batch: int) -> None:
            found.extend(ids for ids in [{row.id for row in table.collect()}] if ids)
            if fail:
                raise ValueError

        writer = self.stream(address(daemon), folder).writeStream.foreachBatch(collect)
        self.run_once(writer, folder / "checkpoint")
        return found

    def test_sink(self) -> None:
        """Rows of a stream become jobs with their bytes and options, once each, also when a batch
        runs again; a table is written and read as well."""
        daemon = self.running()
        folder = self.folder()
        rows = self.table(50).selectExpr("CAST(body AS BINARY) AS body", "77 AS ttl")
        rows.write.parquet(str(folder / "in"))
        for _ in range(2):
            stream = self.spark.readStream.schema("body BINARY, ttl INT").parquet(f"{folder}/in")
            writer = stream.writeStream.format("disque").option("disque.servers", address(daemon))
            writer = writer.option("queue", "q").option("deliveryMode", "unique")
            self.run_once(writer, folder / "checkpoint")
            for name in ("0", ".0.crc"):
                (folder / "checkpoint" / "commits" / name).unlink(missing_ok=True)
        self.write(self.table(10, "p"), address(daemon))
        read = self.read(address(daemon), "q,p", includeDetails="true").collect()
        ttls = {row.queue: row.ttl_s for row in read}
        self.assertEqual(sorted([*range(50), *range(10)]), sorted(int(row.body) for row in read))
        self.assertLessEqual(ttls["q"], 77)
        self.assertGreater(ttls["p"], 77)


class EventVersionTests(LoggingCase):
    """Events as every version reads them."""

    def test_events(self) -> None:
        """Event logs can be read as files, from a running node as a stream, and from a table of
        events as a stream: each event once, also after a restart."""
        daemon = Daemon(self.folder())
        url = self.logging(daemon)
        folder = self.folder()
        table = str(folder / "table")
        seen: set[str] = set()
        for count in (20, 5):
            seen |= self.add(daemon, count)
            self.assertEqual(seen, self.added(self.from_files(daemon)))
            ingest([str(daemon.folder / "events")], table)
            for option, value, column, where in (
                ("nodes", url, "subject", "type = 'disque.job.added'"),
                ("table", table, "job_id", "kind = 'added'"),
            ):
                self.store(folder / option, {option: value})
                rows = self.spark.read.parquet(str(folder / option / "rows")).where(where)
                self.assertEqual(sorted(seen), sorted(row[column] for row in rows.collect()))

    def from_files(self, daemon: Daemon) -> list[Row]:
        """The events in the finished files of a daemon."""
        return self.spark.read.format("disque_events").load(f"{daemon.folder}/events").collect()

    def store(self, folder: Path, options: dict[str, str]) -> None:
        """Let a query store what is new."""
        checkpoint = folder / "checkpoint"
        reader = self.spark.readStream.format("disque_events").options(**options)
        stream = reader.option("checkpointLocation", str(checkpoint)).load()
        writer = stream.writeStream.format("parquet").option("path", str(folder / "rows"))
        self.run_once(writer, checkpoint)
