"""Copies on other nodes (cluster protocol, sections 7.3, 7.4, 10.6 and 10.7)."""

from __future__ import annotations

from itertools import pairwise

from disque_tx.commands.base.values import Error
from disque_tx.core.base.client import NOT_BLOCKED, REPLY_OFF, Client
from disque_tx.core.jobs.job import Job
from disque_tx.core.queues.queues import PAUSE_IN
from disque_tx.core.recovery import load
from disque_tx.messages.bus import NOREPLY, JobSignal, JobsMessage
from disque_tx.messages.bustypes import DELJOB, ENQUEUE, GOTJOB, REPLJOB, SETACK, YOURJOBS
from disque_tx.messages.records import ACKED, ACTIVE, QUEUED, WAIT_REPL
from tests.core.bench import ME, MemoryLog
from tests.core.peerbench import PEER, B, C, D, FlowCase, PeerCase, peer_job

TIMEOUT = b"NOREPL Timeout reached before replicating to the requested number of nodes"
REMOVED = b"NOREPL job removed (expired?) before the requested replication level was achieved"


class CopiesCase(PeerCase):
    """Jobs whose client waits for copies."""

    def waiting(self) -> Job:
        """The one job whose client waits."""
        (wait,) = self.node.waiters.copies.values()
        return wait.job

    def assert_error(self, client: Client, line: bytes) -> None:
        """The client got this error, and is no longer blocked."""
        (error,) = self.replies(client)
        assert isinstance(error, Error)
        self.assertEqual((line, NOT_BLOCKED), (error.line, client.blocked))


class SynchronousTests(CopiesCase):
    """ADDJOB that waits for its copies."""

    peers = (B, C, D)

    def test_copies_before_the_answer(self) -> None:
        """The reply with the ID is a promise: it is not sent before the requested number of nodes
        hold the job."""
        client = self.begin_add(3)
        job = self.waiting()
        first, second = job.nodes[1:]
        for _ in range(2):
            self.receive_signal(first, GOTJOB, job.id)
            self.assertEqual(([], {}), (self.replies(client), self.log.records))
            self.assertEqual((WAIT_REPL, []), (job.state, self.get(b"q")))
        self.receive_signal(second, GOTJOB, job.id)
        self.assertEqual(job.id, self.status(client))
        self.assertEqual([job.id], self.get(b"q"))

    def test_forgotten_at_once(self) -> None:
        """A job that has its copies, and is forgotten with all others in the same turn, is not
        looked after any more."""
        self.begin_add(2)
        job = self.waiting()
        self.pass_ms(60)
        self.receive_signal(job.nodes[1], GOTJOB, job.id)
        waiting = self.node.healing.replication
        self.assertEqual([job], list(waiting.unconfirmed))
        self.node.flush_all()
        self.assertEqual([], list(waiting.unconfirmed))

    def test_confirmation_of_another_node(self) -> None:
        """Only confirmations of nodes that were sent the job count."""
        client = self.begin_add(2)
        job = self.waiting()
        (asked,) = [node for node in job.nodes if node != ME]
        other = next(node for node in self.peers if node != asked)
        self.receive_signal(other, GOTJOB, job.id)
        self.assertEqual([], self.replies(client))

    def test_log(self) -> None:
        """The record names all nodes that may hold a copy, and is written before the reply."""
        client = self.begin_add(2)
        job = self.waiting()
        self.pass_ms(60)
        self.receive_signal(job.nodes[1], GOTJOB, job.id)
        record = self.log.records[self.status(client)]
        self.assertEqual((QUEUED, job.nodes, 3), (record.state, record.nodes, len(job.nodes)))

    def test_delay(self) -> None:
        """DELAY counts from the client's request, not from the confirmation of the copies."""
        self.begin_add(2, delay_s=10)
        job = self.waiting()
        self.pass_ms(4_000)
        self.receive_signal(job.nodes[1], GOTJOB, job.id)
        self.assertEqual(ACTIVE, self.log.records[job.id].state)
        self.pass_ms(5_980)
        self.assertEqual([], self.get(b"q"))
        self.pass_ms(20)
        self.assertEqual([job.id], self.get(b"q"))

    def test_one_more_node(self) -> None:
        """Every 50 ms another node is sent the job while there is one; all get the new list of
        holders."""
        self.begin_add(2)
        job = self.waiting()
        first = job.nodes[1]
        self.assertEqual(["REPLJOB"], self.sent_names(first))
        self.pass_ms(60)
        second = job.nodes[2]
        for peer in (first, second):
            message = self.sent_jobs(peer)
            self.assertEqual((0, job.nodes), (message.mflags, message.jobs[0].nodes))
        self.pass_ms(60)
        self.assertEqual({ME, B, C, D}, set(job.nodes))

    def test_confirmed_nodes_get_the_new_list(self) -> None:
        """Nodes that confirmed get the new list, and are not asked to confirm again."""
        self.begin_add(3)
        job = self.waiting()
        first = job.nodes[1]
        self.receive_signal(first, GOTJOB, job.id)
        self.clear_sent()
        self.pass_ms(60)
        self.assertEqual(NOREPLY, self.sent_jobs(first).mflags)

    def test_sent_again_less_often(self) -> None:
        """Unresponsive nodes are sent the job again indefinitely, at intervals that grow to 1.6
        s."""
        for peer in (C, D):
            self.unlink(peer)
        self.begin_add(2)
        times = [self.now_ms] * len(self.sent_to(B))
        for _ in range(400):
            self.pass_ms(20)
            times += [self.now_ms] * len(self.sent_to(B))
        waits = [late - early for early, late in pairwise(times)]
        self.assertEqual(sorted(waits), waits)
        for place, least_ms in ((0, 50), (1, 100), (2, 200), (-1, 1_600)):
            self.assertTrue(least_ms <= waits[place] <= least_ms + 60, waits)

    def test_link_comes_back(self) -> None:
        """A node without a link counts as reachable: the client waits, and gets its copy."""
        for peer in self.peers:
            self.unlink(peer)
        client = self.begin_add(2)
        self.pass_ms(500)
        self.assertEqual((ME,), self.waiting().nodes)
        self.link(B)
        self.pass_ms(60)
        self.assertEqual(["REPLJOB"], self.sent_names(B))
        self.receive_signal(B, GOTJOB, self.waiting().id)
        self.status(client)

    def test_life(self) -> None:
        """A copy lives as long as the job, or up to a second less if it is sent late; never longer,
        or a job would get older with every move."""
        for peer in (C, D):
            self.unlink(peer)
        self.begin_add(2, ttl_s=100)
        self.assertEqual(100, self.sent_jobs(B).lives_s[0])
        self.unlink(B)
        self.pass_ms(10_500)
        self.link(B)
        self.pass_ms(120)
        self.assertEqual(89, self.sent_jobs(B).lives_s[0])


class GivenUpTests(CopiesCase):
    """A client that cannot have its copies, or no longer wants them."""

    def test_timeout(self) -> None:
        """The client gets an error, the nodes are sent DELJOB, and nothing is left."""
        client = self.begin_add(3, timeout_ms=300)
        self.receive_signal(B, GOTJOB, self.waiting().id)
        self.clear_sent()
        self.pass_ms(300)
        self.assert_error(client, TIMEOUT)
        for peer in (B, C):
            self.assertEqual("DELJOB", self.sent_names(peer)[-1])
        self.assertEqual([], self.log.lines)
        self.assert_nothing_left()

    def test_late_answer(self) -> None:
        """A copy that is confirmed after the error does not restore the job."""
        self.begin_add(2, timeout_ms=100)
        job = self.waiting()
        self.pass_ms(100)
        self.receive_signal(B, GOTJOB, job.id)
        self.assert_nothing_left()

    def test_client_gone(self) -> None:
        """A job whose client disconnected is deleted, and no reply is written."""
        client = self.begin_add(2)
        self.clear_sent()
        self.node.client_gone(client)
        self.assertEqual([], self.replies(client))
        self.assertFalse(client.touched)
        self.assertIn("DELJOB", self.sent_names(B) + self.sent_names(C))
        self.assert_nothing_left()

    def test_expired(self) -> None:
        """A job that expires while it waits is refused."""
        client = self.begin_add(3, ttl_s=1)
        self.pass_ms(1_000)
        self.assert_error(client, REMOVED)
        self.assert_nothing_left()

    def test_deleted(self) -> None:
        """DELJOB from another node and the command DELJOB refuse it too."""
        client = self.begin_add(2)
        self.receive_signal(B, DELJOB, self.waiting().id)
        self.assert_error(client, REMOVED)
        client = self.begin_add(2)
        self.assertEqual(1, self.node.delete([self.waiting().id]))
        self.assert_error(client, REMOVED)
        self.assert_nothing_left()

    def test_flushed(self) -> None:
        """CLUSTER RESET and DEBUG FLUSHALL leave no client blocked."""
        client = self.begin_add(2)
        self.begin_add(2, asynchronous=True)
        self.node.flush_all()
        self.assert_error(client, REMOVED)
        self.assert_nothing_left()
        self.assertEqual(-1, self.node.replication.resends.next_ms())

    def test_silenced(self) -> None:
        """With CLIENT REPLY OFF neither the ID nor the error is sent."""
        client = self.begin_add(2, timeout_ms=100)
        client.reply_mode = REPLY_OFF
        self.pass_ms(100)
        other = self.begin_add(2)
        other.reply_mode = REPLY_OFF
        job = self.waiting()
        self.receive_signal(job.nodes[1], GOTJOB, job.id)
        self.assertEqual([], self.replies(client) + self.replies(other))
        self.assertEqual({}, self.node.waiters.copies)

    def test_commands_on_a_waiting_job(self) -> None:
        """While it waits, a job can only be accepted or deleted."""
        client = self.begin_add(2)
        job = self.waiting()
        self.assertEqual(0, self.node.enqueue([job.id], True))
        self.assertEqual(0, self.node.dequeue([job.id]))
        self.receive_signal(B, ENQUEUE, job.id)
        self.receive_jobs(B, YOURJOBS, peer_job(1, (B,)))
        self.assertEqual((WAIT_REPL, []), (job.state, self.replies(client)))


class AsynchronousTests(CopiesCase):
    """ADDJOB ... ASYNC: no client waits, but the copies are made (the original only tries once)."""

    peers = (B, C, D)

    def added(self, replicate: int = 2) -> Job:
        """An ASYNC job; its ID is returned at once."""
        return self.job(self.status(self.begin_add(replicate, asynchronous=True)))

    def count_sent(self, peer: bytes, ms: int) -> int:
        """The number of messages sent to ``peer`` in that time."""
        self.pass_slowly(ms)
        return len(self.sent_to(peer))

    def test_at_once(self) -> None:
        """The job is queued and logged with all its holders before any confirmation."""
        job = self.added()
        self.assertEqual([job.id], self.get(b"q"))
        self.assertEqual(job.nodes, self.log.records[job.id].nodes)
        message = self.sent_jobs(job.nodes[1])
        self.assertEqual((0, QUEUED), (message.mflags, message.jobs[0].state))

    def test_confirmed(self) -> None:
        """Once the copy is confirmed, no message is sent again and no state is kept."""
        job = self.added()
        self.receive_signal(job.nodes[1], GOTJOB, job.id)
        self.clear_sent()
        self.assertEqual(0, self.count_sent(job.nodes[1], 60_000))
        self.assertEqual({}, self.node.replication.asynchronous)

    def test_sent_again(self) -> None:
        """A copy that was lost is sent again, at first to the same node, then to more."""
        job = self.added()
        first = job.nodes[1]
        self.clear_sent()
        self.pass_ms(200)
        self.assertEqual((["REPLJOB"], 2), (self.sent_names(first), len(job.nodes)))
        self.pass_slowly(10_000)
        self.assertTrue(len(job.nodes) > 2)
        self.assertEqual(job.nodes, self.log.records[job.id].nodes)
        self.receive_signal(job.nodes[2], GOTJOB, job.id)
        self.assertEqual({}, self.node.replication.asynchronous)

    def test_one_of_two(self) -> None:
        """When one copy is confirmed, the missing one is sent again."""
        job = self.added(3)
        first, second = job.nodes[1:]
        self.receive_signal(first, GOTJOB, job.id)
        self.clear_sent()
        self.pass_ms(200)
        self.assertEqual(["REPLJOB"], self.sent_names(second))
        self.receive_signal(second, GOTJOB, job.id)
        self.assertEqual({}, self.node.replication.asynchronous)

    def test_intervals_grow(self) -> None:
        """To a dead node the copy is eventually sent only twice a minute."""
        for peer in (C, D):
            self.unlink(peer)
        self.added()
        self.pass_slowly(120_000)
        self.clear_sent()
        self.assertTrue(1 <= self.count_sent(B, 60_000) <= 2)

    def test_no_link_at_first(self) -> None:
        """Accepted without any link, the job gets its copies once there is one."""
        for peer in self.peers:
            self.unlink(peer)
        job = self.added(3)
        self.assertEqual((ME,), job.nodes)
        for peer in (B, C):
            self.link(peer)
        self.pass_ms(400)
        self.assertEqual((["REPLJOB"], ["REPLJOB"]), (self.sent_names(B), self.sent_names(C)))

    def test_the_job_ends(self) -> None:
        """Acknowledged, deleted or expired jobs are not sent again."""
        ended = [self.added() for _ in range(3)]
        expiring = self.job(self.status(self.begin_add(2, ttl_s=1, asynchronous=True)))
        self.node.acknowledge([ended[0].id])
        self.receive_signal(B, DELJOB, ended[1].id)
        self.node.fast_acknowledge([ended[2].id])
        self.pass_ms(1_000)
        self.assertIsNone(self.node.jobs.get(expiring.id))
        self.assertEqual({}, self.node.replication.asynchronous)
        self.assertEqual(-1, self.node.replication.resends.next_ms())

    def test_delivered_jobs_still_need_copies(self) -> None:
        """A delivered job is sent again, too: the worker may die, and this node with it."""
        job = self.added()
        self.get(b"q")
        self.clear_sent()
        self.pass_ms(200)
        self.assertEqual(["REPLJOB"], self.sent_names(job.nodes[1]))


class OutsideTests(CopiesCase):
    """External replication: this node stores no jobs (section 10.7)."""

    def setUp(self) -> None:
        super().setUp()
        self.leave()

    def test_synchronous(self) -> None:
        """All copies are elsewhere; one of the nodes that confirmed is sent ENQUEUE."""
        client = self.begin_add(2)
        job = self.waiting()
        self.assertEqual({B, C}, set(job.nodes))
        self.receive_signal(B, GOTJOB, job.id)
        self.assertEqual([], self.replies(client))
        self.clear_sent()
        self.receive_signal(C, GOTJOB, job.id)
        self.assertEqual(job.id, self.status(client))
        (message,) = self.sent_to(B) + self.sent_to(C)
        assert isinstance(message, JobSignal)
        self.assertEqual((ENQUEUE, 0, 1), (message.type, message.aux, message.serial))
        self.assertEqual([], self.log.lines)
        self.assert_nothing_left()

    def test_only_who_confirmed(self) -> None:
        """No ENQUEUE is sent to a node that may not have the job."""
        self.chance = 0.99
        client = self.begin_add(1)
        job = self.waiting()
        first = job.nodes[0]
        self.pass_ms(60)
        self.assertEqual(2, len(job.nodes))
        self.clear_sent()
        self.receive_signal(first, GOTJOB, job.id)
        self.status(client)
        self.assertEqual(["ENQUEUE"], self.sent_names(first))

    def test_delay(self) -> None:
        """The node that queues the job is sent its delay."""
        self.begin_add(1, delay_s=7)
        job = self.waiting()
        self.clear_sent()
        self.receive_signal(job.nodes[0], GOTJOB, job.id)
        self.assertEqual(7, self.sent_signal(job.nodes[0]).aux)

    def test_asynchronous(self) -> None:
        """ASYNC: the client gets its ID at once; ENQUEUE follows when the copy is confirmed, and a
        copy that was lost is sent again (the original loses such jobs silently)."""
        job_id = self.status(self.begin_add(1, asynchronous=True))
        (peer,) = self.job(job_id).nodes
        self.clear_sent()
        self.pass_ms(400)
        self.assertEqual("REPLJOB", self.sent_names(peer)[0])
        self.receive_signal(peer, GOTJOB, job_id)
        self.assertEqual(["ENQUEUE"], self.sent_names(peer))
        self.assert_nothing_left()

    def test_asynchronous_ends(self) -> None:
        """Without a waiting client, too, replication stops when the job expires or is deleted."""
        expiring = self.status(self.begin_add(1, ttl_s=1, asynchronous=True))
        deleted = self.status(self.begin_add(1, asynchronous=True))
        done = self.status(self.begin_add(1, asynchronous=True))
        self.node.delete([deleted])
        self.receive_signal(B, SETACK, done, 1)
        self.receive_signal(B, DELJOB, done)
        self.pass_ms(1_000)
        self.assertIsNone(self.node.jobs.get(expiring))
        self.assert_nothing_left()

    def test_at_most_once(self) -> None:
        """A job with RETRY 0 is handed to one node, and every other copy is deleted."""
        client = self.begin_add(1, retry_s=0)
        job = self.waiting()
        first = job.nodes[0]
        self.pass_ms(60)
        (second,) = [node for node in job.nodes if node != first]
        self.receive_signal(second, GOTJOB, job.id)
        self.status(client)
        message = self.sent_to(second)[-1]
        assert isinstance(message, JobsMessage)
        self.assertEqual((YOURJOBS, 1), (message.type, message.serial))
        self.assertEqual("DELJOB", self.sent_names(first)[-1])

    def test_delayed_at_most_once(self) -> None:
        """With a delay it is sent ENQUEUE like the others, since jobs in YOURJOBS are queued at
        once."""
        self.begin_add(1, retry_s=0, delay_s=5)
        job = self.waiting()
        self.clear_sent()
        self.receive_signal(job.nodes[0], GOTJOB, job.id)
        self.assertEqual(5, self.sent_signal(job.nodes[0]).aux)

    def test_link_lost_before_the_order(self) -> None:
        """As long as no holder can be sent ENQUEUE, the client gets no ID."""
        client = self.begin_add(1, retry_s=0)
        job = self.waiting()
        (peer,) = job.nodes
        self.unlink(peer)
        self.receive_signal(peer, GOTJOB, job.id)
        self.pass_slowly(1_000)  # several attempts while the link is down
        self.assertEqual([], self.replies(client))
        self.link(peer)
        self.pass_ms(60)
        self.assertEqual(job.id, self.status(client))
        self.assertEqual("YOURJOBS", self.sent_names(peer)[-1])
        self.assert_nothing_left()

    def test_node_forgotten_before_the_order(self) -> None:
        """If the node that confirmed was forgotten, another one is sent the job."""
        client = self.begin_add(1, retry_s=0)
        job = self.waiting()
        (first,) = job.nodes
        self.node.cluster.forget(first)
        self.receive_signal(first, GOTJOB, job.id)
        self.assertEqual([], self.replies(client))
        self.pass_ms(60)
        (second,) = [node for node in job.nodes if node != first]
        self.receive_signal(second, GOTJOB, job.id)
        self.assertEqual(job.id, self.status(client))
        self.assert_nothing_left()

    def test_out_of_memory(self) -> None:
        """A node above 75 % of its memory does the same as a leaving one."""
        self.node.membership.set_leaving(False)
        self.node.memory.limit, self.node.memory.used = 100_000, 80_000
        self.begin_add(1)
        self.assertNotIn(ME, self.waiting().nodes)

    def test_called_back(self) -> None:
        """A node that takes jobs again keeps a copy itself of those for which it still seeks a
        place: the others may be leaving now, and the ID of an ASYNC job is given."""
        job_id = self.status(self.begin_add(2, asynchronous=True))
        self.receive_signal(B, GOTJOB, job_id)
        self.node.membership.set_leaving(False)
        self.clear_sent()
        self.pass_ms(60)
        job = self.job(job_id)
        self.assertEqual({ME, B, C}, set(job.nodes))
        self.assertEqual(job.nodes, self.sent_jobs(C).jobs[0].nodes)
        self.assertEqual((QUEUED, [("load", job_id)]), (job.state, self.log.lines))

    def test_called_back_after_the_delay(self) -> None:
        """A job whose delay has passed meanwhile is queued soon after, without a busy loop."""
        job_id = self.status(self.begin_add(2, delay_s=1, asynchronous=True))
        self.receive_signal(B, GOTJOB, job_id)
        self.pass_slowly(2_000)
        self.node.membership.set_leaving(False)
        self.pass_ms(60)
        self.pass_ms(20)
        self.assertEqual(QUEUED, self.job(job_id).state)

    def test_called_back_at_most_once(self) -> None:
        """Then no other node may deliver a job with RETRY 0."""
        job_id = self.status(self.begin_add(1, retry_s=0, asynchronous=True))
        (peer,) = self.job(job_id).nodes
        self.node.membership.set_leaving(False)
        self.pass_ms(60)
        self.assertEqual("DELJOB", self.sent_names(peer)[-1])
        self.assertEqual(((ME,), QUEUED), (self.job(job_id).nodes, self.job(job_id).state))


class KeepTests(PeerCase):
    """REPLJOB (section 7.3)."""

    def test_kept(self) -> None:
        """The copy is logged before it is confirmed, and waits for RETRY."""
        job = peer_job(1, (B, ME), retry_s=10)
        self.receive_jobs(B, REPLJOB, job, life_s=100)
        self.assertEqual((GOTJOB, job.id), self.reply())
        mine = self.job(job.id)
        self.assertEqual((ACTIVE, (B, ME)), (mine.state, self.log.records[job.id].nodes))
        self.pass_ms(9_980)
        self.assertEqual([], self.get(b"q"))
        self.pass_ms(20)
        self.assertEqual([job.id], self.get(b"q"))
        self.pass_ms(90_000)
        self.assertIsNone(self.node.jobs.get(job.id))

    def reply(self) -> tuple[int, bytes]:
        """Type and job of the single reply to B."""
        message = self.sent_signal(B)
        return int(message.type), message.job_id

    def test_delay(self) -> None:
        """A copy is never queued before its delay ends, even after a restart."""
        job = peer_job(1, (B, ME), retry_s=5, delay_s=1_000)
        self.receive_jobs(B, REPLJOB, job)
        self.pass_ms(900_000)
        self.assertEqual([], self.get(b"q"))
        record = self.log.records[job.id]
        self.node = self.new_node()
        self.begin(90_000, self.wall_us)
        self.log = MemoryLog()
        load(self.node, record, False)
        self.pass_ms(1_004_960)
        self.assertEqual([], self.get(b"q"))
        self.pass_ms(60)
        self.assertEqual([job.id], self.get(b"q"))

    def test_no_answer_wanted(self) -> None:
        """NOREPLY: the copy is stored without a confirmation."""
        self.receive_jobs(B, REPLJOB, peer_job(1, (B, ME)), mflags=NOREPLY)
        self.assertEqual([], self.sent_to(B))
        self.assertEqual(1, len(self.node.jobs))

    def test_again(self) -> None:
        """A copy that is received again is confirmed again; only new holders are added."""
        job = peer_job(1, (B, ME))
        self.receive_jobs(B, REPLJOB, job)
        due_ms = self.job(job.id).qtime_ms
        self.pass_ms(1_000)
        self.clear_sent()
        again = peer_job(1, (B, C, ME))
        again.body = b"other"
        self.receive_jobs(B, REPLJOB, again)
        self.assertEqual((GOTJOB, job.id), self.reply())
        mine = self.job(job.id)
        self.assertEqual(((B, ME, C), b"body", due_ms), (mine.nodes, mine.body, mine.qtime_ms))
        self.assertEqual(1, len(self.log.lines))

    def test_refused_without_reply(self) -> None:
        """A node that is leaving, short of memory or paused stores no copy and sends no reply."""
        job = peer_job(1, (B, ME))
        self.node.pause(b"q", PAUSE_IN)
        self.receive_jobs(B, REPLJOB, job)
        self.node.pause(b"q", 0)
        self.node.memory.limit, self.node.memory.used = 100_000, 80_000
        self.receive_jobs(B, REPLJOB, job)
        self.node.memory.limit = 0
        self.leave()
        self.receive_jobs(B, REPLJOB, job)
        self.assertEqual(([], 0), (self.sent_to(B), len(self.node.jobs)))

    def test_damaged(self) -> None:
        """Messages that do not contain exactly one job with a valid ID are ignored."""
        one, two = peer_job(1, (B, ME)), peer_job(2, (B, ME))
        self.receive_jobs(B, REPLJOB, one, two)
        self.receive_jobs(B, REPLJOB)
        missing = JobsMessage(REPLJOB, [], [])
        missing.announced = 1
        self.receive(B, missing)
        one.id = b"x" * 40
        self.receive_jobs(B, REPLJOB, one)
        self.assertEqual(([], 0), (self.sent_to(B), len(self.node.jobs)))

    def test_acknowledged_before(self) -> None:
        """A copy of a job that was already acknowledged only adds its holders."""
        job = peer_job(1, (B, ME))
        self.node.acknowledge([job.id])
        self.clear_sent()
        self.receive_jobs(B, REPLJOB, job)
        self.assertEqual((GOTJOB, job.id), self.reply())
        mine = self.job(job.id)
        self.assertEqual((ACKED, True, b""), (mine.state, mine.dummy, mine.body))
        self.pass_ms(1_000)
        message = self.sent_signal(B)
        self.assertEqual(("SETACK", 2), ("SETACK" if message.type == 8 else "", message.aux))

    def test_at_most_once(self) -> None:
        """A copy with RETRY 0 is never queued by its holder, whatever clients request."""
        job = peer_job(1, (ME,), once=True)
        self.receive_jobs(B, REPLJOB, job)
        self.assertEqual(0, self.node.enqueue([job.id], False) + self.node.enqueue([job.id], True))
        self.pass_ms(600_000)
        self.assertEqual([], self.get(b"q"))

    def test_no_time_left(self) -> None:
        """A copy whose TTL has elapsed is deleted in the next turn."""
        self.receive_jobs(B, REPLJOB, peer_job(1, (B, ME)), life_s=0)
        self.pass_ms(20)
        self.assert_nothing_left()


class FlowTests(FlowCase):
    """The same messages as originals in the same situations."""

    def test_synchronous(self) -> None:
        """A copy is sent again until it is confirmed."""
        client = self.begin_add(2)
        (wait,) = self.node.waiters.copies.values()
        self.replay("addjob-sync", wait.job.id, tolerance_ms=60)
        self.assertEqual(wait.job.id, self.status(client))

    def test_timeout(self) -> None:
        """The peer that never replied is sent DELJOB."""
        client = self.begin_add(2, timeout_ms=300)
        (wait,) = self.node.waiters.copies.values()
        self.replay("addjob-timeout", wait.job.id, tolerance_ms=80)
        self.assertEqual(1, len(self.replies(client)))

    def test_external(self) -> None:
        """A leaving node hands over its jobs, synchronously and asynchronously.

        Unlike the original, this node waits for the confirmation of ASYNC copies before it sends
        ENQUEUE.
        """
        self.leave()
        job_id = self.status(self.begin_add(1, asynchronous=True))
        self.sinks[PEER].messages[0].mflags = NOREPLY
        self.receive_signal(PEER, GOTJOB, job_id)
        self.replay("external-async", job_id)
        client = self.begin_add(1)
        (wait,) = self.node.waiters.copies.values()
        self.replay("external-sync", wait.job.id)
        self.assertEqual(wait.job.id, self.status(client))

    def test_delivered_and_not_acknowledged(self) -> None:
        """The other holder is notified half a second before the job is queued, and again when it
        is.

        Unlike the original, this node waits for the confirmation of ASYNC copies.
        """
        job_id = self.status(self.begin_add(2, queue=b"q5", retry_s=2, asynchronous=True))
        self.assertEqual([job_id], self.get(b"q5"))
        self.sinks[PEER].messages[0].mflags = NOREPLY
        self.receive_signal(PEER, GOTJOB, job_id)
        self.replay("retry-cycle", job_id, until_ms=2_200, tolerance_ms=250)
