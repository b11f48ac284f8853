"""A stream from three nodes, one of which dies."""

from __future__ import annotations

from pathlib import Path

from pyspark.errors import PySparkException

from tests.acceptance.cluster.fleet import Fleet
from tests.acceptance.daemon import wait_for
from tests.acceptance.spark.case import STREAM_S, SparkTestCase, add_many, address


class NodeTests(SparkTestCase):
    """Each job is acknowledged where it was delivered, or on another holder."""

    def fleet(self) -> list[str]:
        """Start three nodes that know each other; returns their addresses."""
        self.nodes = Fleet(3, "appendonly yes")
        self.addCleanup(self.nodes.discard)
        return [address(node) for node in self.nodes.start().nodes]

    def broken_batch(self, servers: str, folder: Path) -> None:
        """Leave a checkpoint with a batch that is begun but not stored."""
        stream = self.stream(servers, folder, minPartitions="3")
        writer = stream.selectExpr("*", "raise_error('x') AS error").writeStream.format("parquet")
        writer = writer.option("path", str(folder / "out"))
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        with self.assertRaises(PySparkException):
            query.awaitTermination(STREAM_S)

    def test_all_nodes(self) -> None:
        """A stream reads the jobs of all given nodes."""
        servers = self.fleet()
        folder = self.folder()
        for server in servers:
            add_many(server, "q", 20, replicate=1)
        self.stored(self.stream(",".join(servers), folder), folder)
        self.assertEqual(60, len(self.bodies(folder)))
        wait_for(lambda: self.nodes.jobs() == 0, "all jobs are acknowledged")

    def test_other_holders(self) -> None:
        """When a node dies during a batch whose jobs have copies, no job is lost, and the query
        does not fail."""
        servers = self.fleet()
        folder = self.folder()
        ids = add_many(servers[0], "q", 30, replicate=3)
        self.broken_batch(",".join(servers), folder)
        self.nodes.nodes[0].kill()
        self.stored(self.stream(",".join(servers), folder), folder)
        stored = self.spark.read.parquet(str(folder / "out")).select("id").collect()
        self.assertEqual(ids, {row.id for row in stored})

    def test_only_holder(self) -> None:
        """When the only holder dies during a batch, the query stops and names it; with
        ``failOnDataLoss=false`` it stores the jobs of the others. When the node is back, its jobs
        are delivered again."""
        servers = self.fleet()
        folder = self.folder()
        for server in servers:
            add_many(server, "q", 10, replicate=1, retry_s=2)
        self.broken_batch(",".join(servers), folder)
        dead = self.nodes.nodes[0]
        dead.kill()
        everywhere = ",".join(servers)
        with self.assertRaises(PySparkException) as raised:
            self.started(self.stream(everywhere, folder), folder).awaitTermination(STREAM_S)
        self.assertIn(servers[0], str(raised.exception))
        self.assertIn("failOnDataLoss", str(raised.exception))
        self.stored(self.stream(everywhere, folder, failOnDataLoss="false"), folder)
        self.assertEqual(sorted([*range(10)] * 2), self.bodies(folder))
        dead.boot()
        client = self.client(dead)
        wait_for(lambda: client.queue_length("q") == 10, "its jobs are queued again")
        self.stored(self.stream(everywhere, folder), folder)
        self.assertEqual(sorted([*range(10)] * 3), self.bodies(folder))
