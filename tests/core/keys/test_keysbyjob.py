"""How certain it is that a job with a key has ended."""

from __future__ import annotations

from disque_tx.core.keys.keysbyjob import CERTAIN, DOUBTFUL, KeysByJob, Reservation
from disque_tx.messages.keys import HELD
from disque_tx.messages.records import ACKED, ACTIVE, DELIVERED
from tests.core.bench import NodeCase, add_request


class GoneTests(NodeCase):
    """Jobs that the node does not know any more."""

    def gone(self, retry_s: int, flags: int = 0, state: int = ACTIVE, holders: int = 1) -> int:
        """How certain the end of such a job is."""
        self.node.add_job(self.client, add_request(b"q", b"body", retry_s=retry_s))
        job = next(iter(self.node.jobs.table.values()))
        job.flags, job.state = flags, state
        job.nodes = job.nodes[:1] * holders
        keys_by_job = KeysByJob()
        keys_by_job.by_job[job.id] = Reservation(b"key", job.id, HELD, False)
        keys_by_job.job_gone(job)
        self.node.delete([job.id])
        ((job_id, certain),) = keys_by_job.ended
        self.assertEqual(job.id, job_id)
        return certain

    def test_only_copy(self) -> None:
        """With the only copy the job is gone; the next one with its key can be added at once."""
        self.assertEqual(CERTAIN, self.gone(60))
        self.assertEqual(CERTAIN, self.gone(0))
        self.assertEqual(CERTAIN, self.gone(60, flags=DELIVERED))

    def test_elsewhere(self) -> None:
        """A job of several holders may live on, and one with RETRY 0 whose last delivery may still
        be worked on; unless it was acknowledged."""
        self.assertEqual(DOUBTFUL, self.gone(60, holders=2))
        self.assertEqual(DOUBTFUL, self.gone(0, flags=DELIVERED))
        self.assertEqual(CERTAIN, self.gone(60, state=ACKED, holders=2))
