"""Nodes give their jobs away before they go (CLUSTER LEAVING yes EVACUATE)."""

from __future__ import annotations

import sys
import time

from tests.acceptance.cluster.fleet import FleetTestCase
from tests.acceptance.cluster.node import NODE_TIMEOUT_S, Node
from tests.acceptance.cluster.totalqueue import TotalQueue

_EACH = 60


class EvacuationTests(FleetTestCase):
    """Four nodes without a log."""

    node_timeout_s = NODE_TIMEOUT_S
    size = 4
    directives = ("appendonly no", "shutdown-evacuates 60")

    def left(self, node: Node) -> int:
        """How many jobs a node still has to get rid of."""
        return int(node.figures("copies")["evacuation_left"])

    def evacuate(self, node: Node) -> None:
        """Have a node give its jobs away, and wait until it is empty."""
        self.assertEqual("OK", node.call("CLUSTER", "LEAVING", "yes", "EVACUATE"))
        self.wait(lambda: self.left(node) == 0, "the node is empty", 180)

    def replace(self, node: Node) -> None:
        """Lose a node with all it has, and start a new one in its place."""
        old = node.id
        node.lose()
        others = self.fleet.living()
        for other in others:
            other.call("CLUSTER", "FORGET", old)
        node.boot()
        others[0].call("CLUSTER", "MEET", node.ip, node.port, node.bus_port)
        self.fleet.wait_until_agreed()

    def test_rolled(self) -> None:
        """Every node of a cluster is emptied and replaced, while clients add and take jobs: none
        is lost, also of those with a single copy, queued, delayed and in flight."""
        first = self.nodes[0]
        waiting = [first.add("waiting", retry=3600, replicate=1 + n % 2) for n in range(_EACH)]
        once = [first.add("once", retry=0, replicate=1) for _ in range(_EACH)]
        begun_s = time.monotonic()
        late = [first.add("late", retry=3600, replicate=1, delay=60) for _ in range(_EACH)]
        taken = [first.add("taken", retry=20, replicate=1) for _ in range(5)]
        first.get("taken", count=5)
        load = TotalQueue(self.nodes, self.queue, 2, 3)
        load.begin()
        try:
            for node in self.nodes:
                self.evacuate(node)
                self.replace(node)
        finally:
            load.end()
        load.drain(20, 180)
        print(f"\n      {load.report()}", file=sys.stderr, flush=True)
        self.assertEqual((set(), set()), (load.lost, load.unexpected))
        self.assertEqual(sorted(once), self.take_all("once", len(once)))
        for queue, jobs in (("waiting", waiting), ("taken", taken)):
            self.assertEqual(set(jobs), set(self.take_all(queue, len(jobs))), queue)
        self.wait(lambda: time.monotonic() > begun_s + 62, "the delay is over", 70)
        self.assertEqual(set(late), set(self.take_all("late", len(late))))

    def take_all(self, queue: str, count: int) -> list[str]:
        """The IDs of all jobs of a queue, each as often as it was delivered; more than once on a
        machine that is too busy for nodes to answer each other before RETRY is over."""
        found: list[str] = []

        def fetch() -> bool:
            for node, job_id in self.fleet.fetch(queue, 0.5):
                node.call("ACKJOB", job_id)
                found.append(job_id)
            return len(set(found)) >= count

        self.wait(fetch, f"{count} jobs of {queue} are delivered", 120)
        return sorted(found)

    def test_stopped_by_signal(self) -> None:
        """SIGTERM empties a node before it stops, with ``shutdown-evacuates``; started again it is
        a member as before."""
        node, *others = self.nodes
        jobs = [node.add(self.queue, retry=3600, replicate=1) for _ in range(_EACH)]
        node.stop()
        self.assertEqual(_EACH, sum(other.jobs() for other in others))
        node.boot()
        self.fleet.wait_until_agreed()
        self.assertEqual(("no", 0), (node.call("CLUSTER", "LEAVING"), node.jobs()))
        self.assertEqual(sorted(jobs), self.take_all(self.queue, _EACH))

    def test_dies_in_the_middle(self) -> None:
        """A node that is killed while it gives its jobs away takes no job with it that has another
        copy, nor one that has moved."""
        node, *others = self.nodes
        copied = [node.add(self.queue, retry=2, replicate=2) for _ in range(_EACH)]
        for _ in range(5_000):
            node.add(f"{self.queue}-single", retry=3600, replicate=1)
        moved_before = sum(other.jobs() for other in others)
        node.call("CLUSTER", "LEAVING", "yes", "EVACUATE")
        self.wait(lambda: sum(o.jobs() for o in others) > moved_before + 200, "jobs move")
        node.kill()
        self.assertLessEqual(set(copied), set(self.take_all(self.queue, _EACH)))
        kept = self.fleet.queued(f"{self.queue}-single")
        self.assertGreater(kept, 100)
        self.assertEqual(kept, len(set(self.take_all(f"{self.queue}-single", kept))))
        node.boot()
        node.call("CLUSTER", "LEAVING", "no")
        self.fleet.wait_until_agreed()

    def test_called_off(self) -> None:
        """CLUSTER LEAVING no ends it: what has moved is delivered where it is, the rest here."""
        node = self.nodes[0]
        jobs = [node.add(self.queue, retry=3600, replicate=1) for _ in range(3_000)]
        node.call("CLUSTER", "LEAVING", "yes", "EVACUATE")
        node.call("CLUSTER", "LEAVING", "no")
        self.assertEqual("no", node.figures("copies")["evacuating"])
        self.fleet.wait_until_agreed()
        self.assertEqual(sorted(jobs), self.take_all(self.queue, 3_000))
