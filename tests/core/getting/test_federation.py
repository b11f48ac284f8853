"""Jobs move to the nodes whose clients ask for them (cluster protocol, sections 11.3 to 11.6)."""

from __future__ import annotations

from typing import Any

from disque_tx.commands.base.values import Error
from disque_tx.core.base.client import BLOCKED_GETJOB
from disque_tx.core.getting.federation import BYTES_MAX, JOBS_MAX
from disque_tx.core.nodes.handovers import GIVEN_MS
from disque_tx.core.queues.queues import PAUSE_ALL, PAUSE_IN, PAUSE_OUT
from disque_tx.messages.bus import JobsMessage, QueueSignal
from disque_tx.messages.bustypes import DELJOB, NEEDJOBS, PAUSE, REPLJOB, SETACK, YOURJOBS
from disque_tx.messages.records import ACTIVE, QUEUED, WAIT_REPL
from tests.core.bench import ME
from tests.core.peerbench import PEER, B, C, FlowCase, PeerCase, peer_job


class FederationCase(PeerCase):
    """Requests for jobs and the jobs sent in reply."""

    def requests(self, peer: bytes) -> list[tuple[bytes, int]]:
        """Queue and count of each request sent to ``peer``."""
        return [(m.queue, m.aux) for m in self.sent_to(peer) if isinstance(m, QueueSignal)]

    def receive_request(self, peer: bytes, count: int = 1, queue: bytes = b"q") -> None:
        """The node receives NEEDJOBS from ``peer``."""
        self.receive(peer, QueueSignal(NEEDJOBS, queue, count))

    def sent_ids(self, peer: bytes) -> list[bytes]:
        """The IDs of the jobs sent to ``peer``."""
        messages = [m for m in self.sent_to(peer) if isinstance(m, JobsMessage)]
        return [job.id for message in messages for job in message.jobs]

    def receive_job(self, peer: bytes, number: int, once: bool = False, serial: int = 0) -> bytes:
        """The node receives a job from ``peer``; its ID."""
        job = peer_job(number, (peer, ME), once=once)
        self.receive_jobs(peer, YOURJOBS, job, serial=serial)
        return job.id


class AskTests(FederationCase):
    """Which nodes this node requests jobs from, when, and how many."""

    def test_at_once(self) -> None:
        """A client that finds no job triggers a request for one job to all nodes, whether it waits
        or not."""
        self.assertEqual([], self.get(b"q"))
        self.wait(b"r")
        for peer in self.peers:
            self.assertEqual([(b"q", 1), (b"r", 1)], self.requests(peer))

    def test_for_a_lease(self) -> None:
        """Clients of other protocols, which take jobs with a lease, get those of other nodes as
        well."""
        self.assertIsNone(self.node.leases.take(self.client, [b"q", b"r"]))
        for peer in self.peers:
            self.assertEqual([(b"q", 1), (b"r", 1)], self.requests(peer))

    def test_not_above_95_percent(self) -> None:
        """A node without memory imports no jobs, and does again when it has some."""
        memory = self.node.memory
        memory.limit, memory.used = 1_000_000, 960_000
        waiting = self.wait(b"q")
        self.assertEqual([], self.requests(B))
        memory.used = 0
        self.pass_ms(60_000)
        self.assertNotEqual([], self.requests(B))
        self.assertEqual(BLOCKED_GETJOB, waiting.blocked)

    def test_not_while_there_are_jobs(self) -> None:
        """A queue that serves its clients sends no requests."""
        self.add(replicate=1)
        self.get(b"q")
        self.assertEqual([], self.sent_to(B))

    def test_intervals(self) -> None:
        """While a client waits, requests go to all nodes again after 4, 12, 28, 58 seconds."""
        self.wait(b"q")
        times = []
        for step in range(3_000):
            times += [step // 50] * len(self.requests(B))
            self.pass_ms(20)
        self.assertEqual([0, 4, 12, 28, 58], times)

    def test_no_client_waits(self) -> None:
        """When the client disconnects the requests stop, and no timer wakes the node for them."""
        client = self.wait(b"q")
        self.node.client_gone(client)
        self.clear_sent()
        self.pass_slowly(60_000)
        self.assertEqual(([], -1), (self.sent_to(B), self.node.federation.next_due_ms()))

    def test_no_link_at_first(self) -> None:
        """Without any link the intervals do not grow: the first node that connects soon gets a
        request."""
        for peer in self.peers:
            self.unlink(peer)
        self.wait(b"q")
        self.pass_slowly(60_000)
        self.link(B)
        self.pass_slowly(2_100)
        self.assertEqual([(b"q", 1)], self.requests(B))

    def test_not_at_all(self) -> None:
        """A leaving node, and a queue with paused output, send no requests."""
        self.node.pause(b"q", PAUSE_OUT)
        self.wait(b"q")
        self.leave()
        self.get(b"r")
        self.assertEqual([], self.sent_to(B))

    def test_end_of_a_pause(self) -> None:
        """Soon after the pause ends, requests for the waiting client's queue are sent again."""
        self.node.pause(b"q", PAUSE_OUT)
        self.wait(b"q")
        self.pass_ms(3_000)
        self.node.pause(b"q", 0)
        self.pass_slowly(2_100)
        self.assertEqual([(b"q", 1)], self.requests(B))

    def test_giver_is_asked_for_more(self) -> None:
        """An emptied queue immediately requests more jobs from the node that sent some, and only
        from it."""
        self.wait(b"q")
        self.pass_ms(1_000)
        self.clear_sent()
        self.receive_job(B, 1)
        self.assertEqual(([(b"q", 5)], []), (self.requests(B), self.requests(C)))

    def test_giver_is_asked_while_clients_wait(self) -> None:
        """While clients wait, the node that sent jobs gets frequent requests, though requests to
        all nodes have become rare."""
        for _ in range(3):
            self.wait(b"q")
        self.pass_slowly(30_000)
        self.receive_job(B, 1)
        self.clear_sent()
        self.pass_slowly(1_000)
        self.assertEqual(4, self.requests(B).count((b"q", 5)))

    def test_new_client_at_an_old_queue(self) -> None:
        """A client that comes later does not inherit the long intervals of an earlier one."""
        first = self.wait(b"q")
        self.pass_slowly(30_000)
        self.receive_job(B, 1)
        self.assertEqual(1, len(self.replies(first)))
        self.wait(b"q")
        self.clear_sent()
        self.pass_slowly(1_000)
        self.assertEqual(4, self.requests(B).count((b"q", 5)))

    def test_as_much_as_is_used(self) -> None:
        """The requested number follows the import rate per second, up to 100."""
        jobs = [peer_job(number, (B, ME)) for number in range(300)]
        for number in range(0, 300, 50):
            self.receive_jobs(B, YOURJOBS, *jobs[number : number + 50])
        self.get(b"q", count=1_000)
        self.assertEqual((b"q", 100), self.requests(B)[-1])


class GiveTests(FederationCase):
    """NEEDJOBS received from another node."""

    def test_head_of_the_queue(self) -> None:
        """The oldest jobs are sent, as many as requested but at most half of the queue."""
        ids = [self.add(replicate=1) for _ in range(8)]
        self.receive_request(B, 3)
        self.assertEqual(ids[:3], self.sent_ids(B))
        self.receive_request(B, 5)
        self.assertEqual(ids[3:5], self.sent_ids(B))

    def test_the_last_one(self) -> None:
        """A single job is sent, even to a node that requests none."""
        for count in (0, 1, 50):
            job_id = self.add(replicate=1)
            self.receive_request(B, count)
            self.assertEqual([job_id], self.sent_ids(B))

    def test_too_many(self) -> None:
        """A request for more than 100 jobs gets 100."""
        for _ in range(300):
            self.add(replicate=1)
        self.receive_request(B, 4_294_967_295)
        self.assertEqual(JOBS_MAX, len(self.sent_ids(B)))
        self.assertEqual(200, self.length())

    def test_large_jobs(self) -> None:
        """A message stops growing with the job that makes it exceed its size limit."""
        for _ in range(8):
            self.add(body=bytes(BYTES_MAX // 2), replicate=1)
        self.receive_request(B, 4)
        self.assertEqual(2, len(self.sent_ids(B)))

    def test_longest_life(self) -> None:
        """The largest TTL that its field can hold survives when the job goes on to another node."""
        job = peer_job(1, (B, ME))
        self.receive_jobs(B, REPLJOB, job, life_s=4_294_967_295)
        self.node.enqueue([job.id], False)
        self.receive_request(C)
        (message,) = [m for m in self.sent_to(C) if isinstance(m, JobsMessage)]
        self.assertEqual([4_294_967_295], message.lives_s)

    def test_done_meanwhile(self) -> None:
        """A job that was acknowledged elsewhere while it was on its way is not queued again for
        long: the receiver, which may have forgotten it by then, gets the acknowledgement after the
        job."""
        for ends in (SETACK, DELJOB):
            job = self.replicated(B, C)
            self.receive_request(B)
            self.assertEqual([job.id], self.sent_ids(B))
            self.receive_signal(C, ends, job.id, 3)
            message = self.sent_signal(B)
            self.assertEqual((SETACK, job.id, 0), (message.type, message.job_id, message.aux))
            self.receive_signal(C, DELJOB, job.id)
            self.assertEqual([], self.sent_to(B))
            self.clear_sent()

    def test_done_long_ago(self) -> None:
        """Jobs that were given are remembered for as long as a message may be on its way, and no
        more than a bounded number of them."""
        jobs = [self.replicated(B, C) for _ in range(3)]
        self.node.federation.handovers.limit = 1
        for _ in jobs:
            self.receive_request(B)
        handovers = self.sent_ids(B)
        self.receive_signal(C, DELJOB, handovers[0])
        self.assertEqual([], self.sent_to(B))
        self.pass_ms(GIVEN_MS + 1)
        self.clear_sent()
        self.receive_signal(C, DELJOB, handovers[1])
        self.assertEqual([], self.sent_to(B))

    def test_giver_stays_holder(self) -> None:
        """The receiver becomes a holder on both sides; the sender starts its retry timer."""
        job = self.job(self.add(replicate=1, retry_s=10))
        self.receive_request(B)
        (record,) = self.sent_jobs(B).jobs
        self.assertEqual(((ME, B), (ME, B), ACTIVE), (job.nodes, record.nodes, job.state))
        self.pass_ms(10_000)
        self.assertEqual(QUEUED, job.state)

    def test_at_most_once(self) -> None:
        """A job with RETRY 0 moves: it is gone here, also from the log, and its message is
        numbered."""
        self.add(retry_s=0, replicate=1)
        self.receive_request(B)
        message = self.sent_jobs(B)
        self.assertEqual((1, 1, {}), (len(message.jobs), message.serial, self.log.records))
        self.assert_nothing_left()

    def test_no_link(self) -> None:
        """Nothing is sent to a node that cannot be reached, so nothing is lost."""
        job_id = self.add(retry_s=0, replicate=1)
        self.unlink(B)
        self.receive_request(B)
        self.assertEqual([job_id], self.get(b"q"))

    def test_refused(self) -> None:
        """Nothing is sent from a missing, an empty, a paused or an importing queue."""
        self.receive_request(B)
        self.assertIsNone(self.node.queues.get(b"q"))
        self.get(b"q")
        self.receive_request(B)
        self.add(replicate=1)
        for flags in (PAUSE_OUT, PAUSE_ALL):
            self.node.pause(b"q", flags)
            self.receive_request(B)
        self.node.pause(b"q", 0)
        self.receive_job(C, 1)
        self.receive_request(B)
        self.assertEqual((2, []), (self.length(), self.sent_ids(B)))
        self.pass_ms(6_000)
        self.receive_request(B)
        self.assertEqual(1, len(self.sent_ids(B)))

    def test_leaving(self) -> None:
        """A leaving node sends what it has: this is how it is drained."""
        job_id = self.add(replicate=1)
        self.leave()
        self.receive_request(B)
        self.assertEqual([job_id], self.sent_ids(B))

    def test_expired(self) -> None:
        """Expired jobs are not sent."""
        self.add(replicate=1, ttl_s=1)
        self.begin(self.now_ms + 1_000, self.wall_us + 1_000_000)
        self.receive_request(B)
        self.assertEqual([], self.sent_ids(B))
        self.assert_nothing_left()


class TakeTests(FederationCase):
    """YOURJOBS received from another node."""

    def test_waiting_client(self) -> None:
        """The waiting client gets the job at once, and it does not count as a second delivery."""
        client = self.wait(b"q")
        job_id = self.receive_job(B, 1)
        self.assertEqual([[[b"q", job_id, b"body"]]], self.replies(client))
        self.assertEqual(0, self.job(job_id).deliveries)

    def test_recorded(self) -> None:
        """Received jobs are logged, because with RETRY 0 no other node has them any longer."""
        job_id = self.receive_job(B, 1, once=True, serial=1)
        self.assertEqual(QUEUED, self.log.records[job_id].state)

    def test_known(self) -> None:
        """For a known job only new holders are added; it is queued if it was not."""
        job = peer_job(1, (B, ME))
        self.receive_jobs(C, REPLJOB, job)
        self.receive_job(C, 1)
        self.assertEqual((QUEUED, (B, ME, C)), (self.job(job.id).state, self.job(job.id).nodes))
        self.receive_job(C, 1)
        self.assertEqual(1, self.length())

    def test_counters_of_a_known_job(self) -> None:
        """When a job is imported again, counters that grew elsewhere are taken over, and its known
        holders are kept."""
        job_id = self.receive_job(B, 1)
        again = peer_job(1, (B, C))
        again.deliveries, again.nacks = 3, 2
        self.receive_jobs(C, YOURJOBS, again)
        self.receive_job(B, 1)
        self.assertEqual((3, 2), (self.job(job_id).deliveries, self.job(job_id).nacks))

    def test_held(self) -> None:
        """The message sequence of external replication with RETRY 0: a copy that is already held is
        queued."""
        job = peer_job(1, (ME,), once=True)
        self.receive_jobs(B, REPLJOB, job)
        self.assertEqual([], self.get(b"q"))
        self.receive_jobs(B, YOURJOBS, job, serial=1)
        self.assertEqual([job.id], self.get(b"q"))
        self.receive_jobs(B, YOURJOBS, job, serial=2)
        self.assertEqual([], self.get(b"q"))

    def test_not_twice(self) -> None:
        """A repeated message does not deliver a RETRY 0 job again, even after the job is
        forgotten."""
        job_id = self.receive_job(B, 1, once=True, serial=1)
        self.assertEqual([job_id], self.get(b"q"))
        self.node.acknowledge([job_id])
        self.node.delete([job_id])
        self.receive_job(B, 1, once=True, serial=1)
        self.assertEqual([], self.get(b"q"))

    def test_pauses_do_not_matter(self) -> None:
        """Received jobs are accepted even in a queue with paused input and by a leaving node."""
        self.node.pause(b"q", PAUSE_IN)
        self.leave()
        self.receive_job(B, 1)
        self.assertEqual(1, self.length())

    def test_damaged(self) -> None:
        """Jobs without a valid ID are skipped, the others are accepted; an empty message is
        ignored."""
        bad, good = peer_job(1, (B,)), peer_job(2, (B,))
        bad.id = b"y" * 40
        self.receive_jobs(B, YOURJOBS, bad, good)
        self.receive_jobs(B, YOURJOBS)
        self.assertEqual([good.id], self.get(b"q", count=9))

    def test_acknowledged_among_others(self) -> None:
        """The sender of a job that is acknowledged here gets to know that; what comes behind it in
        the message is queued."""
        job = peer_job(1, (B, C, ME))
        self.receive_jobs(B, YOURJOBS, job)
        self.node.acknowledge([job.id])
        self.clear_sent()
        behind = peer_job(2, (B,))
        self.receive_jobs(B, YOURJOBS, job, behind)
        self.assertEqual(SETACK, self.sent_signal(B).type)
        self.assertEqual([behind.id], self.get(b"q", count=9))

    def test_repeated_among_others(self) -> None:
        """A message that came before brings no job with RETRY 0 again, but the others in it."""
        once = peer_job(1, (B,), once=True)
        self.receive_jobs(B, YOURJOBS, once, serial=1)
        self.assertEqual([once.id], self.get(b"q"))
        self.node.delete([once.id])
        behind = peer_job(2, (B,))
        self.receive_jobs(B, YOURJOBS, once, behind, serial=1)
        self.assertEqual([behind.id], self.get(b"q", count=9))

    def test_own_waiting_job(self) -> None:
        """Receiving a copy of a job whose client still waits here changes nothing for the
        client."""
        client = self.begin_add(3)
        (wait,) = self.node.waiters.copies.values()
        job = peer_job(1, (B, C))
        job.id = wait.job.id
        self.receive_jobs(B, YOURJOBS, job)
        self.assertEqual((WAIT_REPL, []), (wait.job.state, self.replies(client)))


class LeavingTests(FederationCase):
    """Clients of a leaving node (section 8.9; client protocol, section 12.3)."""

    def test_waiting_for_jobs(self) -> None:
        """Clients that wait for jobs get an error; those that wait for copies get them."""
        adding, getting = self.begin_add(2), self.wait(b"q")
        self.leave()
        self.node.release_leaving()
        (error,) = self.replies(getting)
        assert isinstance(error, Error)
        self.assertTrue(error.line.startswith(b"LEAVING "))
        self.assertEqual([], self.replies(adding))

    def test_many_waiting_for_copies(self) -> None:
        """However many clients wait for copies, those that wait for jobs get their error."""
        for _ in range(2_001):
            self.begin_add(2)
        getting = self.wait(b"q")
        self.leave()
        self.node.release_leaving()
        self.assertNotEqual(BLOCKED_GETJOB, getting.blocked)


class PauseTests(FederationCase):
    """PAUSE ... bcast (section 11.6)."""

    def test_broadcast(self) -> None:
        """All nodes are asked to pause the queue in the same way."""
        self.node.pause_everywhere(b"q", PAUSE_ALL)
        for peer in self.peers:
            self.assertEqual([(b"q", 3)], self.requests(peer))

    def test_processes(self) -> None:
        """In a daemon of several processes its own are asked, and no other daemon."""
        self.node.membership.siblings = [B]
        self.node.pause_processes(b"q", PAUSE_ALL)
        asked = [peer for peer in self.peers if self.requests(peer)]
        self.assertEqual([B], asked)

    def test_received(self) -> None:
        """The queue is paused, and created if necessary; when the pause ends, waiting clients are
        served."""
        self.receive(B, QueueSignal(PAUSE, b"q", 0xFFFFFFFE))
        queue = self.node.queues.get(b"q")
        assert queue is not None
        self.assertEqual(PAUSE_OUT, queue.paused)
        client = self.wait(b"q")
        self.add(replicate=1)
        self.assertEqual([], self.replies(client))
        self.receive(B, QueueSignal(PAUSE, b"q", 0))
        self.assertEqual(1, len(self.replies(client)))

    def test_no_queue(self) -> None:
        """The end of a pause creates no queue."""
        self.receive(B, QueueSignal(PAUSE, b"none", 4))
        self.assertIsNone(self.node.queues.get(b"none"))


class FlowTests(FlowCase):
    """The same messages as originals in the same situation."""

    def test_importer(self) -> None:
        """Times differ: the original only checks every 100 ms whether it may send a request."""
        self.wait(b"empty q")
        self.replay("federation-importer", until_ms=10_100, tolerance_ms=300)
        self.assertEqual({PEER}, set(self.node.membership.nodes) - {ME})

    def after(self, event: dict[str, Any]) -> None:
        """The client got the job, and asks for the next one."""
        self.wait(b"empty q")
