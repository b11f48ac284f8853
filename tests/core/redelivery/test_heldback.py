"""Jobs that are held back where several nodes have them."""

from __future__ import annotations

from disque_tx.core.delivery.holders import wins
from disque_tx.core.jobs.job import Job
from disque_tx.messages.bus import INCR_DELIV, INCR_NACKS
from disque_tx.messages.bustypes import QUEUED, REPLJOB, SETACK, WILLQUEUE, WORKING, YOURJOBS
from disque_tx.messages.records import ACKED, ACTIVE
from tests.core.bench import ME, copied
from tests.core.peerbench import B, PeerCase, peer_job

#: A node that loses against this one, of the IDs in these tests.
LOSER = b"0" * 40


class HolderTests(PeerCase):
    """Several nodes hold the job."""

    def held_back(self, delay_ms: int = 60_000, **options: int) -> Job:
        """A job with a copy on B that this node holds back."""
        job = self.replicated(B, **{"retry_s": 10, **options})
        self.get(b"q")
        self.assertEqual(1, self.node.enqueue([job.id], True, delay_ms))
        return job

    def test_begin(self) -> None:
        """Other holders count the NACK at once, and take the job out of their queues."""
        self.held_back()
        queued, working = self.sent_to(B)
        self.assertEqual((QUEUED, INCR_NACKS), (queued.type, queued.mflags))
        self.assertEqual(WORKING, working.type)

    def test_at_once(self) -> None:
        """A job that comes back at once is one message: that it is queued here, and counted."""
        self.node.policies.set(b"q", b"max-deliveries", b"9")
        self.held_back(0)
        sent = [(message.type, message.mflags) for message in self.sent_to(B)]
        self.assertEqual([(QUEUED, INCR_NACKS)], sent)

    def test_others_wait(self) -> None:
        """Originals, too, queue a job after RETRY unless WORKING comes before: at 80 % of it."""
        self.held_back(25_000)
        self.clear_sent()
        names = []
        for _ in range(25):
            self.pass_ms(1_000)
            names.append(self.sent_names(B))
        times = [at for at, sent in enumerate(names, 1) if "WORKING" in sent]
        self.assertEqual([8, 16, 24], times)
        self.assertIn("WILLQUEUE", names[24])

    def test_short_retry(self) -> None:
        """With RETRY 1, too, other holders are notified before their timers can end."""
        self.held_back(5_000, retry_s=1)
        self.clear_sent()
        gaps, last = [], 0
        for at in range(20, 4_500, 20):
            self.pass_ms(20)
            if "WORKING" in self.sent_names(B):
                gaps.append(at - last)
                last = at
        self.assertTrue(gaps and max(gaps) <= 520, gaps)

    def test_due(self) -> None:
        """At the end the other holders learn that the job is queued here; nothing is counted."""
        self.held_back(1_000)
        self.clear_sent()
        self.pass_ms(1_000)
        queued = [m for m in self.sent_to(B) if m.type == QUEUED]
        self.assertEqual([0], [message.mflags for message in queued])

    def test_willqueue(self) -> None:
        """A holder that missed WORKING and is about to queue the job is held back in time."""
        job = self.held_back()
        self.clear_sent()
        self.receive_signal(B, WILLQUEUE, job.id)
        self.assertEqual(WORKING, self.sent_signal(B).type)

    def test_gives_way(self) -> None:
        """If two nodes hold a job back one of them gives way: there is one delivery."""
        job = self.held_back()
        self.assertEqual(True, wins(B, ME, job.id))
        self.receive_signal(B, WORKING, job.id)
        self.assertEqual((False, ACTIVE), (job.backoff, job.state))
        self.assertEqual(self.now_ms + 10_000, job.qtime_ms)

    def test_goes_on(self) -> None:
        """The other of the two goes on."""
        self.join(LOSER)
        job = self.held_back()
        self.assertEqual(False, wins(LOSER, ME, job.id))
        self.receive_signal(LOSER, WORKING, job.id)
        self.assertEqual((True, self.now_ms + 60_000), (job.backoff, job.qtime_ms))

    def test_queued_elsewhere(self) -> None:
        """A holder whose timer ended before it got WORKING takes the job out of its queue again."""
        job = self.held_back()
        self.clear_sent()
        self.receive_signal(B, QUEUED, job.id, mflags=INCR_DELIV)
        self.assertEqual((True, 1), (job.backoff, job.deliveries))
        self.assertEqual(["WORKING"], self.sent_names(B))

    def test_acknowledged_elsewhere(self) -> None:
        """A job that another consumer has done does not come back."""
        job = self.held_back(1_000)
        self.receive_signal(B, SETACK, job.id, aux=1)
        self.assertEqual((ACKED, False), (job.state, job.backoff))
        self.pass_ms(1_000)
        self.assertEqual(0, self.length())

    def test_given(self) -> None:
        """What another node gives of a job that is held back here does not end the wait."""
        job = self.held_back()
        self.receive_jobs(B, YOURJOBS, copied(job))
        self.assertEqual((ACTIVE, True), (job.state, job.backoff))

    def test_holder_died(self) -> None:
        """If the node that holds a job back dies the others queue it after RETRY: none is lost."""
        record = peer_job(1, (B, ME), retry_s=10)
        self.receive_jobs(B, REPLJOB, record)
        self.receive_signal(B, QUEUED, record.id, mflags=INCR_NACKS)
        self.receive_signal(B, WORKING, record.id)
        self.pass_ms(10_000)
        self.assertEqual([record.id], self.get(b"q"))
