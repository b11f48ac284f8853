"""Network partitions, made by a proxy between the nodes (cluster protocol, sections 8 to 11)."""

from __future__ import annotations

import random
import time

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import NODE_TIMEOUT_S
from tests.acceptance.cluster.proxy import between


class PartitionTests(FleetTestCase):
    """Five nodes, two of which are partitioned from the others."""

    node_timeout_s = NODE_TIMEOUT_S
    size = 5
    proxied = True

    def setUp(self) -> None:
        """Name the two sides of the partition."""
        super().setUp()
        self.few, self.many = self.nodes[:2], self.nodes[2:]
        self.ways = between([n.ip for n in self.few], [n.ip for n in self.many])

    def wait_until_partitioned(self) -> None:
        """Wait until both sides have detected the partition."""
        self.wait(
            lambda: all("fail" in m.flags(f) for m in self.many for f in self.few),
            "the majority marks the others as failed",
        )
        self.wait(
            lambda: all(f.reachable() == 1 for f in self.few),
            "the minority cannot reach the others",
        )

    def take_all(self, ids: set[str]) -> None:
        """Assert that all these jobs are delivered, acknowledge them, and wait until no job
        remains."""
        got: set[str] = set()
        deadline = time.monotonic() + 120
        while not ids <= got and time.monotonic() < deadline:
            for node, job_id in self.fleet.fetch(self.queue, 0.5):
                node.call("ACKJOB", job_id)
                got.add(job_id)
        self.assertEqual(set(), ids - got)
        self.fleet.wait_until_empty(60)

    def add_on_both_sides(self) -> set[str]:
        """Add jobs on both sides, with as many copies as each can make."""
        ids = {node.add(self.queue, replicate=2, retry=2) for node in self.few for _ in range(10)}
        ids |= {node.add(self.queue, replicate=3, retry=2) for node in self.many for _ in range(10)}
        self.assertIn("NOREPL", self.few[0].error("ADDJOB", "q", "b", 0, "REPLICATE", 3))
        return ids

    def test_stalled(self) -> None:
        """When bytes are held between the two sides, both serve clients, and they rejoin
        afterwards."""
        ids = {node.add(self.queue, replicate=3, retry=2) for node in self.nodes for _ in range(5)}
        self.proxy().stall(self.ways)
        self.wait_until_partitioned()
        ids |= self.add_on_both_sides()
        self.proxy().heal()
        self.fleet.wait_until_agreed()
        self.take_all(ids)

    def test_reset(self) -> None:
        """The same when connections are reset."""
        self.proxy().reset(self.ways)
        self.wait_until_partitioned()
        ids = self.add_on_both_sides()
        self.proxy().heal()
        self.fleet.wait_until_agreed()
        self.take_all(ids)

    def test_minority_only_suspects(self) -> None:
        """Two of five nodes suspect the others, but never mark them as failed."""
        self.proxy().stall(self.ways)
        self.wait_until_partitioned()
        for one in self.few:
            for other in self.many:
                self.assertEqual({"fail?"}, one.flags(other))

    def test_one_way(self) -> None:
        """A node that receives messages but cannot send any is marked as failed; after it recovers,
        no job is lost."""
        mute, *others = self.nodes
        ids = {mute.add(self.queue, replicate=3, retry=2) for _ in range(20)}
        self.proxy().stall((mute.ip, other.ip) for other in others)
        self.wait(lambda: all("fail" in o.flags(mute) for o in others), "its failure is detected")
        ids.add(others[0].add(self.queue, replicate=4, retry=2))
        self.proxy().heal()
        self.fleet.wait_until_agreed()
        self.take_all(ids)

    def test_short(self) -> None:
        """An interruption shorter than the node timeout has no effect, except on clients that wait
        for copies."""
        self.proxy().stall(self.ways)
        job_id = self.few[0].add(self.queue, replicate=2, timeout_ms=10_000)
        time.sleep(0.5)
        self.proxy().heal()
        self.stays_true(
            lambda: all(n.reachable() == 4 for n in self.nodes), 3, "all nodes are reachable"
        )
        self.take_all({job_id})

    def test_at_most_once(self) -> None:
        """Jobs with RETRY 0 move while connections break again and again, and none is delivered
        twice."""
        source, *others = self.nodes
        ids = {source.add(self.queue, replicate=1, retry=0) for _ in range(300)}
        got: list[str] = []
        for _turn in range(8):
            one = random.choice(others)
            self.proxy().reset(between([source.ip], [one.ip]))
            got += [job_id for _n, job_id in self.fleet.fetch(self.queue, 0.1)]
            self.proxy().heal()
            got += [i for node in random.sample(others, 2) for i in node.get(self.queue, 200, 10)]
        self.fleet.wait_until_agreed()
        got += [job_id for _node, job_id in self.fleet.fetch(self.queue, 3)]
        self.assertEqual(len(got), len(set(got)))
        self.assertLessEqual(set(got), ids)
        # Jobs on their way when a connection broke are lost, which RETRY 0 allows.
        self.assertGreater(len(got), 20)

    def test_late_bytes(self) -> None:
        """Copies that arrive long after a job was acknowledged do not cause another delivery."""
        sender = self.few[0]
        ids = [sender.add(self.queue, replicate=2, retry=1) for _ in range(20)]
        self.proxy().stall(self.ways)
        words = ("ADDJOB", self.queue, "b", 0, "REPLICATE", 5, "RETRY", 1, "ASYNC")
        ids += [str(sender.call(*words)) for _ in range(20)]
        for job_id in ids:
            sender.call("ACKJOB", job_id)
        self.proxy().heal()
        self.fleet.wait_until_agreed()
        self.fleet.wait_until_empty(60)
        self.assertEqual([], self.fleet.fetch(self.queue, 2))
