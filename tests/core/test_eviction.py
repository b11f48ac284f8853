"""Room that is made when the memory is nearly full."""

from __future__ import annotations

from disque_tx.core.eviction import evict, evictable
from disque_tx.core.jobs.job import Job
from disque_tx.messages.records import ACKED
from tests.core.bench import NodeCase


class EvictionTests(NodeCase):
    """One node whose memory is full."""

    def full(self, above: int = 0) -> None:
        """The memory is so many bytes above 95 % of its limit."""
        memory = self.node.memory
        memory.limit = 100_000_000
        memory.add(95_000_000 + above - int(memory.used))

    def delivered(self, retry_s: int = 0) -> Job:
        """A job that a client got."""
        job = self.job(self.add(b"q", b"body", retry_s=retry_s))
        self.get(b"q")
        return job

    def evict(self, allowed: bool = True) -> bool:
        """Whether there is room now."""
        return evict(self.node, allowed, lambda: 0.5)

    def test_which(self) -> None:
        """Only jobs that are acknowledged, or may be delivered once and were, are not needed."""
        waiting = self.job(self.add(b"w", b"body", retry_s=0))
        once, again = self.delivered(), self.delivered(60)
        self.assertEqual([False, True, False], [evictable(job) for job in (waiting, once, again)])
        again.state = ACKED
        self.assertTrue(evictable(again))

    def test_room(self) -> None:
        """Jobs go until the memory is at 95 %, and not one more; those that nobody acknowledged
        are counted."""
        jobs = [self.delivered() for _ in range(5)]
        size = int(self.node.memory.used) // 8
        self.full(size)
        self.assertTrue(self.evict())
        left = len(self.node.jobs)
        self.assertTrue(0 < left < len(jobs))
        self.assertEqual(len(jobs) - left, self.node.totals.evicted)
        self.assertTrue(self.evict())
        self.assertEqual(left, len(self.node.jobs))

    def test_forbidden(self) -> None:
        """With ``noeviction`` nothing goes, and there is room only below the limit."""
        self.delivered()
        self.full(1)
        self.assertFalse(self.evict(False))
        self.assertEqual(1, len(self.node.jobs))
        self.full(0)
        self.assertTrue(self.evict(False))

    def test_needed(self) -> None:
        """Jobs that are needed stay, however full the memory is, and looking for others ends."""
        self.add(b"q", b"body", retry_s=60)
        self.full(10_000)
        self.assertFalse(self.evict())
        self.assertEqual((1, 0), (len(self.node.jobs), self.node.totals.evicted))

    def test_no_jobs(self) -> None:
        """Without jobs there is no room to make."""
        self.full(10_000)
        self.assertFalse(self.evict())
