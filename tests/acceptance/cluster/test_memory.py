"""A node of a cluster that runs short of memory (cluster protocol, section 12)."""

from __future__ import annotations

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import Node


class MemoryTests(FleetTestCase):
    """Three nodes, the first of which is short of memory."""

    size = 3

    def fill(self, percent: int) -> Node:
        """Let the first node hold so much, in jobs that nobody acknowledged."""
        node = self.nodes[0]
        for _ in range(10):
            node.add("ballast", "x" * 100_000, replicate=1)
        used = int(node.info()["used_memory"])
        node.call("CONFIG", "SET", "maxmemory", used * 100 // percent)
        return node

    def test_three_quarters(self) -> None:
        """Above 75 % it takes jobs for others to keep, and keeps nothing."""
        node = self.fill(85)
        before = node.jobs()
        job_id = node.add(self.queue, replicate=2)
        self.assertEqual(self.nodes[1:], self.fleet.holders(job_id))
        for words in (("REPLICATE", 2, "ASYNC"), ("REPLICATE", 1, "RETRY", 0)):
            node.call("ADDJOB", self.queue, "b", 0, *words)
        self.wait(lambda: self.fleet.queued(self.queue) == 3, "others have them queued")
        self.assertEqual(0, node.call("QLEN", self.queue))
        self.assertIn("I'm out of memory", node.error("ADDJOB", self.queue, "b", 0, "REPLICATE", 3))
        self.assertEqual(before, node.jobs())

    def test_refuses_copies(self) -> None:
        """Above 75 % it takes no copies of others, who find another node."""
        self.fill(85)
        for _ in range(10):
            job_id = self.nodes[1].add(self.queue, replicate=2)
            self.assertEqual(self.nodes[1:], self.fleet.holders(job_id))
        self.assertIn(
            "NOREPL Timeout",
            self.nodes[1].error("ADDJOB", self.queue, "b", 300, "REPLICATE", 3),
        )

    def test_full(self) -> None:
        """Above 95 % it refuses new jobs, and still delivers and acknowledges."""
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
        """Out of memory, queues that nobody uses go, on that node alone."""
        names = {f"{self.queue}-{n}".encode() for n in range(30)}
        for node in self.nodes[:2]:
            for name in names:
                node.call("GETJOB", "NOHANG", "FROM", name)
        node = self.fill(99)
        self.wait(lambda: not names & set(node.call("QSCAN", 0, "BUSYLOOP")[1]), "they are gone")
        self.assertLessEqual(names, set(self.nodes[1].call("QSCAN", 0, "BUSYLOOP")[1]))
        self.assertEqual(10, node.call("QLEN", "ballast"))
