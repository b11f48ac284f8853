"""Clean stops and starts in a cluster (cluster protocol, section 14.7)."""

from __future__ import annotations

from collections import Counter

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import Node


class RestartTests(FleetTestCase):
    """Three nodes with a log."""

    size = 3
    directives = ("appendonly yes", "appendfsync always")

    def restart(self, *nodes: Node) -> None:
        """Stop nodes in an orderly way, and start them again."""
        for node in nodes:
            node.stop()
        for node in nodes:
            node.boot()

    def add(self) -> list[str]:
        """Jobs with and without copies, most of which this node has in its queue."""
        node = self.nodes[0]
        return [node.add(self.queue, replicate=1 + n % 3, retry=120) for n in range(60)]

    def counts(self) -> dict[str, int]:
        """QCOUNT of the whole cluster."""
        reply = self.nodes[0].call("QCOUNT", self.queue, "CLUSTER")
        fields = dict(zip(reply[::2], reply[1::2], strict=True))
        return {name: fields[name.encode()] for name in ("queued", "loaded", "in-flight")}

    def test_one(self) -> None:
        """The jobs of a node that is restarted are in its queue again long before their RETRY, and
        each is delivered once."""
        ids = self.add()
        self.restart(self.nodes[0])
        self.wait(lambda: self.fleet.queued(self.queue) == 60, "all jobs are queued again")
        self.fleet.wait_until_agreed()
        fetched = Counter(job_id for _, job_id in self.fleet.fetch(self.queue, 30, 60))
        self.assertEqual(dict.fromkeys(ids, 1), dict(fetched))

    def test_all(self) -> None:
        """So they are when all nodes are stopped and started, and no job is counted twice on the
        way."""
        self.add()
        self.restart(*self.nodes)
        self.fleet.wait_until_agreed()
        wanted = {"queued": 60, "loaded": 0, "in-flight": 0}
        self.wait(lambda: self.counts() == wanted, "all jobs are queued again")

    def test_done_meanwhile(self) -> None:
        """Jobs that are acknowledged while their node is away are not delivered by it."""
        node, other = self.nodes[:2]
        ids = [node.add(self.queue, replicate=3, retry=120) for _ in range(20)]
        node.stop()
        other.call("ACKJOB", *ids)
        node.boot()
        self.fleet.wait_until_empty()
        self.assertEqual(0, node.call("QLEN", self.queue))
