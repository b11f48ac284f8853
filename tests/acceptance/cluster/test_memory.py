"""A cluster node that runs short of memory (cluster protocol, section 12)."""

from __future__ import annotations

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import Node


class MemoryTests(FleetTestCase):
    """Three nodes, the first of which runs short of memory."""

    size = 3

    def fill(self, percent: int) -> Node:
        """Fill the first node to this percentage of its memory, with jobs that are not
        acknowledged."""
        node = self.nodes[0]
        for _ in range(10):
            node.add("ballast", "x" * 100_000, replicate=1)
        used = int(node.info()["used_memory"])
        node.call("CONFIG", "SET", "maxmemory", used * 100 // percent)
        return node

    def test_three_quarters(self) -> None:
        """Above 75 % a node accepts jobs and lets others hold them, but keeps none."""
        node = self.fill(85)
        before = node.jobs()
        job_id = node.add(self.queue, replicate=2)
        self.assertEqual(self.nodes[1:], self.fleet.holders(job_id))
        for words in (("REPLICATE", 2, "ASYNC"), ("REPLICATE", 1, "RETRY", 0)):
            node.call("ADDJOB", self.queue, "b", 0, *words)
        self.wait(lambda: self.fleet.queued(self.queue) == 3, "other nodes have queued the jobs")
        self.assertEqual(0, node.call("QLEN", self.queue))
        self.assertIn("I'm out of memory", node.error("ADDJOB", self.queue, "b", 0, "REPLICATE", 3))
        self.assertEqual(before, node.jobs())

    def test_refuses_copies(self) -> None:
        """Above 75 % a node refuses copies from others, which choose another node."""
        self.fill(85)
        for _ in range(10):
            job_id = self.nodes[1].add(self.queue, replicate=2)
            self.assertEqual(self.nodes[1:], self.fleet.holders(job_id))
        self.assertIn(
            "NOREPL Timeout",
            self.nodes[1].error("ADDJOB", self.queue, "b", 300, "REPLICATE", 3),
        )

    def test_full(self) -> None:
        """Above 95 % a node refuses new jobs, and still delivers and acknowledges."""
        node = self.fill(99)
        self.assertEqual(
            "OOM command not allowed when used memory > 'maxmemory'.",
            node.error("ADDJOB", self.queue, "b", 0),
        )
        ids = node.get("ballast", count=10)
        self.assertEqual(10, len(ids))
        self.assertEqual(10, node.call("ACKJOB", *ids))
        self.assertEqual(40, len(node.add(self.queue)))

    def test_idle_queues(self) -> None:
        """When memory is full, unused queues are removed, on that node only."""
        names = {f"{self.queue}-{n}".encode() for n in range(30)}
        for node in self.nodes[:2]:
            for name in names:
                node.call("GETJOB", "NOHANG", "FROM", name)
        node = self.fill(99)
        self.wait(
            lambda: not names & set(node.call("QSCAN", 0, "BUSYLOOP")[1]),
            "the unused queues are removed",
        )
        self.assertLessEqual(names, set(self.nodes[1].call("QSCAN", 0, "BUSYLOOP")[1]))
        self.assertEqual(10, node.call("QLEN", "ballast"))
