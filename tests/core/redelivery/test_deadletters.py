"""Jobs that were delivered too often become dead letters, and are never lost on the way."""

from __future__ import annotations

from disque_tx.core.jobs.job import Job
from disque_tx.core.queues.queues import PAUSE_IN
from disque_tx.core.redelivery.replacements import GIVE_UP_MS
from disque_tx.messages.bustypes import GOTJOB, REPLJOB, SETACK, WILLQUEUE, YOURJOBS
from disque_tx.messages.records import ACKED, ACTIVE, WAIT_REPL
from disque_tx.worker.settling.deadletters import Letter
from tests.core.bench import ME, NodeCase
from tests.core.peerbench import B, PeerCase, peer_job
from tests.core.recordedevents import RecordedEvents

DEAD = b"dead:q"


class Settings:
    """Sets the policy of the queue of the tests."""

    def set_policy(self, case: NodeCase, pattern: bytes = b"q", **values: str) -> None:
        for name, value in values.items():
            case.node.policies.set(pattern, name.replace("_", "-").encode(), value.encode())


class DeadLetterTests(NodeCase, Settings):
    """One node."""

    def setUp(self) -> None:
        super().setUp()
        self.events = RecordedEvents()
        self.node.outbox.events = self.events

    def returned(self, times: int, reason: bytes = b"", **options: int) -> bytes:
        """A job that was delivered and returned so often."""
        job_id = self.add(**{"retry_s": 10, "ttl_s": 3_600, **options})  # type: ignore[arg-type]
        for _ in range(times):
            self.assertEqual([job_id], self.get(b"q"))
            self.events.take()
            self.assertEqual(1, self.node.enqueue([job_id], True, -1, reason))
        return job_id

    def letter(self, queue: bytes = DEAD) -> Letter:
        """The only letter in the queue."""
        (job_id,) = self.get(queue, count=5)
        return Letter.decoded(self.job(job_id).body)

    def test_nacks(self) -> None:
        """A job that fails again and again stops to occupy workers, and says why."""
        self.set_policy(self, max_deliveries="3", dead_ttl="1000")
        job_id = self.returned(3, b"no route")
        self.assertIsNone(self.node.jobs.get(job_id))
        (found,) = self.node.queues.obtain(DEAD, 0).jobs.oldest(2)
        self.assertEqual((1_000, 100), (found.life_ms // 1000, found.retry_s))
        letter = self.letter()
        self.assertEqual((job_id.decode(), "no route", 2), (letter.id, letter.reason, letter.nacks))
        self.assertEqual((10, 3_600, 1), (letter.retry_s, letter.ttl_s, letter.replicate))
        self.assertEqual(1, self.node.totals.dead_letters)
        self.assertIn(("delete", job_id), self.log.lines)

    def test_short_life(self) -> None:
        """Letters that live for a few seconds only are delivered again like any other: RETRY 0
        would mean that they are delivered once at most."""
        for ttl_s, retry_s in ((1, 1), (9, 1), (20, 2)):
            self.set_policy(self, max_deliveries="1", dead_ttl=str(ttl_s))
            self.returned(1)
            (letter_id,) = self.get(DEAD)
            self.assertEqual(retry_s, self.job(letter_id).retry_s)

    def test_reason_of_an_earlier_return(self) -> None:
        """A return without a reason does not get the reason of the one before."""
        self.set_policy(self, max_deliveries="2")
        job_id = self.returned(1, b"no route")
        self.assertEqual([job_id], self.get(b"q"))
        self.node.enqueue([job_id], True)
        self.assertEqual("delivered 2 times", self.letter().reason)

    def test_events(self) -> None:
        """The event log shows where the job ended, and that the letter was added for it."""
        self.set_policy(self, max_deliveries="1")
        self.returned(1, b"no route")
        expected = [
            ("nacked", "", 0, 0, b"no route"),
            ("added", "dead-letter", 0, -1),
            ("queued", "", 0, -1),
            ("dead", "", 0, -1, b"no route"),
        ]
        self.assertEqual(expected, self.events.take())

    def test_timeouts(self) -> None:
        """A job that kills its consumers each time ends in the same way."""
        self.set_policy(self, max_deliveries="2")
        job_id = self.returned(0)
        for _ in range(2):
            self.assertEqual([job_id], self.get(b"q"))
            self.pass_ms(10_000)
        letter = self.letter()
        self.assertEqual("delivered 2 times", letter.reason)
        self.assertEqual((0, 1), (letter.nacks, letter.additional_deliveries))

    def test_delay_of_nack(self) -> None:
        """A NACK with DELAY is a return like any other."""
        self.set_policy(self, max_deliveries="1")
        job_id = self.returned(0)
        self.get(b"q")
        self.node.enqueue([job_id], True, 5_000)
        self.assertEqual("delivered 1 time", self.letter().reason)

    def test_limit_lowered(self) -> None:
        """A limit that was lowered during a backoff holds at its end."""
        self.set_policy(self, retry_delay="5")
        self.returned(1)
        self.set_policy(self, max_deliveries="1")
        self.pass_ms(5_000)
        self.assertEqual((0, 1), (self.length(), self.length(DEAD)))

    def test_enqueue(self) -> None:
        """An operator may have a job delivered once more."""
        self.set_policy(self, max_deliveries="1")
        job_id = self.returned(0)
        self.get(b"q")
        self.assertEqual(1, self.node.enqueue([job_id], False))
        self.assertEqual([job_id], self.get(b"q"))

    def test_no_dead_queue(self) -> None:
        """Without a queue for letters the job ends, which is counted and logged."""
        self.set_policy(self, max_deliveries="1", dead_queue="")
        job_id = self.returned(1, b"why")
        self.assertEqual((None, 1), (self.node.jobs.get(job_id), self.node.totals.letters_dropped))
        self.assertEqual(("dropped", "", 0, -1, b"why"), self.events.take()[-1])

    def test_at_most_once(self) -> None:
        """A job with RETRY 0 never comes back, so it never becomes a letter."""
        self.set_policy(self, max_deliveries="1")
        job_id = self.add(retry_s=0, replicate=1)
        self.get(b"q")
        self.assertEqual(0, self.node.enqueue([job_id], True))
        self.assertEqual((0, ACTIVE), (self.length(DEAD), self.job(job_id).state))

    def test_own_queue(self) -> None:
        """A queue that is its own dead queue does not turn a job into letters forever."""
        self.set_policy(self, max_deliveries="1", dead_queue="q")
        job_id = self.returned(3)
        self.assertEqual([job_id], self.get(b"q"))

    def test_letters_of_letters(self) -> None:
        """With a policy for all queues a letter that is returned stays a letter, and waits."""
        self.set_policy(self, b"*", max_deliveries="1", retry_delay="2", retry_jitter="0")
        self.returned(1)
        (letter_id,) = self.get(DEAD)
        self.node.enqueue([letter_id], True)
        self.pass_ms(2_000)
        self.assertEqual([letter_id], self.get(DEAD))
        self.assertEqual(1, len(self.node.jobs))

    def test_paused_dead_queue(self) -> None:
        """While the dead queue takes nothing the job waits, and is not delivered either."""
        self.set_policy(self, max_deliveries="1")
        self.node.pause(DEAD, PAUSE_IN)
        self.returned(1)
        self.pass_ms(GIVE_UP_MS)
        self.assertEqual((0, 0, 1), (self.length(), self.length(DEAD), len(self.node.jobs)))
        self.node.pause(DEAD, 0)
        self.pass_ms(GIVE_UP_MS)
        self.assertEqual(0, self.letter().nacks)
        self.assertEqual(0, self.length())


class CopiesTests(PeerCase, Settings):
    """Several nodes."""

    def dying(self) -> tuple[Job, Job]:
        """A job that was returned for the last time, and its letter, which waits for copies."""
        self.set_policy(self, max_deliveries="1")
        job = self.replicated(B, retry_s=60)
        self.get(b"q")
        self.clear_sent()
        self.assertEqual(1, self.node.enqueue([job.id], True))
        (wait,) = self.node.waiters.copies.values()
        return job, wait.job

    def test_copies_first(self) -> None:
        """The job ends when its letter has as many copies as it has, and not before."""
        job, letter = self.dying()
        self.assertEqual((ACTIVE, True, 2), (job.state, job.backoff, letter.repl))
        self.assertIn("WORKING", self.sent_names(B))
        holder = next(node for node in letter.nodes if node in self.peers)
        self.receive_signal(holder, GOTJOB, letter.id)
        self.assertEqual((ACKED, 1), (job.state, self.length(DEAD)))
        self.assertEqual(1, self.node.totals.dead_letters)
        self.assertIn("SETACK", self.sent_names(B))

    def test_no_copies(self) -> None:
        """If no node confirms a copy the letter is taken back, the job stays, and it is tried
        again until there is one."""
        job, letter = self.dying()
        self.pass_slowly(GIVE_UP_MS + 20)
        self.assertIsNone(self.node.jobs.get(letter.id))
        self.assertEqual((ACTIVE, True, 0), (job.state, job.backoff, self.length()))
        self.pass_slowly(GIVE_UP_MS)
        (wait,) = self.node.waiters.copies.values()
        self.receive_signal(wait.job.nodes[1], GOTJOB, wait.job.id)
        self.assertEqual((ACKED, 1), (job.state, self.length(DEAD)))

    def test_giver_counts_less(self) -> None:
        """A node that was away gives a job that came back as often as it may while it was away: it
        becomes a dead letter here, and is not delivered once more."""
        self.set_policy(self, max_deliveries="3", dead_ttl="1000")
        mine = peer_job(1, (B, ME))
        mine.deliveries = 3
        self.receive_jobs(B, REPLJOB, mine)
        theirs = peer_job(1, (B, ME))
        theirs.deliveries = 1
        self.receive_jobs(B, YOURJOBS, theirs)
        self.assertEqual(0, self.length())
        self.pass_slowly(20)
        (wait,) = self.node.waiters.copies.values()
        self.assertEqual(DEAD, wait.job.queue)

    def test_giver_counts_as_much(self) -> None:
        """A job that somebody queued by hand, whatever the limit, is delivered wherever it goes; so
        is one that may come back once more."""
        self.set_policy(self, max_deliveries="3")
        for number, deliveries, given in ((1, 3, 3), (2, 2, 1)):
            job = peer_job(number, (B, ME))
            job.deliveries = deliveries
            self.receive_jobs(B, REPLJOB, job)
            again = peer_job(number, (B, ME))
            again.deliveries = given
            self.receive_jobs(B, YOURJOBS, again)
            self.assertEqual([job.id], self.get(b"q"))

    def test_late(self) -> None:
        """A letter that is given up in the turn in which copies of it were to be asked for again
        is not asked for any more."""
        job, letter = self.dying()
        letter.qtime_ms = job.qtime_ms + 1
        self.node.jobs.reschedule(letter)
        self.pass_ms(GIVE_UP_MS + 20)
        self.assertIsNone(self.node.jobs.get(letter.id))
        self.assertEqual((ACTIVE, True), (job.state, job.backoff))

    def test_too_few_nodes(self) -> None:
        """While the cluster is too small for the copies the job waits for more nodes."""
        job = self.replicated(B, retry_s=60)
        self.set_policy(self, max_deliveries="1")
        self.get(b"q")
        self.node.membership.reachable = []
        self.node.enqueue([job.id], True)
        self.assertEqual((ACTIVE, True), (job.state, job.backoff))
        self.assertEqual({}, self.node.waiters.copies)

    def test_one_letter(self) -> None:
        """Other holders, whose timers run, too, are kept from writing a letter of their own."""
        job, _ = self.dying()
        self.clear_sent()
        self.receive_signal(B, WILLQUEUE, job.id)
        self.assertEqual(["WORKING"], self.sent_names(B))

    def test_done_meanwhile(self) -> None:
        """If a consumer acknowledges the job after all, there is no letter about it."""
        for by_peer in (False, True):
            job, letter = self.dying()
            if by_peer:
                self.receive_signal(B, SETACK, job.id, aux=2)
            else:
                self.node.acknowledge([job.id])
            holder = next(node for node in letter.nodes if node in self.peers)
            self.receive_signal(holder, GOTJOB, letter.id)
            self.assertEqual((None, 0), (self.node.jobs.get(letter.id), self.length(DEAD)))
            self.assertIn("DELJOB", self.sent_names(holder))

    def test_expired_meanwhile(self) -> None:
        """A job whose life ends while its letter is made was not done: the letter stays."""
        job, letter = self.dying()
        self.assertEqual(WAIT_REPL, letter.state)
        job.expire_ms = self.now_ms + 100
        self.node.jobs.reschedule(job)
        self.pass_ms(200)
        holder = next(node for node in letter.nodes if node in self.peers)
        self.receive_signal(holder, GOTJOB, letter.id)
        self.assertEqual((None, 1), (self.node.jobs.get(job.id), self.length(DEAD)))

    def test_flushed_meanwhile(self) -> None:
        """FLUSHALL in the middle leaves nothing behind."""
        self.dying()
        self.node.flush_all()
        self.clear_sent()
        self.assertEqual(({}, []), (self.node.waiters.watched, self.node.waiters.settled))
