"""Counting memory, and its levels."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.memory import JOB_BYTES, Memory, job_bytes
from tests.core.bench import make_job


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
        """A limit of zero is no limit."""
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
        """The peak is the most ever used, also after it was given back."""
        self.memory.take(700)
        self.memory.give(500)
        self.memory.take(100)
        self.assertEqual((300, 700), (self.memory.used, self.memory.peak))

    def test_job(self) -> None:
        """A job costs a fixed sum, its body, and a little for each node that has a copy."""
        job = make_job(1)
        self.assertTrue(JOB_BYTES + 4 < job_bytes(job) < JOB_BYTES + 4 + 100)
        one = job_bytes(job)
        job.nodes = job.nodes + (b"b" * 40,)
        self.assertTrue(0 < job_bytes(job) - one < 100)
