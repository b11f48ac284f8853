"""Counts that travel with a job, and the messages that make them known."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.delivery.earlycounts import JOBS_MAX, LATE_MS, EarlyCounts
from disque_tx.core.jobs.job import Job
from disque_tx.messages import bustypes
from disque_tx.messages.bus import INCR_DELIV, INCR_NACKS, JobSignal
from disque_tx.messages.bustypes import REPLJOB, YOURJOBS
from tests.core.bench import ME
from tests.core.peerbench import B, C, PeerCase, peer_job

_JOB = b"D-aaaaaaaa-000000000000000000000001-05a1"


class RaceTests(PeerCase):
    """A job that comes from C while a message about it from B is still on its way."""

    def setUp(self) -> None:
        super().setUp()
        job = peer_job(1, (B, C, ME))
        self.receive_jobs(B, REPLJOB, job)
        self.held: Job = self.job(job.id)

    def come(self, nacks: int) -> None:
        """C gives the job, with this count."""
        record = peer_job(1, (B, C, ME))
        record.nacks = nacks
        self.receive_jobs(C, YOURJOBS, record)

    def queued(self) -> None:
        """B makes a NACK known."""
        message = JobSignal(bustypes.QUEUED, self.held.id)
        message.mflags = INCR_NACKS
        self.receive(B, message)

    def test_job_first(self) -> None:
        """A NACK whose message is overtaken by the job counts once, or the job would become a dead
        letter one delivery too early."""
        self.come(1)
        self.queued()
        self.assertEqual(1, self.held.nacks)

    def test_message_first(self) -> None:
        """In the usual order it counts once as well."""
        self.queued()
        self.come(1)
        self.assertEqual(1, self.held.nacks)

    def test_next_one(self) -> None:
        """The next NACK counts again."""
        self.come(1)
        self.queued()
        self.queued()
        self.assertEqual(2, self.held.nacks)

    def test_lost(self) -> None:
        """A message that did not come in time is not awaited for longer: later ones count."""
        self.come(1)
        self.pass_ms(LATE_MS + 1)
        self.queued()
        self.assertEqual(2, self.held.nacks)


class EarlyCountsTests(SynchronousTestCase):
    """What is remembered."""

    def test_kinds(self) -> None:
        """NACKs and additional deliveries are told apart."""
        counts = EarlyCounts()
        counts.came(_JOB, 1, 0, 0)
        self.assertEqual(INCR_DELIV, counts.uncounted(_JOB, INCR_DELIV, 1))
        self.assertEqual(0, counts.uncounted(_JOB, INCR_NACKS, 1))
        self.assertEqual(INCR_NACKS, counts.uncounted(_JOB, INCR_NACKS, 1))

    def test_several(self) -> None:
        """Two counts that came early are awaited twice."""
        counts = EarlyCounts()
        counts.came(_JOB, 1, 0, 0)
        counts.came(_JOB, 1, 1, 5)
        found = [counts.uncounted(_JOB, INCR_NACKS, 6) for _ in range(3)]
        self.assertEqual([0, 0, INCR_NACKS], found)
        self.assertEqual(0, counts.uncounted(_JOB, INCR_DELIV, 6))

    def test_bounded(self) -> None:
        """The oldest are forgotten when there are very many."""
        counts = EarlyCounts()
        for number in range(JOBS_MAX + 1):
            counts.came(b"%d" % number, 1, 0, 0)
        self.assertEqual(INCR_NACKS, counts.uncounted(b"0", INCR_NACKS, 1))
        self.assertEqual(0, counts.uncounted(b"1", INCR_NACKS, 1))
