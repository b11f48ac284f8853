"""Jobs with keys that are withdrawn, because they did not get their copies in time."""

from __future__ import annotations

from disque_tx.messages.bus import JobSignal
from disque_tx.messages.bustypes import DELJOB, GOTJOB
from disque_tx.wire.bus.parser import encode
from tests.core.unique.keybench import A, B, C, KeyCase, Way


class WithdrawnTests(KeyCase):
    """A job of A, of which B and C have copies that they cannot confirm."""

    def begin(self, timeout_ms: int = 0) -> bytes:
        """A adds the job; its ID."""
        self.cluster.lost = {GOTJOB}
        self.begin_add(A, replicate=3, retry_s=300, timeout_ms=timeout_ms)
        self.cluster.settle()
        (wait,) = self.cluster.up[A].waiters.copies.values()
        job_id = wait.job.id
        self.assertEqual([True] * 3, self.holders(job_id))
        return job_id

    def holders(self, job_id: bytes) -> list[bool]:
        """Which nodes have the job."""
        return [node.jobs.get(job_id) is not None for node in self.cluster.up.values()]

    def withdraw(self, job_id: bytes) -> None:
        """The message by which A withdraws the job arrives, late."""
        for other in (B, C):
            self.cluster.waiting.append((Way(self.cluster, A, other), encode(self.deljob(job_id))))
        self.cluster.settle()

    def deljob(self, job_id: bytes) -> JobSignal:
        """DELJOB of A."""
        signal = JobSignal(DELJOB, job_id)
        signal.sender = A
        return signal

    def test_promised(self) -> None:
        """While A cannot be reached, a client at another node gets the ID of the job. Then the job
        stays, though A withdraws it: the client does not add it again."""
        job_id = self.begin()
        self.cluster.part(A)
        self.cluster.run(8_000)
        self.assertEqual((job_id, 0), self.add(B))
        self.withdraw(job_id)
        self.assertEqual([True, True], self.holders(job_id)[1:])
        (taken,) = [self.cluster.up[node].acknowledge([job_id]) for node in (B,)]
        self.assertEqual(1, taken)
        self.cluster.settle()
        self.withdraw(job_id)
        self.cluster.run(5_000)
        self.assertFalse(self.holders(job_id)[1])

    def test_maker_is_reached(self) -> None:
        """While A can be reached, nobody takes the copies for a job that was made: it is gone
        everywhere when A withdraws it, and its key is free."""
        job_id = self.begin(timeout_ms=6_000)
        self.cluster.run(5_000)
        self.assertEqual([True] * 3, self.holders(job_id))
        self.cluster.run(2_000)
        self.assertEqual([False] * 3, self.holders(job_id))
        self.cluster.lost = set()
        for at in (B, C):
            new_id, fresh = self.add(at, b"k" if at == B else b"other")
            self.assertEqual((1, True), (fresh, new_id != job_id))

    def test_not_asked(self) -> None:
        """What nobody asked about is withdrawn."""
        job_id = self.begin()
        self.cluster.part(A)
        self.withdraw(job_id)
        self.assertEqual([False, False], self.holders(job_id)[1:])
