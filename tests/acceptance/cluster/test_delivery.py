"""Deliveries across all nodes (cluster protocol, sections 10.4 to 10.6 and 11.6)."""

from __future__ import annotations

import random
import time

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node

#: Allows for the jitter of a RETRY, and the resolution of the clock.
_EARLY_S = 0.3


class RequeueTests(FleetTestCase):
    """Jobs that are not acknowledged."""

    node_timeout_s = NODE_TIMEOUT_S

    def test_once_per_retry(self) -> None:
        """A fetched job is queued again once, not once per holder, and not before its RETRY."""
        began = time.monotonic()
        ids = {self.nodes[n % 7].add(self.queue, replicate=3, retry=4) for n in range(20)}
        first = self.fleet.fetch(self.queue, 3, until=20)
        self.assertEqual(ids, {job_id for _node, job_id in first})
        self.assertEqual(20, len(first))
        self.stays_true(
            lambda: self.fleet.queued(self.queue) == 0,
            4 - _EARLY_S - (time.monotonic() - began),
            "nothing is queued before RETRY",
        )
        again = self.fleet.fetch(self.queue, 4 + 3 - (time.monotonic() - began))
        self.assertEqual(sorted(ids), sorted(job_id for _node, job_id in again))

    def test_queued_once(self) -> None:
        """A job that is not fetched stays queued on one node, however often its RETRY passes."""
        self.nodes[0].add(self.queue, replicate=3, retry=1)
        self.stays_true(
            lambda: self.fleet.queued(self.queue) <= 1, 4, "the job is queued on at most one node"
        )
        self.wait(lambda: self.fleet.queued(self.queue) == 1, "the job is queued")

    def test_at_most_once(self) -> None:
        """With RETRY 0 a job is delivered once, on whichever node clients wait, and never again."""
        ids = [self.nodes[n].add(self.queue, replicate=1, retry=0) for n in range(7)]
        got = self.fleet.fetch(self.queue, 10, until=7)
        got += self.fleet.fetch(self.queue, 3)
        self.assertEqual(sorted(ids), sorted(job_id for _node, job_id in got))

    def test_queueing_node_killed(self) -> None:
        """When the only node that has queued a job dies, another one delivers it."""
        job_id = self.nodes[0].add(self.queue, replicate=3, retry=2)
        self.nodes[0].kill()
        self.assertEqual([job_id], [i for _n, i in self.fleet.fetch(self.queue, 15, until=1)])

    def test_all_replicas_but_one(self) -> None:
        """Whichever holder survives, it delivers the job; tested ten times."""
        for turn in range(10):
            queue = f"{self.queue}-{turn}"
            adder = self.fleet.living()[turn % 5]
            job_id = adder.add(queue, replicate=3, retry=1, timeout_ms=20_000)
            holders = self.fleet.holders(job_id)
            random.shuffle(holders)
            self.fleet.each(Node.kill, holders[1:])
            got = [i for _n, i in self.fleet.fetch(queue, 20, until=1)]
            self.assertEqual([job_id], got, f"turn {turn}")
            self.fleet.each(Node.boot)

    def test_working(self) -> None:
        """WORKING keeps a job from being delivered to others, on all nodes."""
        began = time.monotonic()
        job_id = self.nodes[0].add(self.queue, replicate=3, retry=2)
        self.assertEqual([job_id], self.nodes[0].get(self.queue))
        for _ in range(4):
            self.stays_true(
                lambda: self.fleet.queued(self.queue) == 0, 1.2, "the job is queued on no node"
            )
            self.assertEqual(2, self.nodes[0].call("WORKING", job_id))
        self.assertGreater(time.monotonic() - began, 4.5)
        self.assertEqual([job_id], [i for _n, i in self.fleet.fetch(self.queue, 10, until=1)])

    def test_working_elsewhere(self) -> None:
        """WORKING has the same effect on whichever holder it is sent."""
        job_id = self.nodes[0].add(self.queue, replicate=3, retry=2)
        self.nodes[0].get(self.queue)
        other = next(node for node in self.fleet.holders(job_id) if node is not self.nodes[0])
        for _ in range(3):
            self.stays_true(
                lambda: self.fleet.queued(self.queue) == 0, 1.2, "the job is queued on no node"
            )
            self.assertEqual(2, other.call("WORKING", job_id))

    def test_counters(self) -> None:
        """Every holder counts what happens on the others."""
        job_id = self.nodes[0].add(self.queue, replicate=3, retry=60)
        self.nodes[0].get(self.queue)
        self.assertEqual(1, self.nodes[0].call("NACK", job_id))
        self.wait_for_counts(job_id, 1, 0)
        self.nodes[0].get(self.queue)
        self.assertEqual(1, self.nodes[0].call("ENQUEUE", job_id))
        self.wait_for_counts(job_id, 1, 1)
        job = self.nodes[6].call("GETJOB", "WITHCOUNTERS", "TIMEOUT", 10_000, "FROM", self.queue)[0]
        self.assertEqual([b"nacks", 1, b"additional-deliveries", 1], job[3:])

    def wait_for_counts(self, job_id: str, nacks: int, deliveries: int) -> None:
        """Wait until all holders have these counts."""

        def same() -> bool:
            shown = [node.show(job_id) for node in self.fleet.holders(job_id)]
            counts = {(one["nacks"], one["additional-deliveries"]) for one in shown}
            return counts == {(nacks, deliveries)} and len(shown) >= 3

        self.wait(same, f"all holders count {nacks} nacks and {deliveries} deliveries")

    def test_retry_counts(self) -> None:
        """A RETRY that passes counts as one additional delivery on all holders."""
        job_id = self.nodes[0].add(self.queue, replicate=3, retry=2)
        self.nodes[0].get(self.queue)
        self.assertEqual([job_id], [i for _n, i in self.fleet.fetch(self.queue, 10, until=1)])
        self.wait_for_counts(job_id, 0, 1)


class LifeTests(FleetTestCase):
    """TTL, DELAY and PAUSE on all nodes."""

    node_timeout_s = NODE_TIMEOUT_S

    def test_ttl(self) -> None:
        """When its TTL is over, a job is removed from all nodes without any message."""
        job_id = self.nodes[0].add(self.queue, replicate=3, ttl=3)
        self.stays_true(
            lambda: len(self.fleet.holders(job_id)) >= 3, 1.5, "the job has three holders"
        )
        self.wait(lambda: not self.fleet.holders(job_id), "the job is expired")
        self.assertEqual(0, self.fleet.queued(self.queue))

    def test_mass_expiry(self) -> None:
        """Many jobs that expire at once are removed from all nodes, which continue to serve
        clients."""
        for node in self.nodes:
            for _ in range(300):
                node.add(self.queue, replicate=3, ttl=5)
        self.fleet.wait_until_empty(30)
        self.assertEqual([0] * 7, [node.call("QLEN", self.queue) for node in self.nodes])

    def test_delay(self) -> None:
        """No node delivers a job before its DELAY, even if the node that received it dies."""
        began = time.monotonic()
        job_id = self.nodes[0].add(self.queue, replicate=3, delay=3, retry=1)
        self.nodes[0].kill()
        self.stays_true(
            lambda: self.fleet.queued(self.queue) == 0,
            3 - (time.monotonic() - began),
            "the job is not queued before its DELAY",
        )
        self.assertEqual([job_id], [i for _n, i in self.fleet.fetch(self.queue, 15, until=1)])

    def test_pause_everywhere(self) -> None:
        """PAUSE with ``bcast`` pauses the queue on all nodes, and also ends the pause there."""
        first, last = self.nodes[0], self.nodes[6]
        job_id = last.add(self.queue, replicate=1)
        self.assertEqual("all", first.call("PAUSE", self.queue, "all", "bcast"))
        self.wait(lambda: self.pause_states() == {"all"}, "all nodes have paused the queue", 5)
        self.assertEqual(
            "PAUSED Queue paused in input, try later", last.error("ADDJOB", self.queue, "b", 0)
        )
        self.assertEqual([], self.fleet.fetch(self.queue, 1))
        client = self.blocked_client(last, self.queue)
        self.assertEqual("none", first.call("PAUSE", self.queue, "none", "bcast"))
        self.assertEqual(job_id.encode(), client.read()[0][1])
        self.wait(lambda: self.pause_states() == {"none"}, "no node pauses the queue", 5)

    def pause_states(self) -> set[str]:
        """The pause states of the queue on all nodes."""
        return {node.call("PAUSE", self.queue, "state") for node in self.nodes}
