"""Append only files and event logs as tables."""

from __future__ import annotations

import json
from pathlib import Path

import zstandard
from pyspark.errors import PySparkException
from pyspark.sql import Row

from tests.acceptance.daemon import Daemon, wait_for
from tests.acceptance.processes.group import Group
from tests.acceptance.spark.case import LoggingCase, SparkTestCase

_VECTORS = Path(__file__).resolve().parents[2] / "vectors" / "aof"


class LogTests(SparkTestCase):
    """``disque_aof``."""

    def test_of_the_original(self) -> None:
        """Logs of the original can be read as tables: all records, or only the jobs to load."""
        files = [str(_VECTORS / f"node{number}.aof") for number in range(3)]
        reader = self.spark.read.format("disque_aof")
        records = reader.option("view", "records").load(files)
        jobs = self.spark.read.format("disque_aof").load(files)
        records.createOrReplaceTempView("records")
        reduced = self.spark.sql(
            "SELECT file, id FROM records GROUP BY file, id HAVING max_by(op, offset) = 'load'"
        )
        self.assertEqual(sorted(reduced.collect()), sorted(jobs.select("file", "id").collect()))
        self.assertEqual(12, jobs.where("file LIKE '%node0.aof'").count())

    def test_of_this_daemon(self) -> None:
        """The log of this daemon can be read as well; acknowledged jobs are not in it."""
        daemon = self.running("appendonly yes")
        client = self.client(daemon)
        kept = client.add_job("q", b"\0kept", retry_s=7)
        client.ack_jobs(client.add_job("q", "gone"))
        rows = self.spark.read.format("disque_aof").load(f"{daemon.folder}/*.aof").collect()
        self.assertEqual(
            [(kept, "q", bytearray(b"\0kept"), 7)],
            [(row.id, row.queue, row.body, row.retry_s) for row in rows],
        )

    def test_wrong(self) -> None:
        """A path without files and an unknown view are reported as errors."""
        for options, words in (({"view": "x"}, "jobs or records"), ({}, "no file at")):
            with self.assertRaises(PySparkException) as raised:
                self.spark.read.format("disque_aof").options(**options).load("/none/such").count()
            self.assertIn(words, str(raised.exception))


class EventTests(SparkTestCase):
    """``disque_events``."""

    def test_of_this_daemon(self) -> None:
        """The events of a real log are rows, and a truncated file loses only its end."""
        daemon = self.running("eventlog yes", "eventlog-dir events")
        client = self.client(daemon)
        ids = [client.add_job("q", "x") for _ in range(50)]
        client.get_jobs("q", count=50)
        client.ack_jobs(*ids)
        daemon.terminate()
        files = wait_for(lambda: [*daemon.folder.rglob("*.jsonl.zst")], "the log is finished")
        table = self.spark.read.format("disque_events").load(str(daemon.folder / "events"))
        counted = {row[0]: row[1] for row in table.groupBy("type").count().collect()}
        for kind in ("added", "delivered", "acked"):
            self.assertEqual(50, counted[f"disque.job.{kind}"])
        self.assertEqual(0, table.where("_corrupt IS NOT NULL").count())
        self.assertEqual(set(ids), {row.subject for row in table.collect()})
        lines = zstandard.ZstdDecompressor().stream_reader(files[0].read_bytes()).read()
        first = json.loads(lines.splitlines()[0])
        torn = self.folder() / "torn.jsonl"
        torn.write_bytes(lines[: len(lines) // 2] + b"\nrubbish\n" + lines[:20])
        rows = self.spark.read.format("disque_events").load(str(torn)).collect()
        self.assertEqual(first["id"], rows[0].id)
        self.assertEqual(["rubbish"], [r._corrupt for r in rows if r._corrupt == "rubbish"])


class LiveTests(LoggingCase):
    """``disque_events`` with the option ``nodes``."""

    def collect(self, nodes: str, folder: Path) -> list[Row]:
        """Run the query until it has all that is finished; returns all rows until now."""
        reader = self.spark.readStream.format("disque_events").option("nodes", nodes)
        writer = reader.load().writeStream.format("parquet").option("path", str(folder / "rows"))
        self.run_once(writer, folder / "checkpoint")
        return self.spark.read.parquet(str(folder / "rows")).collect()

    def test_of_running_nodes(self) -> None:
        """A stream has each event of all nodes and all their processes once, while one of them is
        restarted and the query is, too; nobody copies a file."""
        first, second = Group(self.folder(), 2), Daemon(self.folder())
        nodes = ",".join([self.logging(first), self.logging(second)])
        ids = self.add(first, 20) | self.add(second, 10)
        folder = self.folder()
        self.assertEqual(ids, self.added(self.collect(nodes, folder)))
        second.terminate()
        second.start()
        more = self.add(first, 5) | self.add(second, 5)
        rows = self.collect(nodes, folder)
        self.assertEqual(ids | more, self.added(rows))
        # Processes that start in the same millisecond number their events alike.
        self.assertEqual(len(rows), len({(row.source, row.id) for row in rows}))
        self.assertEqual(sorted(rows), sorted(self.collect(nodes, folder)))
        table = self.spark.read.format("disque_events").option("nodes", nodes).load()
        self.assertEqual(ids | more, self.added(table.collect()))

    def test_password(self) -> None:
        """The password of readers will do; a wrong one is reported with the address, and is in no
        plan."""
        daemon = Daemon(self.folder())
        url = self.logging(daemon, "requirepass secret", "readonly-password look")
        reader = self.spark.read.format("disque_events").option("nodes", url)
        self.assertEqual(0, reader.option("disque.password", "look").load().count())
        with self.assertRaises(PySparkException) as raised:
            reader.option("disque.password", "wr0ng").load().count()
        self.assertIn(f"{url} answers 401", str(raised.exception))
        self.assertNotIn("wr0ng", str(raised.exception))
