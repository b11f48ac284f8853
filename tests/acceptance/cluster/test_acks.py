"""Acknowledgements and their garbage collection (cluster protocol, sections 10.8 to 10.10)."""

from __future__ import annotations

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node

#: The ID of no existing job; its odd TTL field says that it may be delivered more than once.
UNKNOWN = "D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1"


class AckTests(FleetTestCase):
    """Seven nodes; when all jobs are acknowledged, no node keeps any."""

    node_timeout_s = NODE_TIMEOUT_S

    def test_all_empty(self) -> None:
        """Jobs that were added, delivered and acknowledged on any node are removed from all."""
        count = 0
        for turn in range(100):
            self.nodes[turn % 7].add(self.queue, replicate=1 + turn % 3)
        while count < 100:
            got = self.fleet.fetch(self.queue, 10, until=1)
            self.assertNotEqual([], got)
            for node, job_id in got:
                count += node.call("ACKJOB", job_id)
        self.assertEqual(100, count)
        self.fleet.wait_until_empty()
        self.assertEqual([], self.fleet.fetch(self.queue, 1))

    def test_not_delivered_again(self) -> None:
        """An acknowledged job is not delivered again when its RETRY passes on any holder."""
        ids = [self.nodes[n].add(self.queue, replicate=3, retry=1) for n in range(7)]
        for node, job_id in self.fleet.fetch(self.queue, 0.8, until=7):
            node.call("ACKJOB", job_id)
        # Jobs that were not fetched at first may be on any node; they are acknowledged now.
        got = {job_id for _node, job_id in self.fleet.fetch(self.queue, 3)}
        self.assertLessEqual(got, set(ids))
        for job_id in got:
            self.nodes[0].call("ACKJOB", job_id)
        self.fleet.wait_until_empty()
        self.assertEqual([], self.fleet.fetch(self.queue, 1.5))

    def test_unknown_job(self) -> None:
        """A job can be acknowledged on a node that never had it; that node notifies the holders."""
        job_id = self.nodes[0].add(self.queue, replicate=3)
        other = next(node for node in self.nodes if not node.state(job_id))
        self.assertEqual(0, other.call("ACKJOB", job_id))
        self.fleet.wait_until_empty()
        self.assertEqual(0, self.fleet.queued(self.queue))

    def test_nonexistent_job(self) -> None:
        """An acknowledgement of a job that does not exist is removed from all nodes."""
        self.assertEqual(0, self.nodes[3].call("ACKJOB", UNKNOWN))
        self.fleet.wait_until_empty()

    def test_holders_down(self) -> None:
        """Jobs acknowledged while holders were down are removed when these are back."""
        ids = [self.nodes[0].add(self.queue, replicate=3) for _ in range(20)]
        down = self.nodes[5:]
        self.fleet.each(Node.suspend, down)
        self.assertEqual(20, self.nodes[0].call("ACKJOB", *ids))
        self.wait(
            lambda: all("fail" in self.nodes[0].flags(n) for n in down), "the others have failed"
        )
        self.fleet.each(Node.resume, down)
        self.fleet.wait_until_agreed()
        self.fleet.wait_until_empty(60)

    def test_holders_lost(self) -> None:
        """Holders that lost their memory do not prevent the others from removing acknowledged
        jobs."""
        ids = [self.nodes[0].add(self.queue, replicate=3) for _ in range(20)]
        self.fleet.each(Node.kill, self.nodes[5:])
        self.assertEqual(20, self.nodes[0].call("ACKJOB", *ids))
        self.fleet.each(Node.boot)
        self.fleet.wait_until_agreed()
        self.fleet.wait_until_empty(60)

    def test_fast(self) -> None:
        """FASTACK removes a job from all holders at once, on whichever node it is sent."""
        known = self.nodes[0].add(self.queue, replicate=3)
        self.assertEqual(1, self.nodes[0].call("FASTACK", known))
        self.fleet.wait_until_empty(5)
        unknown = self.nodes[0].add(self.queue, replicate=3)
        other = next(node for node in self.nodes if not node.state(unknown))
        self.assertEqual(0, other.call("FASTACK", unknown))
        self.fleet.wait_until_empty(5)

    def test_imported(self) -> None:
        """A job acknowledged on the node that imported it is not delivered again by its owner."""
        job_id = self.nodes[0].add(self.queue, replicate=1, retry=1)
        self.assertEqual([job_id], self.nodes[6].get(self.queue, 10_000))
        self.nodes[6].call("ACKJOB", job_id)
        self.assertEqual([], self.fleet.fetch(self.queue, 3))
        self.fleet.wait_until_empty()
