"""Queues counted, listed and flushed on all nodes at once."""

from __future__ import annotations

from typing import Any

from tests.acceptance.cluster.fleet import FleetTestCase


def named(flat: list[Any]) -> dict[bytes, Any]:
    """Names and values of a reply in RESP2."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


class OverviewTests(FleetTestCase):
    """Seven nodes."""

    def fill(self) -> None:
        """Two jobs on each node, with and without copies."""
        for node in self.nodes:
            node.add(self.queue, replicate=1)
            node.add(self.queue, replicate=2)

    def test_count(self) -> None:
        """Any node knows how many jobs there are in the cluster, each counted once."""
        self.fill()
        found = named(self.nodes[3].call("QCOUNT", self.queue, "CLUSTER"))
        self.assertEqual((14, 7, []), (found[b"queued"], found[b"nodes"], found[b"nodes-missing"]))
        self.assertEqual(2, named(self.nodes[3].call("QCOUNT", self.queue))[b"queued"])

    def test_list(self) -> None:
        """A list has the sums of all nodes."""
        self.fill()
        for sort in ("name", "queued"):
            words = ("QLIST", "MATCH", self.queue, "SORT", sort, "CLUSTER")
            (row,) = named(self.nodes[1].call(*words))[b"queues"]
            self.assertEqual(14, named(row)[b"queued"])

    def test_flush(self) -> None:
        """A queue is emptied everywhere, and no copy of its jobs comes back."""
        self.fill()
        self.assertEqual(14, self.nodes[2].call("QFLUSH", self.queue, "CLUSTER"))
        self.wait(
            lambda: not any(node.call("QLEN", self.queue) for node in self.nodes),
            "the queue is empty on all nodes",
        )
        self.assertEqual(
            [],
            [
                job
                for node in self.nodes
                for job in node.call(
                    "JSCAN", 0, "BUSYLOOP", "QUEUE", self.queue, "STATE", "active"
                )[1]
            ],
        )

    def test_wait(self) -> None:
        """A producer waits at its node for a job that is acknowledged at another."""
        job_id = self.nodes[0].add(self.queue, replicate=2)
        client = self.blocked_client(self.nodes[0], self.queue + "-none", "TIMEOUT", 1)
        client.read()
        client.send("WAITJOB", job_id, "TIMEOUT", 60_000)
        self.nodes[5].call("ACKJOB", job_id)
        self.assertEqual("ACKED", client.read())
