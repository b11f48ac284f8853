"""How certain it is that a job with a key has ended."""

from __future__ import annotations

from disque_tx.core.jobs.job import Job
from disque_tx.core.keys.keysbyjob import ANNOUNCED, CERTAIN, DOUBTFUL, KeysByJob, Reservation
from disque_tx.messages.keys import HELD
from disque_tx.messages.records import ACKED, ACTIVE, DELIVERED
from tests.core.bench import NodeCase, add_request

OTHER = b"f" * 40


class GoneTests(NodeCase):
    """Jobs that the node does not know any more."""

    def gone(
        self, retry_s: int, flags: int = 0, state: int = ACTIVE, nodes: tuple[bytes, ...] = ()
    ) -> int:
        """How certain the end of such a job is. ``nodes``: its holders, if it is not this one."""
        self.node.add_job(self.client, add_request(b"q", b"body", retry_s=retry_s))
        job = next(iter(self.node.jobs.table.values()))
        job.flags, job.state = flags, state
        job.nodes = nodes or job.nodes
        keys_by_job = KeysByJob(self.node.membership)
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
        """A job of several holders may live on, and one that only another node holds, and one with
        RETRY 0 whose last delivery may still be worked on; unless it was acknowledged."""
        self.assertEqual(DOUBTFUL, self.gone(60, nodes=(OTHER,)))
        self.assertEqual(DOUBTFUL, self.gone(60, nodes=(self.node.id, OTHER)))
        self.assertEqual(DOUBTFUL, self.gone(0, flags=DELIVERED))
        self.assertEqual(CERTAIN, self.gone(60, state=ACKED, nodes=(self.node.id, OTHER)))


class RegainedTests(NodeCase):
    """Jobs that this node made, lost, and got back from others, perhaps without their keys."""

    def setUp(self) -> None:
        super().setUp()
        self.node.add_job(self.client, add_request(b"q", b"body", retry_s=60))
        self.held = next(iter(self.node.jobs.table.values()))
        self.held.regained = True
        self.keys_by_job = KeysByJob(self.node.membership)

    def ended(self, job: Job) -> list[tuple[bytes, int]]:
        """What is known when the job is acknowledged, and then gone."""
        self.keys_by_job.job_acknowledged(job)
        job.state = ACKED
        self.keys_by_job.job_gone(job)
        return self.keys_by_job.ended

    def test_acknowledged(self) -> None:
        """Others keep a key for this job, of which only this node could say that it is free: they
        get to know once."""
        self.assertEqual([(self.held.id, ANNOUNCED)], self.ended(self.held))

    def test_key_is_known(self) -> None:
        """A key that is known here is freed as usual."""
        self.keys_by_job.by_job[self.held.id] = Reservation(b"key", self.held.id, HELD, True)
        self.assertEqual({CERTAIN}, {certain for _, certain in self.ended(self.held)})

    def test_gone(self) -> None:
        """The same when the only copy is deleted; not while another node may have the job."""
        self.keys_by_job.job_gone(self.held)
        self.assertEqual([(self.held.id, ANNOUNCED)], self.keys_by_job.ended)
        self.keys_by_job.ended.clear()
        self.held.nodes = (self.node.id, OTHER)
        self.keys_by_job.job_gone(self.held)
        self.assertEqual([], self.keys_by_job.ended)

    def test_others(self) -> None:
        """Any other job without a key costs nothing."""
        self.held.regained = False
        self.assertEqual([], self.ended(self.held))
