"""Jobs that are loaded from the log (cluster protocol, section 14.6)."""

from __future__ import annotations

from itertools import product

from disque_tx.core.adding.replication import life_s
from disque_tx.core.jobs.job import whole_life_s
from disque_tx.core.recovery import RESUME_MS, load, resume
from disque_tx.errors import PeerError
from disque_tx.messages.bustypes import QUEUED as NOW_QUEUED
from disque_tx.messages.bustypes import SETACK, WILLQUEUE, WORKING
from disque_tx.messages.records import ACKED, ACTIVE, BCAST_QUEUED, QUEUED, WAIT_REPL, JobRecord
from tests.core.bench import ME, UNIX_S, MemoryLog, NodeCase, copied
from tests.core.peerbench import B, PeerCase, peer_job


class LoadTests(NodeCase):
    """``load`` into a node that just started, after some downtime."""

    def restart(self, down_ms: int = 0, enqueue: bool = False, stopped: bool = False) -> int:
        """Start a new node from the log; with ``stopped`` after an orderly stop, which rewrites it.
        Returns the number of loaded jobs."""
        old = self.node
        records = list(self.log.records.values())
        if stopped:
            records = [copied(job) for job in old.jobs.table.values()]
        self.node = self.new_node()
        self.begin(90_000, self.wall_us + down_ms * 1000)
        self.log = MemoryLog()
        loaded = sum(load(self.node, record, enqueue) for record in records)
        self.node.outbox.log = self.log
        return loaded

    def test_job(self) -> None:
        """A loaded job has its former values, and is delivered again after RETRY."""
        job_id = self.add(b"q", b"\0body", ttl_s=1000, retry_s=10)
        ctime, etime_s = self.job(job_id).ctime, self.job(job_id).etime_s
        self.assertEqual(1, self.restart(5_000))
        job = self.job(job_id)
        self.assertEqual((b"\0body", ctime, etime_s), (job.body, job.ctime, job.etime_s))
        self.pass_ms(9_980)
        self.assertEqual([], self.get(b"q"))
        self.pass_ms(20)
        self.assertEqual([job_id], self.get(b"q"))

    def test_expired(self) -> None:
        """Jobs that expired while the node was down are dropped; the others expire on time."""
        self.add(ttl_s=10)
        kept = self.add(ttl_s=11)
        self.assertEqual(1, self.restart(10_000))
        self.assertIsNotNone(self.node.jobs.get(kept))
        self.pass_ms(1_000)
        self.assertEqual(0, len(self.node.jobs))

    def test_twice(self) -> None:
        """A later record of a job replaces the earlier one, and nothing is counted twice."""
        job_id = self.add()
        record = copied(self.job(job_id))
        used = self.node.used_memory()
        record.nodes = (ME, b"b" * 40)
        self.node.outbox.log = None
        self.assertFalse(load(self.node, record, True))
        self.assertEqual((ME, b"b" * 40), self.job(job_id).nodes)
        record.nodes = (ME,)
        self.assertFalse(load(self.node, record, True))
        self.assertEqual((1, used), (len(self.node.jobs), self.node.used_memory()))
        self.assertEqual(1, self.length())

    def test_bad_state(self) -> None:
        """States that never occur in a log are refused, and the node is unchanged."""
        record = copied(self.job(self.add()))
        self.restart()
        self.node.flush_all()
        for state in (WAIT_REPL, ACKED):
            record.state = state
            self.assertRaises(PeerError, load, self.node, record, False)
        self.assertEqual(0, len(self.node.jobs))

    def test_counters(self) -> None:
        """Counters survive; requeues by the retry timer are counted as always."""
        job_id = self.add(retry_s=10)
        self.get(b"q")
        self.node.enqueue([job_id], True)
        self.restart(stopped=True)
        self.assertEqual((1, 0), (self.job(job_id).nacks, self.job(job_id).deliveries))
        self.pass_ms(10_000)
        self.assertEqual((1, 1), (self.job(job_id).nacks, self.job(job_id).deliveries))

    def test_enqueue_once(self) -> None:
        """Jobs that were queued at an orderly stop are queued again, and nothing is counted."""
        ids = [self.add(), self.add(retry_s=0)]
        fetched = self.add(b"r")
        self.get(b"r")
        self.restart(1_000, enqueue=True, stopped=True)
        self.assertEqual(0, self.length(b"r"))
        self.assertEqual([0, 0], [self.job(job_id).deliveries for job_id in ids])
        self.assertEqual(ids, self.get(b"q", count=5))
        self.assertIsNotNone(self.node.jobs.get(fetched))

    def test_retry_0(self) -> None:
        """RETRY 0: after a crash it is unknown whether a job was delivered, so it is not queued."""
        delivered, waiting = self.add(retry_s=0), self.add(b"r", retry_s=0)
        self.get(b"q")
        self.restart()
        self.pass_ms(3_600_000)
        self.assertEqual([], self.get(b"q", b"r"))
        self.assertEqual(0, self.node.enqueue([delivered, waiting], False))

    def test_retry_0_delivered_before_the_stop(self) -> None:
        """A RETRY 0 job that was logged as delivered is never delivered again, whatever the
        options."""
        job_id = self.add(retry_s=0)
        self.get(b"q")
        self.restart(enqueue=True, stopped=True)
        self.assertEqual(0, self.node.enqueue([job_id], False))
        self.pass_ms(3_600_000)
        self.assertEqual([], self.get(b"q"))

    def test_delay(self) -> None:
        """A restart starts the delay again, without RETRY, for RETRY 0 too, and nothing is
        counted."""
        ids = [self.add(delay_s=60, retry_s=5), self.add(delay_s=60, retry_s=0)]
        self.restart(20_000)
        self.pass_ms(59_980)
        self.assertEqual([], self.get(b"q"))
        self.pass_ms(20)
        self.assertEqual(ids, self.get(b"q", count=5))
        self.assertEqual([0, 0], [self.job(job_id).deliveries for job_id in ids])

    def test_delay_ended_by_command(self) -> None:
        """A RETRY 0 job that was queued early and may have been delivered is not queued again."""
        for nack in (False, True):
            job_id = self.add(delay_s=600, retry_s=0)
            self.assertEqual(1, self.node.enqueue([job_id], nack))
            self.assertEqual([job_id], self.get(b"q"))
            self.assertEqual(1, self.restart())
            self.pass_ms(600_000)
            self.assertEqual([], self.get(b"q"))
            self.node.flush_all()

    def test_delay_ended_meanwhile(self) -> None:
        """With RETRY the delay starts again, because the clock may be wrong. Without, the job may
        have been delivered before."""
        repeated = self.add(delay_s=10, retry_s=5)
        once = self.add(delay_s=10, retry_s=0)
        self.restart(20_000)
        self.pass_ms(9_980)
        self.assertEqual([], self.get(b"q", count=5))
        self.pass_ms(20)
        self.assertEqual([repeated], self.get(b"q", count=5))
        self.pass_ms(3_000)
        self.assertEqual([], self.get(b"q", count=5))
        self.assertIsNotNone(self.node.jobs.get(once))

    def test_delay_with_clock_set_back(self) -> None:
        """A clock that was set back behind the time at which a job was added does not know whether
        the delay is over: with RETRY 0, the job may have been delivered."""
        once = self.add(delay_s=10, retry_s=0)
        self.restart(-1_000)
        self.pass_ms(20_000)
        self.assertEqual([], self.get(b"q", count=5))
        self.assertIsNotNone(self.node.jobs.get(once))

    def test_delay_over_and_queued_before(self) -> None:
        """A delayed job that was queued before the stop is queued again after RETRY like any
        other."""
        job_id = self.add(delay_s=10, retry_s=5)
        self.pass_ms(10_000)
        self.get(b"q")
        for stopped in (False, True):
            self.restart(stopped=stopped)
            self.pass_ms(4_980)
            self.assertEqual([], self.get(b"q"))
            self.pass_ms(20)
            self.assertEqual([job_id], self.get(b"q"))

    def test_delay_near_the_end(self) -> None:
        """A delay that starts again ends before the TTL does, or the job would be lost."""
        job_id = self.add(ttl_s=100, delay_s=60, retry_s=5)
        self.restart(50_000)
        self.pass_ms(29_980)
        self.assertEqual([], self.get(b"q"))
        self.pass_ms(20)
        self.assertEqual([job_id], self.get(b"q"))

    def test_delay_of_a_copy_near_the_end(self) -> None:
        """The same for a copy, whose TTL is known by its ID only, in minutes."""
        job_id = b"D-bbbbbbbb-%024d-0003" % 1
        record = JobRecord(
            *(job_id, b"q", b"body", (ME, b"b" * 40), UNIX_S * 10**9, UNIX_S + 120),
            delay_s=60,
            retry_s=5,
            repl=2,
        )
        record.state = ACTIVE
        record.flags = BCAST_QUEUED
        self.begin(90_000, (UNIX_S + 70) * 1_000_000)
        self.assertTrue(load(self.node, record, False))
        self.pass_ms(49_900)
        self.assertEqual([job_id], self.get(b"q"))

    def test_delay_with_other_clocks(self) -> None:
        """Whatever the clocks were, of the node that added the job, of this one when it received
        the copy, and of this one now: the copy is not queued before DELAY + RETRY, and not long
        after."""
        for made_s, got_s, now_s in product((-3_600, -7, 0, 7, 3_600), repeat=3):
            job_id = b"D-bbbbbbbb-%024d-05a1" % 1
            unix_s = UNIX_S + 10_000
            record = JobRecord(
                job_id,
                b"q",
                b"body",
                (ME, b"b" * 40),
                (unix_s + made_s) * 10**9,
                unix_s + got_s + 86_400,
                delay_s=1_800,
                retry_s=1,
                repl=2,
            )
            record.state = ACTIVE
            record.flags = BCAST_QUEUED
            self.node = self.new_node()
            self.begin(90_000, (unix_s + now_s) * 1_000_000)
            self.assertTrue(load(self.node, record, False))
            self.pass_ms(1_800_980)
            self.assertEqual([], self.get(b"q"), (made_s, got_s, now_s))
            self.pass_ms(20)
            self.assertEqual([job_id], self.get(b"q"), (made_s, got_s, now_s))

    def test_life_with_other_clocks(self) -> None:
        """A clock that was set back does not let a job live longer than the TTL in its ID."""
        job_id = self.add(ttl_s=600)
        self.restart(-3_600_000)
        self.pass_ms(719_980)
        self.assertIsNotNone(self.node.jobs.get(job_id))
        self.pass_ms(20)
        self.assertIsNone(self.node.jobs.get(job_id))

    def test_acknowledged(self) -> None:
        """Acknowledged jobs are not loaded."""
        self.node.delete([self.add()])
        self.assertEqual(0, self.restart())

    def test_clock_in_the_future(self) -> None:
        """A job from a machine whose clock was ahead is like any other, except for its place in the
        queue."""
        job_id = self.add(ttl_s=1000, retry_s=10, delay_s=100)
        record = self.log.records[job_id]
        record.ctime = record.ctime + 3_600 * 10**9
        self.restart()
        self.pass_ms(99_980)
        self.assertEqual([], self.get(b"q"))
        self.pass_ms(20)
        self.assertEqual([job_id], self.get(b"q"))
        self.pass_ms(10_000)
        self.assertEqual([job_id], self.get(b"q"))

    def test_state_in_memory(self) -> None:
        """A job that was queued is not queued after a load, unless the option asks for it."""
        job_id = self.add()
        self.assertEqual(QUEUED, self.log.records[job_id].state)
        self.restart()
        self.assertEqual(0, self.length())


class ResumeTests(PeerCase):
    """Jobs that were in this node's queue at a clean stop, and that other nodes hold, too."""

    def reloaded(self, away_ms: int = 1_000, **options: int) -> bytes:
        """A job with a copy at B, loaded from the log; whether it was in the queue is for
        ``resume`` to say."""
        job = self.replicated(B, **options)
        load(self.node, copied(job), False)
        self.clear_sent()
        self.resumed = resume(self.node, job.id, away_ms)
        return job.id

    def loaded(self) -> int:
        """How many jobs count as loaded."""
        return self.node.queue_queries.counts.of(b"q").numbers[-1]

    def test_asked_first(self) -> None:
        """Other holders are asked whether they have the job, then it is queued, long before its
        RETRY, and they are told; no delivery is counted."""
        job_id = self.reloaded()
        self.assertEqual((True, 1, 0), (self.resumed, self.loaded(), self.length()))
        self.pass_ms(RESUME_MS - 400)
        self.assertEqual(["WILLQUEUE"], self.sent_names(B))
        self.pass_ms(400)
        message = self.sent_signal(B)
        self.assertEqual((NOW_QUEUED, 0), (message.type, message.mflags))
        self.assertEqual((0, 1), (self.loaded(), self.length()))
        self.assertEqual((0, 0), (self.job(job_id).nacks, self.job(job_id).deliveries))

    def test_queued_elsewhere(self) -> None:
        """A job that another holder has queued, or given to a client, meanwhile is left to it."""
        for kind in (NOW_QUEUED, WORKING):
            job_id = self.reloaded()
            self.receive_signal(B, kind, job_id)
            self.pass_ms(RESUME_MS)
            self.assertEqual((0, 0), (self.loaded(), self.length()))
            self.node.delete([job_id])

    def test_done_elsewhere(self) -> None:
        """A job that was acknowledged meanwhile is not delivered again."""
        job_id = self.reloaded()
        self.pass_ms(RESUME_MS - 400)
        self.receive_signal(B, SETACK, job_id, aux=2)
        self.pass_ms(RESUME_MS)
        self.assertEqual(0, self.length())

    def test_away_for_long(self) -> None:
        """After a RETRY the job was queued elsewhere, and may be in flight there: RETRY decides, as
        after a crash. So it does when the clock was set back."""
        for away_ms in (60_000, -1):
            self.reloaded(away_ms)
            self.assertEqual((False, 0), (self.resumed, self.length()))
            self.pass_ms(RESUME_MS)
            self.assertEqual(0, self.length())
            self.node.flush_all()

    def test_once_only(self) -> None:
        """A job that may be delivered once only is queued at once, however long that took: no other
        node queues it by itself."""
        record = peer_record(1, (ME, B), retry_s=0)
        load(self.node, record, False)
        self.assertTrue(resume(self.node, record.id, 1_000_000))
        self.assertEqual([record.id], self.get(b"q"))

    def test_counted_once(self) -> None:
        """Of several holders that load a job, the first one counts it."""
        load(self.node, peer_record(1, (ME, B)), False)
        load(self.node, peer_record(2, (B, ME)), False)
        load(self.node, peer_record(3, (b"x" * 40, ME)), False)
        self.assertEqual(2, self.loaded())

    def test_heard_of(self) -> None:
        """A job that another node has queued, or in flight, is counted there, and not as loaded."""
        for kind in (NOW_QUEUED, WORKING):
            record = peer_record(1, (ME, B))
            load(self.node, record, False)
            self.receive_signal(B, WILLQUEUE, record.id)
            self.assertEqual(1, self.loaded())
            self.receive_signal(B, kind, record.id)
            self.assertEqual(0, self.loaded())


class LifeTests(PeerCase):
    """How long a job was to live, as its dead letter says."""

    def test_moved(self) -> None:
        """A job with a TTL of 600 s has that on every node that it comes to."""
        job = self.replicated(B, ttl_s=600)
        for passed_ms in (0, 1_234, 0, 999):
            self.pass_ms(passed_ms)
            life = life_s(job, self.now_ms)
            self.assertLessEqual(life, 600)
            self.assertEqual(600, whole_life_s(job.id, life))

    def test_loaded_copy(self) -> None:
        """A copy that arrived in the next second has no longer TTL after a restart."""
        record = peer_record(1, (B, ME))
        record.id = record.id[:36] + b"000b"
        record.ctime = UNIX_S * 1_000_000_000 + 990_000_000
        record.etime_s = UNIX_S + 1 + 600
        load(self.node, record, False)
        self.assertEqual(600_000, self.job(record.id).life_ms)


def peer_record(number: int, nodes: tuple[bytes, ...], retry_s: int = 60) -> JobRecord:
    """A job in a log."""
    record = peer_job(number, nodes, retry_s)
    record.state = ACTIVE
    record.etime_s = UNIX_S + 3_600
    return record
