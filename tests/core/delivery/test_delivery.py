"""How jobs are queued again, put back, and postponed (client protocol, sections 13 and 17)."""

from __future__ import annotations

from disque_tx.core.queues.queues import PAUSE_IN
from disque_tx.errors import CommandError
from disque_tx.messages.records import ACKED, ACTIVE, QUEUED
from tests.core.bench import NodeCase
from tests.core.peerbench import B, PeerCase


class RequeueTests(NodeCase):
    """The retry timer of jobs with RETRY > 0 (section 13.3)."""

    def test_comes_back(self) -> None:
        """A job that was not acknowledged is delivered again after RETRY, and counted."""
        job_id = self.add(retry_s=10)
        self.assertEqual([job_id], self.get(b"q"))
        self.pass_ms(9_980)
        self.assertEqual([], self.get(b"q"))
        self.pass_ms(20)
        self.assertEqual([job_id], self.get(b"q"))
        self.assertEqual((1, 0), (self.job(job_id).deliveries, self.job(job_id).nacks))

    def test_shortest_retry(self) -> None:
        """RETRY 1 is a RETRY like any other."""
        job_id = self.add(retry_s=1)
        self.assertEqual([job_id], self.get(b"q"))
        self.pass_ms(1_000)
        self.assertEqual([job_id], self.get(b"q"))

    def test_clock_starts_at_queueing(self) -> None:
        """Time spent in the queue counts, so a job that was delivered late comes back soon."""
        job_id = self.add(retry_s=10)
        self.pass_ms(7_000)
        self.get(b"q")
        self.pass_ms(3_000)
        self.assertEqual([job_id], self.get(b"q"))

    def test_still_queued(self) -> None:
        """For a job that is still in the queue the timer starts again; nothing is counted."""
        job_id = self.add(retry_s=10)
        self.pass_ms(10_000)
        self.pass_ms(5_000)
        self.assertEqual(0, self.job(job_id).deliveries)
        self.get(b"q")
        self.pass_ms(5_000)
        self.assertEqual([job_id], self.get(b"q"))

    def test_jitter(self) -> None:
        """Requeue times lie within a quarter of a second around RETRY, so that nodes differ."""
        for chance, ms in ((0.0, 9_750), (0.999, 10_249)):
            self.chance = chance
            job_id = self.add(retry_s=10)
            self.assertEqual(self.now_ms + ms, self.job(job_id).qtime_ms)

    def test_paused_in(self) -> None:
        """In a queue with paused input the job is postponed by RETRY, not queued."""
        job_id = self.add(retry_s=10)
        self.get(b"q")
        self.node.pause(b"q", PAUSE_IN)
        self.pass_ms(10_000)
        self.assertEqual(0, self.length())
        self.node.pause(b"q", 0)
        self.pass_ms(9_000)
        self.assertEqual(0, self.length())
        self.pass_ms(1_000)
        self.assertEqual([job_id], self.get(b"q"))

    def test_back_to_its_place(self) -> None:
        """A job that comes back is placed before newer ones (section 13.2)."""
        old = self.add(retry_s=10)
        self.get(b"q")
        self.pass_ms(5_000)
        new = self.add(retry_s=10)
        self.pass_ms(5_000)
        self.assertEqual([old, new], self.get(b"q", count=2))

    def test_long_retry(self) -> None:
        """A RETRY of a hundred years does not overflow to a second."""
        job_id = self.add(retry_s=4_294_967_295)
        self.get(b"q")
        self.pass_ms(3_600_000)
        self.assertEqual(ACTIVE, self.job(job_id).state)

    def test_at_most_once(self) -> None:
        """RETRY 0: whatever happens after the delivery, there is no second one."""
        job_id = self.add(retry_s=0)
        self.assertEqual([job_id], self.get(b"q"))
        self.assertEqual(0, self.node.enqueue([job_id], False))
        self.assertEqual(0, self.node.enqueue([job_id], True))
        self.assertEqual(0, self.node.working(job_id))
        self.pass_ms(3_600_000)
        self.assertEqual([], self.get(b"q"))
        self.assertEqual(0, self.job(job_id).nacks)

    def test_counters_end(self) -> None:
        """Counters stop at 65535, the largest value that the record can hold."""
        job_id = self.add(retry_s=10)
        self.job(job_id).nacks = self.job(job_id).deliveries = 65_535
        for nack in (True, False):
            self.get(b"q")
            self.assertEqual(1, self.node.enqueue([job_id], nack))
        self.assertEqual((65_535, 65_535), (self.job(job_id).nacks, self.job(job_id).deliveries))


class DelayTests(NodeCase):
    """DELAY (section 13.4)."""

    def test_delay(self) -> None:
        """The job is queued when its delay ends, not earlier, and the first queueing is not
        counted."""
        job_id = self.add(delay_s=10, retry_s=5)
        self.pass_ms(9_999)
        self.assertEqual([], self.get(b"q"))
        self.pass_ms(1)
        self.assertEqual([job_id], self.get(b"q"))
        self.assertEqual(0, self.job(job_id).deliveries)

    def test_retry_0_in_a_paused_queue(self) -> None:
        """Such a job enters a queue with paused input, because otherwise it would be lost."""
        job_id = self.add(delay_s=10, retry_s=0)
        self.node.pause(b"q", PAUSE_IN)
        self.pass_ms(10_000)
        self.assertEqual([job_id], self.get(b"q"))

    def test_retry_in_a_paused_queue(self) -> None:
        """A job with RETRY waits for another RETRY instead."""
        job_id = self.add(delay_s=10, retry_s=5)
        self.node.pause(b"q", PAUSE_IN)
        self.pass_ms(10_000)
        self.assertEqual(0, self.length())
        self.node.pause(b"q", 0)
        self.pass_ms(5_000)
        self.assertEqual([job_id], self.get(b"q"))

    def test_queued_early(self) -> None:
        """ENQUEUE and NACK end a delay; only NACK counts, and nothing happens when the delay would
        end."""
        for nack, nacks in ((False, 0), (True, 1)):
            job_id = self.add(delay_s=10, retry_s=100)
            self.assertEqual(1, self.node.enqueue([job_id], nack))
            job = self.job(job_id)
            self.assertEqual((nacks, 0), (job.nacks, job.deliveries))
            self.assertEqual([job_id], self.get(b"q"))
            self.pass_ms(10_000)
            self.assertEqual([], self.get(b"q"))

    def test_retry_0_queued_early(self) -> None:
        """A delayed job with RETRY 0 can be queued early once."""
        job_id = self.add(delay_s=10, retry_s=0)
        self.assertEqual(1, self.node.enqueue([job_id], False))
        self.assertEqual([job_id], self.get(b"q"))
        self.assertEqual(0, self.node.enqueue([job_id], False))
        self.pass_ms(10_000)
        self.assertEqual([], self.get(b"q"))


class ExpiryTests(NodeCase):
    """TTL (section 13.5)."""

    def test_gone(self) -> None:
        """When its TTL ends a job is deleted, also from the log, whether queued, delivered or
        delayed."""
        ids = [self.add(ttl_s=10), self.add(b"r", ttl_s=10), self.add(b"s", ttl_s=10, delay_s=9)]
        self.get(b"r")
        self.pass_ms(9_980)
        self.assertEqual(3, len(self.node.jobs))
        self.pass_ms(20)
        self.assertEqual(0, len(self.node.jobs))
        self.assertEqual(0, self.length())
        self.assertEqual({}, self.log.records)
        self.assertEqual(sorted(ids), sorted([i for kind, i in self.log.lines if kind == "delete"]))

    def test_milliseconds(self) -> None:
        """A TTL of one second lasts a second, whatever fraction of a second the clock shows."""
        self.begin(self.now_ms, self.wall_us + 950_000)
        self.add(ttl_s=1)
        self.pass_ms(900)
        self.assertEqual(1, self.length())
        self.pass_ms(100)
        self.assertEqual(0, self.length())

    def test_retry_longer_than_life(self) -> None:
        """A job may expire before it would be queued again."""
        self.add(ttl_s=10, retry_s=20)
        self.get(b"q")
        self.pass_ms(10_000)
        self.assertEqual(0, len(self.node.jobs))

    def test_queue_and_memory(self) -> None:
        """Expired jobs use no memory and no place in the queue."""
        keep = self.add()
        for _ in range(10):
            self.add(ttl_s=5)
        self.pass_ms(5_000)
        self.assertEqual([keep], self.get(b"q", count=20))


class CommandTests(NodeCase):
    """ENQUEUE, NACK, DEQUEUE, WORKING (section 17)."""

    def test_enqueue(self) -> None:
        """A delivered job is queued again, is counted, and its retry timer starts again."""
        job_id = self.add(retry_s=10)
        self.get(b"q")
        self.pass_ms(9_000)
        self.assertEqual(1, self.node.enqueue([job_id], False))
        self.assertEqual((1, 0), (self.job(job_id).deliveries, self.job(job_id).nacks))
        self.get(b"q")
        self.pass_ms(9_000)
        self.assertEqual([], self.get(b"q"))
        self.pass_ms(1_000)
        self.assertEqual([job_id], self.get(b"q"))

    def test_nack(self) -> None:
        """A negatively acknowledged job is queued again and counted as such."""
        job_id = self.add()
        self.get(b"q")
        self.assertEqual(1, self.node.enqueue([job_id], True))
        self.assertEqual((0, 1), (self.job(job_id).deliveries, self.job(job_id).nacks))

    def test_ignored(self) -> None:
        """Unknown and queued jobs do not count, and a job named twice counts once."""
        queued, fetched = self.add(), self.add(b"r")
        self.get(b"r")
        unknown = b"D-aaaaaaaa-" + b"x" * 24 + b"-05a1"
        self.assertEqual(1, self.node.enqueue([queued, unknown, fetched, fetched], False))
        self.assertEqual(0, self.node.enqueue([], True))
        self.assertEqual(0, self.job(queued).deliveries)

    def test_input_pause_is_no_matter(self) -> None:
        """The commands queue jobs even in a queue with paused input."""
        job_id = self.add()
        self.get(b"q")
        self.node.pause(b"q", PAUSE_IN)
        self.assertEqual(1, self.node.enqueue([job_id], True))

    def test_dequeue(self) -> None:
        """A job leaves the queue and comes back when its retry timer fires."""
        job_id = self.add(retry_s=10)
        self.pass_ms(4_000)
        self.assertEqual(1, self.node.dequeue([job_id, job_id]))
        self.assertEqual(ACTIVE, self.job(job_id).state)
        self.assertEqual([], self.get(b"q"))
        self.pass_ms(6_000)
        self.assertEqual([job_id], self.get(b"q"))

    def test_dequeued_retry_0(self) -> None:
        """A job with RETRY 0 that was never delivered can be queued again."""
        job_id = self.add(retry_s=0)
        self.assertEqual(1, self.node.dequeue([job_id]))
        self.pass_ms(3_600_000)
        self.assertEqual([], self.get(b"q"))
        self.assertEqual(1, self.node.enqueue([job_id], False))
        self.assertEqual([job_id], self.get(b"q"))
        self.assertEqual(0, self.node.enqueue([job_id], False))

    def test_working(self) -> None:
        """Each WORKING gives the worker another RETRY, which is also the reply."""
        job_id = self.add(retry_s=10)
        self.get(b"q")
        for _ in range(5):
            self.pass_ms(9_000)
            self.assertEqual(10, self.node.working(job_id))
        self.assertEqual([], self.get(b"q"))
        self.pass_ms(10_000)
        self.assertEqual([job_id], self.get(b"q"))
        self.assertEqual(1, self.job(job_id).deliveries)

    def test_working_on_a_queued_job(self) -> None:
        """A job that was queued again too early is taken out of the queue."""
        job_id = self.add(retry_s=10)
        self.assertEqual(10, self.node.working(job_id))
        self.assertEqual((ACTIVE, 0), (self.job(job_id).state, self.length()))
        self.pass_ms(10_000)
        self.assertEqual([job_id], self.get(b"q"))

    def test_working_on_a_queued_retry_0(self) -> None:
        """It stays in the queue, since no worker can have it."""
        job_id = self.add(retry_s=0)
        self.assertEqual(0, self.node.working(job_id))
        self.assertEqual(QUEUED, self.job(job_id).state)
        self.assertEqual([job_id], self.get(b"q"))

    def test_working_too_late(self) -> None:
        """A job can be postponed until half of its TTL has elapsed, not later."""
        job_id = self.add(ttl_s=100, retry_s=10)
        self.get(b"q")
        self.pass_ms(50_000)
        self.assertEqual(10, self.node.working(job_id))
        self.pass_ms(1)
        error = self.assertRaises(CommandError, self.node.working, job_id)
        self.assertEqual(
            (
                "TOOLATE",
                "Half of job TTL already elapsed, you are no longer allowed to postpone the"
                " next delivery.",
            ),
            (error.code, error.text),
        )

    def test_working_with_another_clock(self) -> None:
        """The limit does not move when the wall clock is set, before or after the job was added."""
        self.add()
        for step_s in (-3_600, 3_600):
            self.begin(self.now_ms, self.wall_us + step_s * 1_000_000)
            job_id = self.add(ttl_s=600, retry_s=10)
            self.begin(self.now_ms, self.wall_us + step_s * 1_000_000)
            self.get(b"q")
            self.pass_ms(299_000)
            self.assertEqual(10, self.node.working(job_id))
            self.pass_ms(2_000)
            error = self.assertRaises(CommandError, self.node.working, job_id)
            self.assertEqual("TOOLATE", error.code)

    def test_working_on_nothing(self) -> None:
        """An unknown job is an error that the worker can distinguish from others."""
        error = self.assertRaises(CommandError, self.node.working, b"D-" + b"x" * 38)
        self.assertEqual("NOJOB Job not known in the context of this node.", error.reply().decode())

    def test_remove(self) -> None:
        """DELJOB ends a job in any state; a job named twice counts once."""
        queued, fetched, delayed = self.add(), self.add(b"r"), self.add(delay_s=10)
        self.get(b"r")
        ids = [queued, fetched, delayed]
        self.assertEqual(3, self.node.delete(ids + ids))
        self.assertEqual((0, 0), (len(self.node.jobs), self.length()))
        self.assertEqual({}, self.log.records)
        self.pass_ms(3_600_000)
        self.assertEqual([], self.get(b"q", b"r"))


class HandedOutTests(PeerCase):
    """Deliveries and commands at unusual moments."""

    def test_expired(self) -> None:
        """An expired job is not delivered, even before it is cleaned up."""
        self.add(replicate=1, ttl_s=1)
        kept = self.add(replicate=1, ttl_s=9)
        self.begin(self.now_ms + 1_000, self.wall_us + 1_000_000)
        self.assertEqual([kept], self.get(b"q", count=5))
        self.assertEqual([kept], list(self.log.records))

    def test_announced_after_working(self) -> None:
        """A postponed requeue is announced to the other holders like every other, so that a holder
        that has the job queued can object."""
        job = self.replicated(B)
        self.get(b"q")
        for _ in range(2):
            self.node.working(job.id)
            self.clear_sent()
            self.pass_ms(job.retry_s * 1000 - 400)
            self.assertEqual(["WILLQUEUE"], self.sent_names(B))

    def test_working_on_a_done_job(self) -> None:
        """WORKING is refused with ACKED for an acknowledged job, and with NOJOB for a dummy."""
        job = self.replicated(B)
        unknown = b"D-cccccccc-%024d-05a1" % 1
        self.node.acknowledge([job.id, unknown])
        self.assertEqual(ACKED, self.job(job.id).state)
        for job_id, code in ((job.id, "ACKED"), (unknown, "NOJOB")):
            error = self.assertRaises(CommandError, self.node.working, job_id)
            self.assertEqual(code, error.code)

    def test_working_on_a_waiting_job(self) -> None:
        """A job that is not accepted yet is unknown to everyone."""
        client = self.begin_add(2)
        error = self.assertRaises(CommandError, self.node.working, client.blocked_job)
        self.assertEqual("NOJOB", error.code)
