"""ADDJOB and the copies it makes (cluster protocol, section 10.6)."""

from __future__ import annotations

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node

_NOREPL = "NOREPL Not enough reachable nodes for the requested replication level"
_TIMEOUT = "NOREPL Timeout reached before replicating to the requested number of nodes"


class AddingTestCase(FleetTestCase):
    """Counts copies of jobs."""

    def wait_for_copies(self, job_id: str, count: int) -> None:
        """Wait until ``count`` nodes have the job."""
        self.wait(lambda: len(self.fleet.holders(job_id)) >= count, f"{count} copies of {job_id}")


class ReplicateTests(AddingTestCase):
    """Seven reachable nodes."""

    def test_levels(self) -> None:
        """When ADDJOB is answered, at least the requested number of nodes have the job."""
        for replicate in (1, 2, 3, 7):
            job_id = self.nodes[replicate - 1].add(self.queue, replicate=replicate)
            holders = self.fleet.holders(job_id)
            self.assertGreaterEqual(len(holders), replicate)
            self.assertIn(self.nodes[replicate - 1], holders)

    def test_default(self) -> None:
        """Without REPLICATE there are three copies, and the job is queued on one node."""
        job_id = self.nodes[0].add(self.queue)
        self.assertGreaterEqual(len(self.fleet.holders(job_id)), 3)
        self.assertEqual("queued", self.nodes[0].state(job_id))
        self.assertEqual(1, self.fleet.queued(self.queue))

    def test_holders_know(self) -> None:
        """Every holder knows the others, so each of them can continue alone."""
        job_id = self.nodes[0].add(self.queue, replicate=3)
        for node in self.fleet.holders(job_id):
            known = {row.decode() for row in node.show(job_id)["nodes-delivered"]}
            self.assertGreaterEqual(len(known), 3)
            self.assertIn(node.id, known)

    def test_async(self) -> None:
        """ASYNC is answered at once, and the copies are made soon after."""
        for replicate in (1, 2, 3):
            job_id = self.nodes[0].add(self.queue, "b", "ASYNC", replicate=replicate)
            self.wait_for_copies(job_id, replicate)

    def test_too_many(self) -> None:
        """More copies than nodes are refused at once, with or without ASYNC, and nothing is
        kept."""
        for words in ((), ("ASYNC",)):
            self.assertEqual(
                _NOREPL,
                self.nodes[0].error("ADDJOB", self.queue, "b", 0, "REPLICATE", 8, *words),
            )
        self.assertEqual(0, self.fleet.jobs())


class DownTests(AddingTestCase):
    """Some of seven nodes are killed."""

    node_timeout_s = NODE_TIMEOUT_S

    def kill(self, count: int) -> list[Node]:
        """Kill the last ``count`` nodes; returns the others."""
        self.fleet.each(lambda node: node.kill(), self.nodes[7 - count :])
        return self.nodes[: 7 - count]

    def wait_until_flagged(self, others: list[Node]) -> None:
        """Wait until the others have detected the failures."""
        self.wait(
            lambda: all(n.reachable() == len(others) - 1 for n in others),
            "all failures are detected",
        )

    def test_before_flagged(self) -> None:
        """Before the failures are detected, the copies are made on other nodes."""
        others = self.kill(3)
        ids = [others[n % 4].add(self.queue, replicate=3) for n in range(12)]
        for job_id in ids:
            self.assertGreaterEqual(len(self.fleet.holders(job_id)), 3)

    def test_async_before_flagged(self) -> None:
        """ASYNC copies that were sent to dead nodes are made on others."""
        self.kill(3)
        ids = [self.nodes[0].add(self.queue, "b", "ASYNC", replicate=3) for _ in range(10)]
        for job_id in ids:
            self.wait_for_copies(job_id, 3)

    def test_all_the_living(self) -> None:
        """As many copies as there are running nodes are possible; one more is refused as such."""
        others = self.kill(3)
        self.wait_until_flagged(others)
        job_id = others[0].add(self.queue, replicate=4)
        self.assertEqual(others, self.fleet.holders(job_id))
        self.assertEqual(_NOREPL, others[0].error("ADDJOB", self.queue, "b", 0, "REPLICATE", 5))

    def test_not_enough_unflagged(self) -> None:
        """When too few nodes are running and the failures are not detected yet, the client gets an
        error, and no copy stays."""
        others = self.kill(5)
        words = ("ADDJOB", self.queue, "b", 500, "REPLICATE", 4)
        self.assertEqual(_TIMEOUT, others[0].error(*words))
        self.wait(lambda: self.fleet.jobs() == 0, "the copies are deleted")

    def test_life_shorter_than_timeout(self) -> None:
        """A job that expires before its client's timeout fails, and is on no node."""
        others = self.kill(5)
        words = ("ADDJOB", self.queue, "b", 30_000, "REPLICATE", 4, "TTL", 1)
        self.assertEqual(
            "NOREPL job removed (expired?) before the requested replication level was achieved",
            others[0].error(*words),
        )
        self.wait(lambda: self.fleet.jobs() == 0, "the copies are expired")
