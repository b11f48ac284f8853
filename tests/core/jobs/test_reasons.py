"""The texts with which consumers returned jobs, in a bounded table."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.jobs.memory import Memory
from disque_tx.core.jobs.reasons import REASON_BYTES_MAX, Reasons
from disque_tx.core.lookup.table import Table
from tests.core.bench import make_job


class ReasonsTests(SynchronousTestCase):
    """The table alone."""

    def setUp(self) -> None:
        self.memory = Memory()
        self.reasons = Reasons(self.memory)

    def test_last_one(self) -> None:
        """Only the last return explains the present state of a job."""
        self.reasons.put(b"a", b"first")
        self.reasons.put(b"a", b"second")
        self.assertEqual(b"second", self.reasons.get(b"a"))
        self.reasons.put(b"a", b"")
        self.assertEqual((b"", False), (self.reasons.get(b"a"), self.reasons.kept))

    def test_one_line(self) -> None:
        """A text with line breaks or NUL cannot tear a log line or a table in two."""
        self.reasons.put(b"a", b"one\r\ntwo\0three")
        self.assertEqual(b"one  two three", self.reasons.get(b"a"))

    def test_bounds(self) -> None:
        """Clients that send reasons forever take a bounded amount of memory."""
        self.reasons.limit = 3
        for number in range(10):
            self.reasons.put(b"%d" % number, b"%d" % number + b"x" * 5_000)
        kept = [number for number in range(10) if self.reasons.get(b"%d" % number)]
        self.assertEqual([7, 8, 9], kept)
        self.assertEqual(b"9".ljust(REASON_BYTES_MAX, b"x"), self.reasons.get(b"9"))

    def test_end_of_a_job(self) -> None:
        """The text goes with its job, whether that is acknowledged or gone, and others stay."""
        for end in (self.reasons.job_acknowledged, self.reasons.job_gone):
            job, other = make_job(1), make_job(2)
            end(job)
            self.reasons.put(job.id, b"wrong")
            self.reasons.put(other.id, b"late")
            end(job)
            self.assertEqual((b"", b"late"), tuple(map(self.reasons.get, (job.id, other.id))))
            self.assertTrue(self.reasons.kept)
            end(other)
            self.assertEqual((b"", 0), (self.reasons.get(other.id), self.memory.used))

    def test_memory(self) -> None:
        """Texts count as memory, and give it back, also when all jobs are forgotten again and
        again."""
        for _ in range(3):
            self.reasons.put(b"a", b"x" * 100)
            self.assertTrue(self.memory.used > 100)
            self.reasons.put(b"b", b"y")
            self.assertEqual(self.memory.used, self.reasons.used)
            self.reasons.forget(b"a")
            self.reasons.all_forgotten(Table())
            self.assertEqual((0, False), (self.memory.used, self.reasons.kept))
            self.assertEqual((0, b""), (self.reasons.used, self.reasons.get(b"b")))
