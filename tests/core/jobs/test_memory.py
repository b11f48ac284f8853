"""The memory that jobs use, the memory levels, and eviction."""

from __future__ import annotations

from random import Random

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.eviction import evict, evictable
from disque_tx.core.jobs.job import ACK, HOLD
from disque_tx.core.jobs.memory import JOB_BYTES, Memory, job_bytes
from disque_tx.messages.records import DELIVERED
from tests.core.bench import NodeCase, make_job


class MemoryTests(SynchronousTestCase):
    """``Memory`` (client protocol, section 13.6)."""

    def setUp(self) -> None:
        self.memory = Memory()
        self.memory.limit = 1_000_000

    def test_levels(self) -> None:
        """Above 75 % jobs are no longer stored here, above 95 % they are refused."""
        for used, level in ((0, 0), (750_000, 0), (750_001, 1), (950_000, 1), (950_001, 2)):
            self.memory.used = used
            self.assertEqual(level, self.memory.level(), used)

    def test_no_limit(self) -> None:
        """A limit of zero means no limit."""
        self.memory.limit = 0
        self.memory.used = 1 << 50
        self.assertEqual(0, self.memory.level())

    def test_extreme_limits(self) -> None:
        """The largest limit that can be configured is never reached; the smallest always is."""
        self.memory.used = 1 << 40
        for limit in ((1 << 63) - 1, 1 << 62):
            self.memory.limit = limit
            self.assertEqual(0, self.memory.level())
        self.memory.limit = 1
        self.assertEqual(2, self.memory.level())

    def test_peak(self) -> None:
        """The peak is the highest usage ever, even after memory was freed."""
        self.memory.add(700)
        self.memory.subtract(500)
        self.memory.add(100)
        self.assertEqual((300, 700), (self.memory.used, self.memory.peak))

    def test_job(self) -> None:
        """A job costs a fixed amount, its body, and a little for each node that holds a copy."""
        job = make_job(1)
        self.assertTrue(JOB_BYTES + 4 < job_bytes(job) < JOB_BYTES + 4 + 100)
        one = job_bytes(job)
        job.nodes = job.nodes + (b"b" * 40,)
        self.assertTrue(0 < job_bytes(job) - one < 100)


class EvictionTests(NodeCase):
    """``evict``."""

    def setUp(self) -> None:
        super().setUp()
        self.random = Random(7).random

    def limit_to(self, percent: int) -> None:
        """Set the limit so that this percentage of it is used."""
        self.node.memory.limit = self.node.memory.used * 100 // percent

    def evict(self, allowed: bool = True) -> bool:
        return evict(self.node, allowed, self.random)

    def test_what_may_go(self) -> None:
        """Only acknowledged jobs, and at-most-once jobs that were delivered, may be evicted."""
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
        """Below 95 % nothing is evicted."""
        for _ in range(50):
            self.add(retry_s=0)
        self.get(b"q", count=50)
        self.limit_to(90)
        self.assertTrue(self.evict())
        self.assertEqual(50, len(self.node.jobs))

    def test_many_at_once(self) -> None:
        """One attempt frees as much as is needed, not just one job."""
        for _ in range(200):
            self.add(retry_s=0)
        self.get(b"q", count=200)
        self.limit_to(130)
        self.assertTrue(self.evict())
        self.assertTrue(100 < len(self.node.jobs) < 199)
        self.assertLess(self.node.memory.level(), 2)

    def test_bounded(self) -> None:
        """The work of one attempt is bounded; the next one continues."""
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
        """With ``noeviction`` nothing is evicted."""
        self.add(retry_s=0)
        self.get(b"q")
        self.limit_to(99)
        self.assertFalse(self.evict(allowed=False))
        self.assertEqual(1, len(self.node.jobs))

    def test_nothing_to_evict(self) -> None:
        """Jobs that may still be delivered stay, and the attempt ends."""
        for _ in range(50):
            self.add()
        self.get(b"q", count=25)
        self.limit_to(99)
        self.assertFalse(self.evict())
        self.assertEqual(50, len(self.node.jobs))

    def test_no_jobs(self) -> None:
        """Without any job, idle queues are removed instead."""
        for number in range(20):
            self.get(b"q%d" % number)
        self.limit_to(200)
        self.assertFalse(self.evict())
        self.pass_ms(2_000)
        self.assertTrue(self.evict())
        self.assertEqual(0, len(self.node.queues))
