"""Counts that travel with a job, and the messages that make them known."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.base.part import Turn
from disque_tx.core.delivery.earlycounts import JOBS_MAX, LATE_MS, EarlyCounts
from disque_tx.core.jobs.job import Job
from disque_tx.messages import bustypes
from disque_tx.messages.bus import INCR_DELIV, INCR_NACKS, JobSignal
from disque_tx.messages.bustypes import REPLJOB, YOURJOBS
from disque_tx.messages.holders import AGAIN
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

    def test_only_the_new_ones(self) -> None:
        """Of the count that a job brings, only what is new may be announced later: what was counted
        here before was announced already."""
        for _ in range(3):
            self.queued()
        self.come(4)
        for _ in range(3):
            self.queued()
        self.assertEqual(6, self.held.nacks)

    def test_lost(self) -> None:
        """A message that did not come in time is not awaited for longer: later ones count."""
        self.come(1)
        self.pass_ms(LATE_MS + 1)
        self.queued()
        self.assertEqual(2, self.held.nacks)


class FirstCopyTests(PeerCase):
    """A first copy of a job comes late, because it had to be sent again, and with a count."""

    def arrive(self, mflags: int = 0) -> Job:
        """The copy, which B sends."""
        record = peer_job(1, (B, C, ME))
        record.nacks = 1
        self.receive_jobs(B, REPLJOB, record, mflags=mflags)
        return self.job(record.id)

    def nacked(self) -> None:
        """C makes a NACK known."""
        message = JobSignal(bustypes.QUEUED, peer_job(1, (B, C, ME)).id)
        message.mflags = INCR_NACKS
        self.receive(C, message)

    def test_copy_first(self) -> None:
        """The message that it overtook counts no second time."""
        held = self.arrive()
        self.nacked()
        self.assertEqual(1, held.nacks)
        self.nacked()
        self.assertEqual(2, held.nacks)

    def test_message_first(self) -> None:
        """A message that came before the job is not awaited any more: the next one counts."""
        self.nacked()
        held = self.arrive()
        self.nacked()
        self.assertEqual(2, held.nacks)

    def test_message_long_before(self) -> None:
        """One that came long before was about something else."""
        self.nacked()
        self.pass_ms(LATE_MS + 1)
        held = self.arrive()
        self.nacked()
        self.assertEqual(1, held.nacks)

    def test_made_again(self) -> None:
        """A node that becomes a holder later awaits nothing: the others did not know it then."""
        held = self.arrive(AGAIN)
        self.nacked()
        self.assertEqual(2, held.nacks)


class ForgottenTests(PeerCase):
    """A job that a client deleted here, while B and C have it still."""

    def message(self, why: int) -> None:
        """B makes a count known."""
        message = JobSignal(bustypes.QUEUED, peer_job(1, (B, C, ME)).id)
        message.mflags = why
        self.receive(B, message)

    def come_back(self, nacks: int, deliveries: int) -> Job:
        """C gives the job, with these counts."""
        record = peer_job(1, (B, C, ME))
        record.nacks, record.deliveries = nacks, deliveries
        self.receive_jobs(C, YOURJOBS, record)
        return self.job(record.id)

    def test_overtaken(self) -> None:
        """The job overtakes the message about its last NACK, which counts no second time; the next
        one does."""
        self.message(INCR_DELIV)
        held = self.come_back(1, 1)
        self.message(INCR_NACKS)
        self.assertEqual((1, 1), (held.nacks, held.deliveries))
        self.message(INCR_NACKS)
        self.message(INCR_DELIV)
        self.assertEqual((2, 2), (held.nacks, held.deliveries))

    def test_older_counts(self) -> None:
        """What was counted long before is not under way any more."""
        self.message(INCR_DELIV)
        held = self.come_back(7, 5)
        for _ in range(3):
            self.message(INCR_NACKS)
            self.message(INCR_DELIV)
        self.assertEqual((9, 7), (held.nacks, held.deliveries))

    def test_no_holder(self) -> None:
        """A node of which the others do not know gets no messages, so it awaits none."""
        held = self.come_back(1, 1)
        self.message(INCR_NACKS)
        self.assertEqual(2, held.nacks)

    def test_long_before(self) -> None:
        """A message that came long before says nothing about now."""
        self.message(INCR_DELIV)
        self.pass_ms(LATE_MS + 1)
        held = self.come_back(1, 1)
        self.message(INCR_NACKS)
        self.assertEqual(2, held.nacks)


class EarlyCountsTests(SynchronousTestCase):
    """What is remembered."""

    def test_kinds(self) -> None:
        """NACKs and additional deliveries are told apart."""
        counts = EarlyCounts(Turn())
        counts.came(_JOB, 1, 0)
        self.assertEqual(INCR_DELIV, counts.uncounted(_JOB, INCR_DELIV))
        self.assertEqual(0, counts.uncounted(_JOB, INCR_NACKS))
        self.assertEqual(INCR_NACKS, counts.uncounted(_JOB, INCR_NACKS))

    def test_several(self) -> None:
        """Two counts that came early are awaited twice."""
        counts = EarlyCounts(Turn())
        counts.came(_JOB, 1, 0)
        counts.came(_JOB, 1, 1)
        found = [counts.uncounted(_JOB, INCR_NACKS) for _ in range(3)]
        self.assertEqual([0, 0, INCR_NACKS], found)
        self.assertEqual(0, counts.uncounted(_JOB, INCR_DELIV))

    def test_unknown_bounded(self) -> None:
        """So are messages about unknown jobs, of which a stranger may send many."""
        counts = EarlyCounts(Turn())
        for number in range(JOBS_MAX + 1):
            counts.unknown(b"%d" % number, INCR_NACKS)
        for number, uncounted in ((0, 0), (1, INCR_NACKS)):
            counts.arrived(b"%d" % number, 1, 0)
            self.assertEqual(uncounted, counts.uncounted(b"%d" % number, INCR_NACKS))

    def test_bounded(self) -> None:
        """The oldest are forgotten when there are very many."""
        counts = EarlyCounts(Turn())
        for number in range(JOBS_MAX + 1):
            counts.came(b"%d" % number, 1, 0)
        self.assertEqual(INCR_NACKS, counts.uncounted(b"0", INCR_NACKS))
        self.assertEqual(0, counts.uncounted(b"1", INCR_NACKS))
