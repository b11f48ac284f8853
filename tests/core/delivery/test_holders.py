"""What the holders of a job send each other (cluster protocol, 7.5 to 7.8 and 10.5)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from disque_tx.core.delivery.holders import wins
from disque_tx.core.jobs.job import Job
from disque_tx.core.queues.queues import PAUSE_IN
from disque_tx.core.recovery import load
from disque_tx.errors import CommandError
from disque_tx.messages import bustypes
from disque_tx.messages.bus import BY_RETRY, INCR_DELIV, INCR_NACKS, JobSignal
from disque_tx.messages.bustypes import CAN_TABLES, ENQUEUE, REPLJOB, WILLQUEUE, WORKING
from disque_tx.messages.records import ACTIVE, QUEUED
from tests import profiles  # noqa: F401
from tests.core.bench import ME, MemoryLog
from tests.core.peerbench import B, C, PeerCase, peer_job

node_ids = st.binary(min_size=20, max_size=20).map(lambda raw: raw.hex().encode())


class HolderCase(PeerCase):
    """This node holds a copy of a job of B."""

    def copy(self, retry_s: int = 10, once: bool = False) -> Job:
        """The copy, which is in no queue."""
        job = peer_job(1, (B, C, ME), retry_s=retry_s, once=once)
        self.receive_jobs(B, REPLJOB, job)
        self.clear_sent()
        return self.job(job.id)

    def queued(self) -> Job:
        """The copy in this node's queue, because its RETRY has elapsed."""
        job = self.copy()
        self.pass_ms(10_000)
        self.assertEqual(QUEUED, job.state)
        self.clear_sent()
        return job

    def left_ms(self, job: Job) -> int:
        """Time until the job will be queued again."""
        return job.qtime_ms - self.now_ms


class WinnerTests(PeerCase):
    """Section 7.7: which of two nodes keeps the job in its queue."""

    @given(node_ids, node_ids, st.integers(0, 10**20))
    def test_exactly_one(self, first: bytes, second: bytes, number: int) -> None:
        """Both nodes come to the same result, so that exactly one keeps the job."""
        job_id = b"D-bbbbbbbb-%024d-05a1" % number
        if first == second:
            self.assertFalse(wins(first, second, job_id))
        else:
            self.assertNotEqual(wins(first, second, job_id), wins(second, first, job_id))

    def test_formula(self) -> None:
        """The IDs are XORed with the random part of the job ID and compared as bytes."""
        job_id = b"D-bbbbbbbb-" + b"A" * 23 + b"\x02" + b"-05a1"
        first, second = b"0" * 39 + b"1", b"0" * 40
        self.assertFalse(wins(first, second, job_id))
        first, second = b"0" * 23 + b"1" + b"0" * 16, b"0" * 23 + b"3" + b"0" * 16
        self.assertTrue(wins(first, second, job_id))

    def test_depends_on_the_job(self) -> None:
        """No node always loses."""
        results = {wins(B, ME, b"D-bbbbbbbb-%s-05a1" % (char * 24)) for char in (b"A", b"B")}
        self.assertEqual({True, False}, results)


class SameMomentTests(HolderCase):
    """RETRY is over at several holders before the messages about that arrive."""

    def test_both_queued(self) -> None:
        """It counts as one delivery, or a job becomes a dead letter one delivery too early."""
        job = self.queued()
        self.assertEqual(1, job.deliveries)
        self.pass_ms(300)
        self.receive_signal(B, bustypes.QUEUED, job.id, BY_RETRY, INCR_DELIV)
        self.assertEqual(1, job.deliveries)

    def test_delivered(self) -> None:
        """So it does when a client of this node was faster than the message."""
        job = self.queued()
        self.assertEqual([job.id], self.get(b"q"))
        self.receive_signal(B, bustypes.QUEUED, job.id, BY_RETRY, INCR_DELIV)
        self.assertEqual(1, job.deliveries)

    def test_third(self) -> None:
        """A third holder hears of it twice, and counts once."""
        job = self.copy()
        self.pass_ms(9_400)
        for sender in (B, C):
            self.receive_signal(sender, bustypes.QUEUED, job.id, BY_RETRY, INCR_DELIV)
            self.pass_ms(200)
        self.assertEqual(1, job.deliveries)

    def test_short_retry(self) -> None:
        """With a RETRY of a second every return is counted, although they follow each other
        fast."""
        job = self.copy(retry_s=1)
        for number in range(5):
            self.pass_ms(800)
            self.receive_signal(B, bustypes.QUEUED, job.id, BY_RETRY, INCR_DELIV)
            self.assertEqual(number + 1, job.deliveries)

    def test_long_retry(self) -> None:
        """What is the same moment does not depend on how long RETRY is."""
        job = self.copy(retry_s=86_400)
        self.receive_signal(B, bustypes.QUEUED, job.id, BY_RETRY, INCR_DELIV)
        self.pass_ms(2_000)
        self.receive_signal(C, bustypes.QUEUED, job.id, BY_RETRY, INCR_DELIV)
        self.assertEqual(2, job.deliveries)

    def test_other_reason(self) -> None:
        """RETRY that was over counts where it had just begun anew for another reason: a consumer
        works on the job, or it has come back by a NACK."""
        job = self.copy()
        self.receive_signal(C, bustypes.WORKING, job.id)
        self.pass_ms(300)
        self.receive_signal(B, bustypes.QUEUED, job.id, BY_RETRY, INCR_DELIV)
        self.assertEqual(1, job.deliveries)
        self.receive_signal(C, bustypes.QUEUED, job.id, mflags=INCR_NACKS)
        self.pass_ms(300)
        self.receive_signal(B, bustypes.QUEUED, job.id, BY_RETRY, INCR_DELIV)
        self.assertEqual(2, job.deliveries)

    def test_by_command(self) -> None:
        """A job that a client queues at another node then is delivered once more."""
        job = self.queued()
        self.receive_signal(B, bustypes.QUEUED, job.id, mflags=INCR_DELIV)
        self.assertEqual(2, job.deliveries)

    def test_nack(self) -> None:
        """A NACK right behind the delivery is a return of its own."""
        job = self.queued()
        self.receive_signal(B, bustypes.QUEUED, job.id, mflags=INCR_NACKS)
        self.assertEqual((1, 1), (job.nacks, job.deliveries))


class RequeueTests(HolderCase):
    """One holder queues the job again; the others postpone it (section 10.5)."""

    def test_announced(self) -> None:
        """The others get WILLQUEUE half a second before and QUEUED when it happens, which is
        counted."""
        job = self.copy()
        self.pass_ms(9_500)
        self.assertEqual((["WILLQUEUE"], ["WILLQUEUE"]), (self.sent_names(B), self.sent_names(C)))
        self.assertEqual(ACTIVE, job.state)
        self.pass_ms(500)
        for peer in (B, C):
            message = self.sent_signal(peer)
            self.assertEqual(
                (bustypes.QUEUED, INCR_DELIV, job.id),
                (message.type, message.mflags, message.job_id),
            )
        self.assertEqual((QUEUED, 1), (job.state, job.deliveries))

    def test_once_per_retry(self) -> None:
        """WILLQUEUE is sent once per requeue, even if the job is queued and delivered again and
        again."""
        job = self.replicated(B, C, retry_s=10)
        for _ in range(3):
            self.assertEqual([job.id], self.get(b"q"))
            self.pass_slowly(10_000)
            self.assertEqual(["WILLQUEUE", "QUEUED"], self.sent_names(B))

    def test_first_queueing_is_silent(self) -> None:
        """The node that added the job sends nothing when it first queues it, delayed or not."""
        self.replicated(B, delay_s=5)
        self.pass_slowly(5_000)
        self.assertEqual((1, []), (self.length(), self.sent_to(B)))

    def test_the_others_wait(self) -> None:
        """QUEUED from another holder postpones the job by RETRY here, and is counted."""
        job = self.copy()
        self.pass_ms(9_000)
        self.receive_signal(B, bustypes.QUEUED, job.id, mflags=INCR_DELIV)
        self.assertEqual((10_000, 1, 0), (self.left_ms(job), job.deliveries, job.nacks))
        self.receive_signal(B, bustypes.QUEUED, job.id, mflags=INCR_NACKS)
        self.assertEqual((1, 1), (job.deliveries, job.nacks))

    def test_queued_elsewhere(self) -> None:
        """A holder that has the job queued replies to all with QUEUED, and no other node queues
        it."""
        job = self.queued()
        self.receive_signal(C, WILLQUEUE, job.id)
        for peer in (B, C):
            message = self.sent_signal(peer)
            self.assertEqual((bustypes.QUEUED, 0), (message.type, message.mflags))
        self.assertEqual(1, job.deliveries)

    def test_asked_while_not_queued(self) -> None:
        """A holder that does not have it queued sends no reply, but learns of the other holder."""
        job = self.copy()
        self.join(b"d" * 40)
        self.receive_signal(b"d" * 40, WILLQUEUE, job.id)
        self.assertEqual((B, C, ME, b"d" * 40), job.nodes)
        self.assertEqual([], self.sent_to(B))

    def test_two_have_it_queued(self) -> None:
        """The node that wins the comparison keeps the job, the other takes it out of its queue."""
        job = self.queued()
        peers = {wins(peer, ME, job.id): peer for peer in (B, C, b"0" * 40, b"f" * 40)}
        winner, loser = peers[True], peers[False]
        for peer in (winner, loser):
            if peer not in self.node.membership.nodes:
                self.join(peer)
        self.receive_signal(loser, bustypes.QUEUED, job.id, BY_RETRY, INCR_DELIV)
        self.assertEqual((QUEUED, 1), (job.state, job.deliveries))
        self.receive_signal(winner, bustypes.QUEUED, job.id, BY_RETRY, INCR_DELIV)
        self.assertEqual((ACTIVE, 10_000, 1), (job.state, self.left_ms(job), job.deliveries))
        self.assertEqual([], self.get(b"q"))

    def test_both_counters(self) -> None:
        """One message may increment both counters."""
        job = self.copy()
        self.receive_signal(B, bustypes.QUEUED, job.id, mflags=INCR_NACKS | INCR_DELIV)
        self.assertEqual((1, 1), (job.deliveries, job.nacks))


class WorkingTests(HolderCase):
    """WORKING postpones a job on all nodes."""

    def test_sent(self) -> None:
        """The worker's node notifies the other holders."""
        job = self.copy()
        self.assertEqual(10, self.node.working(job.id))
        self.assertEqual((["WORKING"], ["WORKING"]), (self.sent_names(B), self.sent_names(C)))

    def test_forwarded(self) -> None:
        """A node that gave the job to a third one forwards WORKING, and WILLQUEUE, to it: the
        sender does not know of that holder, which would deliver the job meanwhile."""
        job = self.copy()
        for kind in (WORKING, WILLQUEUE):
            self.receive_signal(B, kind, job.id, 2)
            self.assertEqual([], self.sent_to(B))
            forwarded = self.sent_signal(C)
            self.assertEqual((kind, job.id, 0), (forwarded.type, forwarded.job_id, forwarded.aux))

    def test_forwarded_again(self) -> None:
        """A job may have been given on twice: nodes of ours learn how many holders the node that
        forwards knows, and who knows still more goes on. (Seed 15001140.)"""
        job = self.copy()
        link = self.node.membership.nodes[C].link
        assert link is not None
        link.features = CAN_TABLES
        self.receive_signal(B, WORKING, job.id, 2)
        self.assertEqual(3, self.sent_signal(C).aux)
        self.receive_signal(B, WORKING, job.id, 3)
        self.assertEqual([], self.sent_to(C))

    def test_not_forwarded(self) -> None:
        """Nothing is forwarded if the sender knows as many holders, or does not say how many it
        knows, as the original, and as a node that forwards the message itself."""
        job = self.copy()
        for known in (0, 3, 4):
            for kind in (WORKING, WILLQUEUE):
                self.receive_signal(B, kind, job.id, known)
        self.assertEqual([], self.sent_to(C))

    def test_sent_to_an_unlisted_holder(self) -> None:
        """A node that got the job from another holder and then queues it is notified as well:
        otherwise it would deliver the job while this node's client works on it."""
        job = peer_job(1, (B, ME), retry_s=10)
        self.receive_jobs(B, REPLJOB, job)
        self.clear_sent()
        self.receive_signal(C, bustypes.QUEUED, job.id)
        self.assertEqual(10, self.node.working(job.id))
        self.assertEqual((["WORKING"], ["WORKING"]), (self.sent_names(B), self.sent_names(C)))

    def test_too_late_by_its_life_here(self) -> None:
        """The clock of the node that added the job may differ: the limit depends on how long the
        copy has lived here."""
        for hours in (-1, 1):
            job = peer_job(3 + hours, (B, ME), retry_s=10)
            job.ctime += hours * 3_600 * 10**9
            self.receive_jobs(B, REPLJOB, job, life_s=3_600)
            self.assertEqual(10, self.node.working(job.id))
            self.pass_ms(1_801_000)
            error = self.assertRaises(CommandError, self.node.working, job.id)
            self.assertEqual("TOOLATE", error.code)

    def test_received(self) -> None:
        """The job leaves the queue here, without being counted."""
        job = self.queued()
        self.receive_signal(B, WORKING, job.id, mflags=INCR_DELIV)
        self.assertEqual((ACTIVE, 1, 10_000), (job.state, job.deliveries, self.left_ms(job)))
        self.pass_ms(9_000)
        self.receive_signal(B, WORKING, job.id)
        self.pass_ms(9_000)
        self.assertEqual([], self.get(b"q"))

    def test_at_most_once(self) -> None:
        """A queued job with RETRY 0 stays: once taken out it would never come back."""
        job = self.job(self.status(self.begin_add(1, retry_s=0)))
        for kind in (WORKING, bustypes.QUEUED):
            self.receive_signal(B, kind, job.id)
        self.assertEqual([job.id], self.get(b"q"))


class NackTests(HolderCase):
    """NACK and ENQUEUE as other nodes see them."""

    def test_sent(self) -> None:
        """The messages to the other holders distinguish the two."""
        job = self.replicated(B)
        for nack, why in ((True, INCR_NACKS), (False, INCR_DELIV)):
            self.get(b"q")
            self.node.enqueue([job.id], nack)
            self.assertEqual(why, self.sent_signal(B).mflags)


class OrderTests(HolderCase):
    """ENQUEUE: the request to queue a job, from a node that adds jobs without storing them (section
    7.5)."""

    def receive_enqueue(self, job: Job, aux: int = 0, serial: int = 0, peer: bytes = B) -> None:
        """The node receives ENQUEUE."""
        message = JobSignal(ENQUEUE, job.id, aux)
        message.epoch, message.serial = (3, serial) if serial else (0, 0)
        self.receive(peer, message)

    def test_queued(self) -> None:
        """The job is queued at once; it is its first queueing, so nothing is counted."""
        job = self.copy()
        self.receive_enqueue(job)
        self.assertEqual((QUEUED, 0, []), (job.state, job.deliveries, self.sent_to(C)))

    def test_delay(self) -> None:
        """aux is the delay in seconds."""
        for delay_s in (1, 5):
            job = self.copy(retry_s=100)
            self.receive_enqueue(job, aux=delay_s)
            self.pass_ms(delay_s * 1_000 - 20)
            self.assertEqual(0, self.length())
            self.pass_ms(20)
            self.assertEqual((1, 0), (self.length(), job.deliveries))
            self.node.acks.delete([job.id])

    def test_long_delay(self) -> None:
        """The longest delay that the field can hold does not overflow."""
        job = self.copy()
        self.receive_enqueue(job, aux=4_294_967_295)
        self.assertEqual(4_294_967_295_000, self.left_ms(job))

    def test_at_most_once(self) -> None:
        """A job with RETRY 0 is queued too, but only once, even in a paused queue."""
        job = self.copy(once=True)
        self.node.pause(b"q", PAUSE_IN)
        self.receive_enqueue(job, serial=1)
        self.assertEqual([job.id], self.get(b"q"))
        for serial in (1, 2):
            self.receive_enqueue(job, serial=serial)
        self.assertEqual([], self.get(b"q"))

    def test_at_most_once_delayed(self) -> None:
        """With RETRY 0 and a delay it is queued when the delay ends; a restart starts the delay
        again."""
        job = self.copy(once=True)
        job.delay_s = 30
        self.receive_enqueue(job, aux=30, serial=1)
        record = self.log.records[job.id]
        record.ctime = self.wall_us * 1_000
        self.node = self.new_node()
        self.begin(90_000, self.wall_us + 10_000_000)
        self.log = MemoryLog()
        load(self.node, record, False)
        self.pass_ms(29_980)
        self.assertEqual([], self.get(b"q"))
        self.pass_ms(20)
        self.assertEqual([job.id], self.get(b"q"))
        self.pass_ms(600_000)
        self.assertEqual([], self.get(b"q"))

    def test_repeated(self) -> None:
        """A repeated message is ignored, even if the job was forgotten and received again
        meanwhile."""
        job = self.copy(once=True)
        self.receive_enqueue(job, serial=1)
        self.assertEqual([job.id], self.get(b"q"))
        self.node.acknowledge([job.id])
        self.node.delete([job.id])
        again = self.copy(once=True)
        self.receive_enqueue(again, serial=1)
        self.assertEqual([], self.get(b"q"))

    def test_paused(self) -> None:
        """In a queue with paused input a job with RETRY waits for its retry timer."""
        job = self.copy()
        self.node.pause(b"q", PAUSE_IN)
        self.receive_enqueue(job)
        self.assertEqual((ACTIVE, 10_000), (job.state, self.left_ms(job)))

    def test_working_on_a_delayed_retry_0(self) -> None:
        """WORKING does not move the end of a DELAY: a job with RETRY 0 would come early."""
        job = self.copy(once=True)
        self.receive_enqueue(job, aux=30)
        self.receive_signal(C, WORKING, job.id)
        self.assertEqual(30_000, self.left_ms(job))

    def test_delay_of_a_delivered_job(self) -> None:
        """ENQUEUE with a delay for a RETRY 0 job that was already delivered here: nothing happens
        when the delay ends, and the next deadline is the end of its TTL."""
        job = self.copy(retry_s=0)
        self.receive_enqueue(job)
        self.assertEqual([job.id], self.get(b"q"))
        self.receive_enqueue(job, aux=5)
        self.pass_ms(10_000)
        self.assertEqual((ACTIVE, []), (job.state, self.get(b"q")))
        self.assertEqual((0, job.expire_ms), (job.qtime_ms, self.node.next_due_ms()))

    def test_before_the_copy(self) -> None:
        """An ENQUEUE that arrives before its copy does no harm."""
        job = peer_job(1, (B, ME), retry_s=10)
        self.receive_signal(B, ENQUEUE, job.id)
        self.receive_jobs(B, REPLJOB, job)
        self.pass_ms(10_000)
        self.assertEqual([job.id], self.get(b"q"))


class UnknownTests(HolderCase):
    """Messages about unknown jobs."""

    def test_ignored(self) -> None:
        """There is no reply, and no job is created."""
        for kind in (ENQUEUE, bustypes.QUEUED, WILLQUEUE, WORKING):
            self.receive_signal(B, kind, b"D-cccccccc-%024d-05a1" % 1)
            self.receive_signal(B, kind, b"\xff" * 40)
        self.assertEqual([], self.sent_to(B))
        self.assert_nothing_left()
