"""Acknowledgements and their collection (cluster protocol, sections 10.8 to 10.10)."""

from __future__ import annotations

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node

#: An ID that nobody made; the odd TTL field says that it may be delivered more than once.
UNKNOWN = "D-dcb833cf-8YL1NT17e9+wsA/09NqxscQI-05a1"


class AckTests(FleetTestCase):
    """Seven nodes; when all is acknowledged, nobody keeps anything."""

    node_timeout_s = NODE_TIMEOUT_S

    def test_all_empty(self) -> None:
        """Jobs that were added, delivered and acknowledged anywhere leave nothing behind."""
        count = 0
        for turn in range(100):
            self.nodes[turn % 7].add(self.queue, replicate=1 + turn % 3)
        while count < 100:
            got = self.fleet.fetch(self.queue, 10, until=1)
            self.assertNotEqual([], got)
            for node, job_id in got:
                count += node.call("ACKJOB", job_id)
        self.assertEqual(100, count)
        self.fleet.drained()
        self.assertEqual([], self.fleet.fetch(self.queue, 1))

    def test_not_delivered_again(self) -> None:
        """An acknowledged job does not come back when its RETRY passes on any holder."""
        ids = [self.nodes[n].add(self.queue, replicate=3, retry=1) for n in range(7)]
        for node, job_id in self.fleet.fetch(self.queue, 0.8, until=7):
            node.call("ACKJOB", job_id)
        # What was not fetched at once may be anywhere; it is not acknowledged a second time.
        got = {job_id for _node, job_id in self.fleet.fetch(self.queue, 3)}
        self.assertLessEqual(got, set(ids))
        for job_id in got:
            self.nodes[0].call("ACKJOB", job_id)
        self.fleet.drained()
        self.assertEqual([], self.fleet.fetch(self.queue, 1.5))

    def test_where_it_is_not_known(self) -> None:
        """A node that never saw the job can be told; the holders hear of it."""
        job_id = self.nodes[0].add(self.queue, replicate=3)
        stranger = next(node for node in self.nodes if not node.state(job_id))
        self.assertEqual(0, stranger.call("ACKJOB", job_id))
        self.fleet.drained()
        self.assertEqual(0, self.fleet.queued(self.queue))

    def test_nobody_knows(self) -> None:
        """An acknowledgement of a job that does not exist vanishes by itself."""
        self.assertEqual(0, self.nodes[3].call("ACKJOB", UNKNOWN))
        self.fleet.drained()

    def test_holders_down(self) -> None:
        """What was acknowledged while holders were down is collected when they are back."""
        ids = [self.nodes[0].add(self.queue, replicate=3) for _ in range(20)]
        down = self.nodes[5:]
        self.fleet.each(Node.freeze, down)
        self.assertEqual(20, self.nodes[0].call("ACKJOB", *ids))
        self.wait(lambda: all("fail" in self.nodes[0].flags(n) for n in down), "they are missed")
        self.fleet.each(Node.thaw, down)
        self.fleet.agreed()
        self.fleet.drained(60)

    def test_holders_lost(self) -> None:
        """Holders that lost their memory do not keep the others from collecting."""
        ids = [self.nodes[0].add(self.queue, replicate=3) for _ in range(20)]
        self.fleet.each(Node.kill, self.nodes[5:])
        self.assertEqual(20, self.nodes[0].call("ACKJOB", *ids))
        self.fleet.each(Node.boot)
        self.fleet.agreed()
        self.fleet.drained(60)

    def test_fast(self) -> None:
        """FASTACK takes a job from all holders at once, wherever it is said."""
        known = self.nodes[0].add(self.queue, replicate=3)
        self.assertEqual(1, self.nodes[0].call("FASTACK", known))
        self.fleet.drained(5)
        unknown = self.nodes[0].add(self.queue, replicate=3)
        stranger = next(node for node in self.nodes if not node.state(unknown))
        self.assertEqual(0, stranger.call("FASTACK", unknown))
        self.fleet.drained(5)

    def test_imported(self) -> None:
        """A job acknowledged where it was imported is not delivered again by its owner."""
        job_id = self.nodes[0].add(self.queue, replicate=1, retry=1)
        self.assertEqual([job_id], self.nodes[6].get(self.queue, 10_000))
        self.nodes[6].call("ACKJOB", job_id)
        self.assertEqual([], self.fleet.fetch(self.queue, 3))
        self.fleet.drained()
