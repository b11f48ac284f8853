"""How fast a leaving node gives its jobs away, and what it says meanwhile."""

from __future__ import annotations

from itertools import pairwise

from disque_tx.core.healing.healing import NOTHING
from disque_tx.core.leaving.evacuation import CLIENTS
from tests.core.bench import add_request
from tests.core.flowbench import STEP_MS
from tests.core.leaving.leavebench import LeaveCase


class PaceTests(LeaveCase):
    """Jobs in queues."""

    def test_parts(self) -> None:
        """The jobs leave a few hundred at a time, so that the node serves others between."""
        for retry_s in (0, 60):
            self.setUp()
            self.add(0, count=1_500, retry_s=retry_s)
            self.evacuate(0)
            lengths = [self.length(0)]
            while lengths[-1]:
                self.flow.run(STEP_MS)
                lengths.append(self.length(0))
            steps = [before - after for before, after in pairwise(lengths)]
            self.assertLess(max(steps), 500)
            self.assertGreater(50, len(steps))

    def test_unconfirmed(self) -> None:
        """No more than 16 MB and the jobs of a bucket leave before the other nodes have confirmed
        what they have: the rest is still here if they are too slow."""
        for _ in range(40):
            request = add_request(b"q", bytes(1_048_576), replicate=1, ttl_s=3_600)
            self.flow.nodes[0].add_job(self.client(), request)
        for here in range(1, self.nodes):
            self.hold_back(here, 0, True)
        self.evacuate(0)
        self.flow.run(2_000)
        gone = 40 - self.length(0)
        self.assertEqual(gone, sum(self.length(at) for at in range(1, self.nodes)))
        self.assertTrue(15 <= gone <= 16 + 7, gone)

    def test_progress_is_said(self) -> None:
        """While jobs move, nothing is in their way, even if clients have some of the others."""
        self.add_job(0)
        self.fetch(0)
        self.add(0, count=10)
        self.evacuate(0)
        while self.length(0):
            self.assertEqual(NOTHING, self.flow.nodes[0].evacuation.obstacle)
            self.flow.run(STEP_MS)
        self.pass_ms(10_000)
        self.assertEqual(CLIENTS, self.flow.nodes[0].evacuation.obstacle)
