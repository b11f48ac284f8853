"""Making room when memory is short (client protocol, section 13.6)."""

from __future__ import annotations

from random import Random

from disque_tx.core.eviction import evict, evictable
from disque_tx.core.job import ACK, HOLD
from disque_tx.messages import DELIVERED
from tests.core.bench import NodeCase, make_job


class EvictionTests(NodeCase):
    """``evict``."""

    def setUp(self) -> None:
        super().setUp()
        self.random = Random(7).random

    def limit_to(self, percent: int) -> None:
        """Set the limit so that this much of it is used."""
        self.node.memory.limit = self.node.memory.used * 100 // percent

    def evict(self, allowed: bool = True) -> bool:
        return evict(self.node, allowed, self.random)

    def test_what_may_go(self) -> None:
        """Acknowledged jobs, and at-most-once jobs that were delivered; nothing else ever."""
        job = make_job(1)
        job.step(HOLD)
        self.assertFalse(evictable(job))
        job.flags |= DELIVERED
        self.assertFalse(evictable(job))
        job.retry_s = 0
        self.assertTrue(evictable(job))
        job.flags = 0
        self.assertFalse(evictable(job))
        job.step(ACK)
        self.assertTrue(evictable(job))

    def test_enough_below(self) -> None:
        """Below 95 % nothing happens."""
        for _ in range(50):
            self.add(retry_s=0)
        self.get(b"q", count=50)
        self.limit_to(90)
        self.assertTrue(self.evict())
        self.assertEqual(50, len(self.node.jobs))

    def test_many_at_once(self) -> None:
        """One attempt frees as much as is needed, not one job."""
        for _ in range(200):
            self.add(retry_s=0)
        self.get(b"q", count=200)
        self.limit_to(130)
        self.assertTrue(self.evict())
        self.assertTrue(100 < len(self.node.jobs) < 199)
        self.assertLess(self.node.memory.level(), 2)

    def test_bounded(self) -> None:
        """One attempt is bounded; the next one goes on."""
        for _ in range(1_500):
            self.add(retry_s=0)
        self.get(b"q", count=1_500)
        self.limit_to(1_000)
        self.assertFalse(self.evict())
        self.assertTrue(500 < len(self.node.jobs) < 1_500)
        while not self.evict():
            pass
        self.assertLess(self.node.memory.level(), 2)

    def test_policy(self) -> None:
        """With ``noeviction`` nothing goes."""
        self.add(retry_s=0)
        self.get(b"q")
        self.limit_to(99)
        self.assertFalse(self.evict(allowed=False))
        self.assertEqual(1, len(self.node.jobs))

    def test_nothing_to_evict(self) -> None:
        """Jobs that somebody still expects stay, and the attempt ends."""
        for _ in range(50):
            self.add()
        self.get(b"q", count=25)
        self.limit_to(99)
        self.assertFalse(self.evict())
        self.assertEqual(50, len(self.node.jobs))

    def test_no_jobs(self) -> None:
        """Without any job idle queues go instead."""
        for number in range(20):
            self.get(b"q%d" % number)
        self.limit_to(200)
        self.assertFalse(self.evict())
        self.pass_ms(2_000)
        self.assertTrue(self.evict())
        self.assertEqual(0, len(self.node.queues))
