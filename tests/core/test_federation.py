"""Jobs move to where they are wanted (cluster protocol, sections 11.3 to 11.6)."""

from __future__ import annotations

from typing import Any

from disque_tx.busmessages import NEEDJOBS, PAUSE, REPLJOB, YOURJOBS, JobsMessage, QueueSignal
from disque_tx.commands.values import Error
from disque_tx.core.client import BLOCKED_GETJOB
from disque_tx.core.federation import BYTES_MAX, JOBS_MAX
from disque_tx.core.queues import PAUSE_ALL, PAUSE_IN, PAUSE_OUT
from disque_tx.messages import ACTIVE, QUEUED, WAIT_REPL
from tests.core.bench import ME
from tests.core.peerbench import PEER, B, C, FlowCase, PeerCase, theirs


class TradeCase(PeerCase):
    """Jobs wanted and given."""

    def wanted(self, peer: bytes) -> list[tuple[bytes, int]]:
        """Queue and number of what ``peer`` was asked for."""
        return [(m.queue, m.aux) for m in self.sent(peer) if isinstance(m, QueueSignal)]

    def need(self, peer: bytes, count: int = 1, queue: bytes = b"q") -> None:
        """``peer`` asks this node."""
        self.receive(peer, QueueSignal(NEEDJOBS, queue, count))

    def given(self, peer: bytes) -> list[bytes]:
        """IDs of the jobs that ``peer`` was given."""
        messages = [m for m in self.sent(peer) if isinstance(m, JobsMessage)]
        return [job.id for message in messages for job in message.jobs]

    def given_by(self, peer: bytes, number: int, once: bool = False, serial: int = 0) -> bytes:
        """``peer`` gives a job; its ID."""
        job = theirs(number, (peer, ME), once=once)
        self.receive_jobs(peer, YOURJOBS, job, serial=serial)
        return job.id


class AskTests(TradeCase):
    """Whom this node asks, when, for how much."""

    def test_at_once(self) -> None:
        """A client that finds nothing makes all nodes be asked for one job, waiting or not."""
        self.assertEqual([], self.get(b"q"))
        self.wait(b"r")
        for peer in self.peers:
            self.assertEqual([(b"q", 1), (b"r", 1)], self.wanted(peer))

    def test_not_while_there_are_jobs(self) -> None:
        """A queue that serves its clients asks nobody."""
        self.add(replicate=1)
        self.get(b"q")
        self.assertEqual([], self.sent(B))

    def test_intervals(self) -> None:
        """While a client waits everybody is asked again, after 4, 12, 28, 58 seconds."""
        self.wait(b"q")
        times = []
        for step in range(3_000):
            times += [step // 50] * len(self.wanted(B))
            self.pass_ms(20)
        self.assertEqual([0, 4, 12, 28, 58], times)

    def test_nobody_waits(self) -> None:
        """When the client is gone, so is the interest; nothing wakes the node for it."""
        client = self.wait(b"q")
        self.node.client_gone(client)
        self.forget_sent()
        self.pass_slowly(60_000)
        self.assertEqual(([], -1), (self.sent(B), self.node.federation.next_due_ms()))

    def test_nobody_there(self) -> None:
        """Without a link the intervals do not grow: the first node that comes is asked soon."""
        for peer in self.peers:
            self.unlink(peer)
        self.wait(b"q")
        self.pass_slowly(60_000)
        self.link(B)
        self.pass_slowly(2_100)
        self.assertEqual([(b"q", 1)], self.wanted(B))

    def test_not_at_all(self) -> None:
        """A node that leaves, and a queue paused in output, ask nobody."""
        self.node.pause(b"q", PAUSE_OUT)
        self.wait(b"q")
        self.leave()
        self.get(b"r")
        self.assertEqual([], self.sent(B))

    def test_end_of_a_pause(self) -> None:
        """Soon after the pause the waiting client's queue asks again."""
        self.node.pause(b"q", PAUSE_OUT)
        self.wait(b"q")
        self.pass_ms(3_000)
        self.node.pause(b"q", 0)
        self.pass_slowly(2_100)
        self.assertEqual([(b"q", 1)], self.wanted(B))

    def test_giver_is_asked_for_more(self) -> None:
        """A queue that was emptied asks who gave, at once, and for more; nobody else."""
        self.wait(b"q")
        self.pass_ms(1_000)
        self.forget_sent()
        self.given_by(B, 1)
        self.assertEqual(([(b"q", 5)], []), (self.wanted(B), self.wanted(C)))

    def test_giver_is_asked_while_clients_wait(self) -> None:
        """Those who still wait make the giver be asked often, though everybody is only asked
        rarely by then."""
        for _ in range(3):
            self.wait(b"q")
        self.pass_slowly(30_000)
        self.given_by(B, 1)
        self.forget_sent()
        self.pass_slowly(1_000)
        self.assertEqual(4, self.wanted(B).count((b"q", 5)))

    def test_new_client_at_an_old_queue(self) -> None:
        """A client that comes later is not bound to the long intervals of one before."""
        first = self.wait(b"q")
        self.pass_slowly(30_000)
        self.given_by(B, 1)
        self.assertEqual(1, len(self.said(first)))
        self.wait(b"q")
        self.forget_sent()
        self.pass_slowly(1_000)
        self.assertEqual(4, self.wanted(B).count((b"q", 5)))

    def test_as_much_as_is_used(self) -> None:
        """Of a giver as much is asked as comes in a second, 100 at the most."""
        jobs = [theirs(number, (B, ME)) for number in range(300)]
        for number in range(0, 300, 50):
            self.receive_jobs(B, YOURJOBS, *jobs[number : number + 50])
        self.get(b"q", count=1_000)
        self.assertEqual((b"q", 100), self.wanted(B)[-1])


class GiveTests(TradeCase):
    """NEEDJOBS from another node."""

    def test_head_of_the_queue(self) -> None:
        """The oldest jobs are given, as many as asked but half of the queue at the most."""
        ids = [self.add(replicate=1) for _ in range(8)]
        self.need(B, 3)
        self.assertEqual(ids[:3], self.given(B))
        self.need(B, 5)
        self.assertEqual(ids[3:5], self.given(B))

    def test_the_last_one(self) -> None:
        """The only job is given, to somebody who asks for none as well."""
        for count in (0, 1, 50):
            job_id = self.add(replicate=1)
            self.need(B, count)
            self.assertEqual([job_id], self.given(B))

    def test_too_many(self) -> None:
        """Whoever asks for more than 100 gets 100."""
        for _ in range(300):
            self.add(replicate=1)
        self.need(B, 4_294_967_295)
        self.assertEqual(JOBS_MAX, len(self.given(B)))
        self.assertEqual(200, self.length())

    def test_large_jobs(self) -> None:
        """A message does not grow beyond what it takes to hold one large job more."""
        for _ in range(8):
            self.add(body=bytes(BYTES_MAX // 2), replicate=1)
        self.need(B, 4)
        self.assertEqual(2, len(self.given(B)))

    def test_longest_life(self) -> None:
        """A life that fills its field still does when the job goes on to another node."""
        job = theirs(1, (B, ME))
        self.receive_jobs(B, REPLJOB, job, life_s=4_294_967_295)
        self.node.enqueue([job.id], False)
        self.need(C)
        (given,) = [m for m in self.sent(C) if isinstance(m, JobsMessage)]
        self.assertEqual([4_294_967_295], given.lives_s)

    def test_giver_stays_holder(self) -> None:
        """The receiver becomes a holder on both sides; the giver waits for RETRY."""
        job = self.job(self.add(replicate=1, retry_s=10))
        self.need(B)
        (record,) = self.told_jobs(B).jobs
        self.assertEqual(((ME, B), (ME, B), ACTIVE), (job.nodes, record.nodes, job.state))
        self.pass_ms(10_000)
        self.assertEqual(QUEUED, job.state)

    def test_at_most_once(self) -> None:
        """A job with RETRY 0 moves: it is gone here, also from the record, and numbered."""
        self.add(retry_s=0, replicate=1)
        self.need(B)
        message = self.told_jobs(B)
        self.assertEqual((1, 1, {}), (len(message.jobs), message.serial, self.log.records))
        self.assert_nothing_left()

    def test_no_link(self) -> None:
        """To a node that cannot be reached nothing is given, so nothing is lost."""
        job_id = self.add(retry_s=0, replicate=1)
        self.unlink(B)
        self.need(B)
        self.assertEqual([job_id], self.get(b"q"))

    def test_refused(self) -> None:
        """Nothing from a missing, an empty, a paused or an importing queue."""
        self.need(B)
        self.assertIsNone(self.node.queues.get(b"q"))
        self.get(b"q")
        self.need(B)
        self.add(replicate=1)
        for flags in (PAUSE_OUT, PAUSE_ALL):
            self.node.pause(b"q", flags)
            self.need(B)
        self.node.pause(b"q", 0)
        self.given_by(C, 1)
        self.need(B)
        self.assertEqual((2, []), (self.length(), self.given(B)))
        self.pass_ms(6_000)
        self.need(B)
        self.assertEqual(1, len(self.given(B)))

    def test_leaving(self) -> None:
        """A node that leaves gives what it has: that is how it is drained."""
        job_id = self.add(replicate=1)
        self.leave()
        self.need(B)
        self.assertEqual([job_id], self.given(B))

    def test_expired(self) -> None:
        """What is not alive any more is not given."""
        self.add(replicate=1, ttl_s=1)
        self.begin(self.now_ms + 1_000, self.wall_us + 1_000_000)
        self.need(B)
        self.assertEqual([], self.given(B))
        self.assert_nothing_left()


class TakeTests(TradeCase):
    """YOURJOBS from another node."""

    def test_waiting_client(self) -> None:
        """The client that waits gets it at once, and nothing counts as a second delivery."""
        client = self.wait(b"q")
        job_id = self.given_by(B, 1)
        self.assertEqual([[[b"q", job_id, b"body"]]], self.said(client))
        self.assertEqual(0, self.job(job_id).deliveries)

    def test_recorded(self) -> None:
        """Given jobs are recorded, for with RETRY 0 nobody else has them any more."""
        job_id = self.given_by(B, 1, once=True, serial=1)
        self.assertEqual(QUEUED, self.log.records[job_id].state)

    def test_known(self) -> None:
        """Of a job that is known only new holders are taken; it is queued if it was not."""
        job = theirs(1, (B, ME))
        self.receive_jobs(C, REPLJOB, job)
        self.given_by(C, 1)
        self.assertEqual((QUEUED, (B, ME, C)), (self.job(job.id).state, self.job(job.id).nodes))
        self.given_by(C, 1)
        self.assertEqual(1, self.length())

    def test_counters_of_a_known_job(self) -> None:
        """A node that imports a job again shows what happened to it meanwhile, among holders that
        do not know of this one; what it knows itself is not forgotten."""
        job_id = self.given_by(B, 1)
        again = theirs(1, (B, C))
        again.deliveries, again.nacks = 3, 2
        self.receive_jobs(C, YOURJOBS, again)
        self.given_by(B, 1)
        self.assertEqual((3, 2), (self.job(job_id).deliveries, self.job(job_id).nacks))

    def test_held(self) -> None:
        """The order that external replication gives for RETRY 0: a copy that is held is queued."""
        job = theirs(1, (ME,), once=True)
        self.receive_jobs(B, REPLJOB, job)
        self.assertEqual([], self.get(b"q"))
        self.receive_jobs(B, YOURJOBS, job, serial=1)
        self.assertEqual([job.id], self.get(b"q"))
        self.receive_jobs(B, YOURJOBS, job, serial=2)
        self.assertEqual([], self.get(b"q"))

    def test_not_twice(self) -> None:
        """A repeated message does not deliver a RETRY 0 job again, even after it is forgotten."""
        job_id = self.given_by(B, 1, once=True, serial=1)
        self.assertEqual([job_id], self.get(b"q"))
        self.node.acknowledge([job_id])
        self.node.delete([job_id])
        self.given_by(B, 1, once=True, serial=1)
        self.assertEqual([], self.get(b"q"))

    def test_pauses_do_not_matter(self) -> None:
        """What was given is taken, in a queue paused in input and by a node that leaves."""
        self.node.pause(b"q", PAUSE_IN)
        self.leave()
        self.given_by(B, 1)
        self.assertEqual(1, self.length())

    def test_damaged(self) -> None:
        """Jobs without a job ID are skipped, the others are taken; an empty message is nothing."""
        bad, good = theirs(1, (B,)), theirs(2, (B,))
        bad.id = b"y" * 40
        self.receive_jobs(B, YOURJOBS, bad, good)
        self.receive_jobs(B, YOURJOBS)
        self.assertEqual([good.id], self.get(b"q", count=9))

    def test_own_waiting_job(self) -> None:
        """A copy of a job whose client still waits here changes nothing for the client."""
        client = self.ask(3)
        (wait,) = self.node.waiters.copies.values()
        job = theirs(1, (B, C))
        job.id = wait.job.id
        self.receive_jobs(B, YOURJOBS, job)
        self.assertEqual((WAIT_REPL, []), (wait.job.state, self.said(client)))


class LeavingTests(TradeCase):
    """Clients of a node that leaves (section 8.9; client protocol, section 12.3)."""

    def test_waiting_for_jobs(self) -> None:
        """They are sent elsewhere; those that wait for copies get them."""
        adding, getting = self.ask(2), self.wait(b"q")
        self.leave()
        self.node.release_leaving()
        (error,) = self.said(getting)
        assert isinstance(error, Error)
        self.assertTrue(error.line.startswith(b"LEAVING "))
        self.assertEqual([], self.said(adding))

    def test_many_waiting_for_copies(self) -> None:
        """However many wait for copies, those behind them that wait for jobs are sent away."""
        for _ in range(2_001):
            self.ask(2)
        getting = self.wait(b"q")
        self.leave()
        self.node.release_leaving()
        self.assertNotEqual(BLOCKED_GETJOB, getting.blocked)


class PauseTests(TradeCase):
    """PAUSE ... bcast (section 11.6)."""

    def test_said(self) -> None:
        """All nodes are asked to pause their queue in the same way."""
        self.node.pause_everywhere(b"q", PAUSE_ALL)
        for peer in self.peers:
            self.assertEqual([(b"q", 3)], self.wanted(peer))

    def test_heard(self) -> None:
        """The queue is paused, made if need be; the end of the pause serves who waits."""
        self.receive(B, QueueSignal(PAUSE, b"q", 0xFFFFFFFE))
        queue = self.node.queues.get(b"q")
        assert queue is not None
        self.assertEqual(PAUSE_OUT, queue.paused)
        client = self.wait(b"q")
        self.add(replicate=1)
        self.assertEqual([], self.said(client))
        self.receive(B, QueueSignal(PAUSE, b"q", 0))
        self.assertEqual(1, len(self.said(client)))

    def test_no_queue(self) -> None:
        """The end of a pause makes no queue."""
        self.receive(B, QueueSignal(PAUSE, b"none", 4))
        self.assertIsNone(self.node.queues.get(b"none"))


class FlowTests(FlowCase):
    """What originals say and hear in the same situation."""

    def test_importer(self) -> None:
        """Times differ: the original looks whether it may ask every 100 ms only."""
        self.wait(b"empty q")
        self.replay("federation-importer", until_ms=10_100, tolerance_ms=300)
        self.assertEqual({PEER}, set(self.node.membership.nodes) - {ME})

    def after(self, event: dict[str, Any]) -> None:
        """The client got the job, and asks again."""
        self.wait(b"empty q")
