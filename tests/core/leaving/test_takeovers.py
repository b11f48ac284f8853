"""What a node answers to one that leaves, or was started again, and what it takes over."""

from __future__ import annotations

from disque_tx.core.jobs.job import DELAYED, NOWHERE, Job
from disque_tx.messages.bus import JobSignal
from disque_tx.messages.bustypes import GOTJOB, REPLJOB, SETACK
from disque_tx.messages.handover import (
    ANSWER,
    BACKOFF,
    DELAY,
    FULL,
    HELD,
    KEEP,
    NOT_HELD,
    READY,
    RELEASE,
    RESTARTED,
    HandoverEntry,
    HandoverMessage,
)
from disque_tx.messages.records import BCAST_QUEUED, DELIVERED
from tests.core.bench import ME
from tests.core.peerbench import B, C, PeerCase, peer_job


class TakeoverCase(PeerCase):
    """A node with copies of B's jobs, of which C has none."""

    def copy(self, number: int, queue: bytes = b"q", delay_s: int = 0, once: bool = False) -> Job:
        """A copy of a job of B, for which nobody but B is to do anything before its RETRY."""
        sent = peer_job(number, (B, ME), 60, delay_s, queue, once)
        self.receive_jobs(B, REPLJOB, sent)
        self.clear_sent()
        return self.job(sent.id)

    def asked(self, *entries: HandoverEntry, number: int = 7, mflags: int = 0) -> list[object]:
        """What B gets when it asks about these jobs."""
        self.receive(B, HandoverMessage(number, list(entries), mflags))
        return [*self.sent_to(B)]

    def answers(self, *entries: HandoverEntry, number: int = 7) -> list[tuple[bytes, int]]:
        """The answer to a question about these jobs."""
        sent = self.asked(*entries, number=number)
        (message,) = [one for one in sent if isinstance(one, HandoverMessage)]
        self.assertEqual((number, ANSWER), (message.number, message.mflags))
        return [(one.job_id, int(one.what)) for one in message.entries]


class AnswerTests(TakeoverCase):
    """Which of the jobs are here."""

    def test_held(self) -> None:
        """Each job is answered in turn: one that is not here, one that waits for its RETRY, one
        that is queued, and one that a client has."""
        kept, queued, taken = self.copy(1), self.copy(2), self.copy(3, b"t")
        self.node.enqueue([queued.id, taken.id], False)
        self.get(b"t")
        self.clear_sent()
        entries = [HandoverEntry(one, KEEP) for one in (b"x" * 40, kept.id, queued.id, taken.id)]
        expected = [(b"x" * 40, NOT_HELD), (kept.id, HELD), (queued.id, READY), (taken.id, READY)]
        self.assertEqual(expected, self.answers(*entries))

    def test_done(self) -> None:
        """A job that is done is answered as such, and not among those that are held."""
        job = self.copy(1)
        self.node.acknowledge([job.id])
        self.clear_sent()
        sent = self.asked(HandoverEntry(job.id, KEEP))
        signals = [one for one in sent if isinstance(one, JobSignal)]
        self.assertEqual([(SETACK, job.id)], [(one.type, one.job_id) for one in signals])
        answers = [one.entries for one in sent if isinstance(one, HandoverMessage)]
        self.assertEqual([[]], answers)

    def test_short_of_memory(self) -> None:
        """A node that is short of memory says so."""
        self.node.memory.limit = 100
        self.node.memory.add(100)
        (message,) = self.asked(HandoverEntry(b"x" * 40, KEEP))
        assert isinstance(message, HandoverMessage)
        self.assertEqual(ANSWER | FULL, message.mflags)

    def test_leaving(self) -> None:
        """A node that leaves as well takes nothing over, and does not answer."""
        job = self.copy(1)
        self.leave()
        self.clear_sent()
        self.assertEqual([], self.asked(HandoverEntry(job.id, KEEP)))

    def test_made(self) -> None:
        """A job whose client still waits for its copies is not held: it may never be made."""
        self.begin_add(3)
        (wait,) = self.node.waiters.copies.values()
        self.clear_sent()
        self.assertEqual([(wait.job.id, NOT_HELD)], self.answers(HandoverEntry(wait.job.id, KEEP)))

    def test_started_again(self) -> None:
        """A node that was started again, and asks about a copy of its own, is a holder of it, also
        after a restart of this one; a leaving one is not for asking."""
        sent = peer_job(1, (C, ME))
        self.receive_jobs(C, REPLJOB, sent)
        self.clear_sent()
        job = self.job(sent.id)
        self.assertEqual([(job.id, HELD)], self.answers(HandoverEntry(job.id, KEEP)))
        self.assertNotIn(B, job.nodes)
        for _ in range(2):
            self.answers(HandoverEntry(job.id, KEEP), number=RESTARTED)
            self.assertEqual(1, job.nodes.count(B))
        self.assertIn(B, self.log.records[job.id].nodes)


class WaitTests(TakeoverCase):
    """The rest of a DELAY or of a backoff goes on here."""

    def test_delay(self) -> None:
        """A job waits for what is left of its DELAY, and is queued then."""
        job = self.copy(1, delay_s=50)
        self.assertEqual([(job.id, READY)], self.answers(HandoverEntry(job.id, DELAY, 5_000)))
        self.assertEqual((DELAYED, self.now_ms + 5_000), (job.place, job.qtime_ms))
        self.assertFalse(job.flags & BCAST_QUEUED)
        self.pass_ms(4_999)
        self.assertEqual(0, self.length())
        self.pass_ms(1)
        self.assertEqual(1, self.length())

    def test_over(self) -> None:
        """A DELAY that is over by now ends at once, not never."""
        job = self.copy(1, delay_s=50)
        self.answers(HandoverEntry(job.id, DELAY, 0))
        self.assertEqual(self.now_ms + 1, job.qtime_ms)

    def test_backoff(self) -> None:
        """A job is held back for what is left of its backoff."""
        job = self.copy(1)
        self.assertEqual([(job.id, READY)], self.answers(HandoverEntry(job.id, BACKOFF, 5_000)))
        self.pass_ms(4_999)
        self.assertEqual(0, self.length())
        self.pass_ms(1)
        self.assertEqual(1, self.length())

    def test_more_is_known(self) -> None:
        """A job that is queued here, waits already, or is only asked about, stays as it is."""
        queued, waiting, kept = self.copy(1), self.copy(2), self.copy(3)
        self.node.enqueue([queued.id], False)
        self.answers(HandoverEntry(waiting.id, DELAY, 9_000))
        due_ms = [int(job.qtime_ms) for job in (waiting, kept)]
        self.answers(
            HandoverEntry(queued.id, DELAY, 1_000),
            HandoverEntry(waiting.id, BACKOFF, 1_000),
            HandoverEntry(kept.id, KEEP, 1_000),
        )
        self.assertEqual(1, self.length())
        self.assertEqual(due_ms, [int(job.qtime_ms) for job in (waiting, kept)])
        self.assertEqual(NOWHERE, kept.place)

    def test_once(self) -> None:
        """A job with RETRY 0 that waits is recorded as such; one that was delivered does not come
        again, whatever the other node says."""
        job, gone = self.copy(1, once=True), self.copy(2, once=True)
        gone.flags |= DELIVERED
        self.log.lines.clear()
        self.answers(HandoverEntry(job.id, DELAY, 5_000), HandoverEntry(gone.id, DELAY, 5_000))
        self.assertEqual((DELAYED, NOWHERE), (job.place, gone.place))
        self.assertEqual([("load", job.id)], self.log.lines)
        retried = self.copy(3)
        self.log.lines.clear()
        self.answers(HandoverEntry(retried.id, DELAY, 5_000))
        self.assertEqual([], self.log.lines)


class ReleaseTests(TakeoverCase):
    """The other node has dropped its copies."""

    def release(self, *job_ids: bytes) -> None:
        """B says so."""
        entries = [HandoverEntry(job_id, KEEP) for job_id in job_ids]
        self.asked(*entries, mflags=RELEASE)

    def test_holder(self) -> None:
        """It is no holder any more, and jobs that are not known here are no error."""
        job = self.copy(1)
        self.release(b"x" * 40, job.id)
        self.assertNotIn(B, job.nodes)

    def test_done(self) -> None:
        """Of a job that is done, its word counts as the end of its copy: nothing is left to wait
        for."""
        job = self.copy(1)
        self.node.acknowledge([job.id])
        self.clear_sent()
        self.release(job.id)
        self.assertIsNone(self.node.jobs.get(job.id))

    def test_made(self) -> None:
        """A job whose client waits for copies goes on to wait."""
        client = self.begin_add(3)
        (wait,) = self.node.waiters.copies.values()
        self.clear_sent()
        self.release(wait.job.id)
        for peer in (B, C):
            self.receive_signal(peer, GOTJOB, wait.job.id)
        self.assertEqual(wait.job.id, self.status(client))
