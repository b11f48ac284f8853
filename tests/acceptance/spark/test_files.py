"""Append only files and event logs as tables."""

from __future__ import annotations

import json
from pathlib import Path

import zstandard
from pyspark.errors import PySparkException

from tests.acceptance.daemon import wait_for
from tests.acceptance.spark.case import SparkTestCase

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
