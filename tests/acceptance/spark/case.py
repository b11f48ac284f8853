"""Helpers for tests of Spark with daemons."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import zstandard
from deltalake import DeltaTable
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from disque_tx import Disque
from disque_tx.client.errors import ClientError
from disque_tx.client.requests import adding
from disque_tx.spark.options import cluster
from tests.acceptance.daemon import Daemon, DaemonTestCase, free_port, wait_for
from tests.spark.shared import shared_session

STREAM_S = 60
#: How often a process is killed: once in the gates, for each kill costs the start of another Java;
#: ``make spark-kill`` does it 24 times.
KILLS = int(os.environ.get("SPARK_KILLS", "1"))


def address(daemon: Daemon) -> str:
    """The address of a daemon, for the option ``disque.servers``."""
    return f"{daemon.ip}:{daemon.port}"


def add_many(servers: str, queue: str, count: int, **options: Any) -> set[str]:
    """Add jobs with the bodies 0, 1, …; returns their IDs."""
    wanted = [adding.add_job(queue, str(number), **options) for number in range(count)]
    with closing(cluster(servers).servers()) as nodes:
        answers = nodes.any_connection(0).calls(wanted)
        return {answer for answer in answers if not isinstance(answer, ClientError)}


class SparkTestCase(DaemonTestCase):
    """Tests that use the shared Spark session."""

    def setUp(self) -> None:
        self.spark = shared_session()

    def client(self, *daemons: Daemon) -> Disque:
        """A client that is closed at the end of the test."""
        client = Disque([address(daemon) for daemon in daemons], discover=False)
        self.addCleanup(client.close)
        return client

    def table(self, count: int, queue: str = "q") -> DataFrame:
        """Jobs with the bodies 0, 1, …"""
        return self.spark.range(count).selectExpr(
            f"'{queue}' AS queue", "CAST(id AS STRING) AS body"
        )

    def write(self, table: DataFrame, servers: str, **options: str) -> None:
        """Write a table to queues. In option names, ``_`` stands for a dot."""
        writer = table.write.format("disque").mode("append").option("disque.servers", servers)
        writer.options(**dotted(options)).save()

    def read(self, servers: str, subscribe: str = "q", **options: str) -> DataFrame:
        """Read queues as a table."""
        reader = self.spark.read.format("disque").option("disque.servers", servers)
        return reader.option("subscribe", subscribe).options(**dotted(options)).load()

    def stream(self, servers: str, folder: Path, **options: str) -> DataFrame:
        """Read the queue ``q`` as a stream of the query that :meth:`started` starts."""
        reader = self.spark.readStream.format("disque").option("disque.servers", servers)
        reader = reader.option("checkpointLocation", str(folder / "checkpoint"))
        return reader.option("subscribe", "q").options(**dotted(options)).load()

    def started(self, stream: DataFrame, folder: Path, once: bool = True) -> StreamingQuery:
        """Start a query that stores a stream; it is stopped at the end of the test. ``once``: only
        the jobs available now."""
        writer = stream.writeStream.format("parquet").option("path", str(folder / "out"))
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        if once:
            query = writer.trigger(availableNow=True).start()
        else:  # without pauses, it would need a whole core while it waits
            query = writer.trigger(processingTime="200 milliseconds").start()
        self.addCleanup(query.stop)
        return query

    def run_once(self, writer: DataStreamWriter, checkpoint: Path) -> None:
        """Let a query take what is available now."""
        writer = writer.option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start()
        self.addCleanup(query.stop)
        self.assertTrue(query.awaitTermination(STREAM_S))

    def stored(self, stream: DataFrame, folder: Path) -> StreamingQuery:
        """Store the jobs available now; returns the finished query."""
        query = self.started(stream, folder)
        self.assertTrue(query.awaitTermination(STREAM_S))
        return query

    def bodies(self, folder: Path) -> Sequence[int]:
        """The bodies that were stored, sorted."""
        rows = self.spark.read.parquet(str(folder / "out")).select("body").collect()
        return sorted(int(row.body) for row in rows)


class LoggingCase(SparkTestCase):
    """Tests with daemons whose event logs are served."""

    def logging(self, daemon: Daemon, *directives: str) -> str:
        """Start a daemon with an event log that is served; returns its address."""
        port = free_port()
        lines = ("eventlog yes", "eventlog-dir events", "eventlog-rotate-time 1", *directives)
        for name, *values in map(str.split, lines):
            daemon.words += [f"--{name}", *values]
        daemon.words += ["--listen", "http", f"tcp:{port}:interface=127.0.0.1"]
        self.addCleanup(daemon.discard)
        daemon.start()
        return f"http://127.0.0.1:{port}"

    def add(self, daemon: Daemon, count: int) -> set[str]:
        """Add jobs, and wait until the files with their events are finished; returns their IDs."""
        client = daemon.client()
        ids = {client.call("ADDJOB", "q", "x", "0") for _ in range(count)}
        wait_for(lambda: ids <= self.finished(daemon), "their events are in finished files")
        return ids

    def finished(self, daemon: Daemon) -> set[str]:
        """The jobs that the finished files of a daemon are about."""
        return {event["subject"] for event in finished_events(daemon) if "subject" in event}

    def added(self, rows: list[Row]) -> set[str]:
        """The jobs of which one reads that they were added."""
        return {row.subject for row in rows if row.type == "disque.job.added"}


def finished_events(daemon: Daemon) -> list[dict[str, Any]]:
    """The events in the finished files of a daemon."""
    return [
        json.loads(line)
        for path in daemon.folder.rglob("events-*.jsonl.zst")
        for line in zstandard.ZstdDecompressor()
        .stream_reader(path.read_bytes())
        .read()
        .splitlines()
    ]


def dotted(options: dict[str, str]) -> dict[str, str]:
    """Option names with dots in place of underscores."""
    return {name.replace("_", "."): value for name, value in options.items()}


def rows_of(table: str) -> list[str]:
    """The rows of a Delta table as texts, sorted, as a program without Spark reads them."""
    found = DeltaTable(table).to_pyarrow_table()
    return sorted(map(str, found.select(sorted(found.column_names)).to_pylist()))
