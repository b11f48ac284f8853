"""Acknowledgements and their collection (cluster protocol, 7.9 to 7.11 and 10.8 to 10.10)."""

from __future__ import annotations

from itertools import pairwise

from disque_tx.commands.base.values import Error
from disque_tx.core.jobs.job import Job
from disque_tx.messages.bus import JobSignal
from disque_tx.messages.bustypes import (
    DELJOB,
    GOTACK,
    QUEUED,
    REPLJOB,
    SETACK,
    WILLQUEUE,
    WORKING,
    YOURJOBS,
)
from disque_tx.messages.records import ACKED, WAIT_REPL
from tests.core.bench import ME
from tests.core.peerbench import PEER, B, C, D, FlowCase, PeerCase, peer_job
from tests.core.recordedevents import RecordedEvents

UNKNOWN = b"D-cccccccc-%024d-05a1" % 1
UNKNOWN_ONCE = b"D-cccccccc-%024d-05a0" % 1


class AckCase(PeerCase):
    """Examines which node was sent which signals."""

    def signals(self, peer: bytes) -> list[tuple[int, int]]:
        """Type and aux of the signals sent to ``peer``."""
        return [(m.type, m.aux) for m in self.sent_to(peer) if isinstance(m, JobSignal)]

    def copy(self, *nodes: bytes, giver: bytes = b"") -> Job:
        """A job of another node that this node holds a copy of; or received to be queued, from
        ``giver``."""
        job = peer_job(1, nodes)
        self.receive_jobs(giver or B, YOURJOBS if giver else REPLJOB, job)
        self.clear_sent()
        return self.job(job.id)


class HolderTests(AckCase):
    """A holder collects acknowledgements."""

    def test_collected(self) -> None:
        """All holders are notified, and once each has confirmed, all may forget the job."""
        job = self.replicated(B, C)
        self.assertEqual(1, self.node.acknowledge([job.id]))
        self.assertEqual([[(SETACK, 3)]] * 2, [self.signals(B), self.signals(C)])
        self.assertEqual({}, self.log.records)
        self.receive_signal(B, GOTACK, job.id, 1)
        self.assertEqual(ACKED, self.job(job.id).state)
        self.receive_signal(C, GOTACK, job.id, 0)
        self.assertEqual([[(DELJOB, 0)]] * 2, [self.signals(B), self.signals(C)])
        self.assert_nothing_left()

    def test_maker_without_a_copy(self) -> None:
        """A node that leaves makes jobs on others only, and asks those that did not answer again.
        It gets the acknowledgement, or its last copy would bring the job back."""
        job = self.copy(C, ME)
        self.node.acknowledge([job.id])
        self.assertEqual([[(SETACK, 2)]] * 2, [self.signals(B), self.signals(C)])
        self.receive_signal(C, GOTACK, job.id, 1)
        self.assertEqual(ACKED, self.job(job.id).state)
        self.receive_signal(B, GOTACK, job.id, 0)
        self.assert_nothing_left()

    def test_original_that_made_the_job(self) -> None:
        """Section 19: an original that believes it is the only holder is not told of others, or it
        would crash while waiting for us."""
        job = self.copy(B, ME, C)
        self.node.membership.nodes[B].numbers = False
        self.node.acknowledge([job.id])
        self.assertEqual([[(SETACK, 0)], [(SETACK, 3)]], [self.signals(B), self.signals(C)])
        self.receive_signal(B, WILLQUEUE, job.id)
        self.assertEqual([(SETACK, 0)], self.signals(B))

    def test_not_delivered_any_more(self) -> None:
        """After its acknowledgement no client receives the job, whether it was queued or not."""
        job = self.replicated(B)
        self.node.acknowledge([job.id])
        self.assertEqual([], self.get(b"q"))
        self.assertEqual(0, self.node.enqueue([job.id], False))
        self.pass_slowly(120_000)
        self.assertEqual([], self.get(b"q"))

    def test_only_holder(self) -> None:
        """A job without other holders is deleted immediately."""
        job_id = self.status(self.begin_add(1))
        self.assertEqual([1, 0], [self.node.acknowledge([job_id]) for _ in range(2)])
        self.assertEqual([[(SETACK, 0)]] * 2, [self.signals(B), self.signals(C)])

    def test_attempts(self) -> None:
        """An unresponsive node is notified again after 1, 4, 8, ... 180 s, until the job expires,
        and for four seconds more, by which its copy may live longer."""
        job = self.replicated(B, ttl_s=3_600)
        begun_ms = self.now_ms
        self.node.acknowledge([job.id])
        times: list[int] = []
        while self.node.jobs.get(job.id) is not None:
            self.pass_ms(500)
            times += [(self.now_ms - begun_ms) // 1000] * len(self.sent_to(B))
        waits = [late - early for early, late in pairwise(times)]
        self.assertEqual([0, 1], times[:2])
        self.assertEqual([1, 4, 8, 16, 32, 64, 128, 180, 180], waits[:9])
        self.assertEqual(3_604, (self.now_ms - begun_ms) // 1000)
        self.assert_nothing_left()

    def test_link_comes_back(self) -> None:
        """An acknowledgement survives a broken link."""
        job = self.replicated(B)
        self.unlink(B)
        self.node.acknowledge([job.id])
        self.link(B)
        self.pass_ms(1_000)
        self.assertEqual([(SETACK, 2)], self.signals(B))
        self.receive_signal(B, GOTACK, job.id, 1)
        self.assert_nothing_left()

    def test_acknowledged_again(self) -> None:
        """ACKJOB of an acknowledged job is not counted, but notifies the others once more."""
        job = self.replicated(B)
        self.node.acknowledge([job.id])
        self.clear_sent()
        self.assertEqual(0, self.node.acknowledge([job.id]))
        self.assertEqual([(SETACK, 2)], self.signals(B))

    def test_holder_that_was_forgotten(self) -> None:
        """A holder that was removed from the cluster does not keep the job until its TTL ends."""
        job = self.replicated(B, C)
        self.node.cluster.forget(B)
        self.node.acknowledge([job.id])
        self.receive_signal(C, GOTACK, job.id, 1)
        self.pass_slowly(5_000)
        self.assertIsNotNone(self.node.jobs.get(job.id))
        self.pass_slowly(1_200_000)
        self.assert_nothing_left()

    def test_leaving(self) -> None:
        """A node that leaves asks again every eight seconds, and without naming holders: a holder
        that waits for a lost one, of which this node does not know, confirms then."""
        job = self.copy(B, ME)
        self.leave()
        self.node.acknowledge([job.id])
        self.assertEqual([(SETACK, 2)], self.signals(B))
        for pause_ms in (1_000, 4_000, 8_000, 8_000):
            self.pass_ms(pause_ms - 100)
            self.assertEqual([], self.signals(B))
            self.pass_ms(100)
            self.assertEqual([(SETACK, 0)], self.signals(B))
        self.receive_signal(B, GOTACK, job.id, 1)
        self.assert_nothing_left()

    def test_leaving_later(self) -> None:
        """So it does about jobs whose next attempt would be minutes away when it starts to
        leave, and does not send the same again and again."""
        job = self.copy(B, ME)
        self.node.acknowledge([job.id])
        self.pass_slowly(100_000)
        self.leave()
        self.clear_sent()
        for _ in range(3):
            self.assertFalse(self.node.acks.give_up(job, lambda node: False))
        self.assertEqual([(SETACK, 0)], self.signals(B))

    def test_confirmed_by_everybody_but_one(self) -> None:
        """Sets are compared, not sizes: a confirmation from a node that is no holder does not
        count."""
        self.join(D)
        job = self.replicated(B)
        self.node.acknowledge([job.id])
        self.receive_signal(D, GOTACK, job.id, 0)
        self.assertIsNotNone(self.node.jobs.get(job.id))

    def test_unexpected_holder(self) -> None:
        """A node that holds the job without being listed is added to the list of holders."""
        job = self.replicated(B)
        self.node.acknowledge([job.id])
        self.receive_signal(C, GOTACK, job.id, 1)
        self.clear_sent()
        self.receive_signal(B, GOTACK, job.id, 1)
        self.assertEqual([[(DELJOB, 0)]] * 2, [self.signals(B), self.signals(C)])

    def test_no_holder(self) -> None:
        """A node that does not hold the job and is not listed is not sent DELJOB."""
        job = self.replicated(B)
        self.node.acknowledge([job.id])
        self.receive_signal(C, GOTACK, job.id, 0)
        self.assertEqual((ME, B), job.nodes)
        self.clear_sent()
        self.receive_signal(B, GOTACK, job.id, 1)
        self.assertEqual([[(DELJOB, 0)], []], [self.signals(B), self.signals(C)])

    def test_answers_about_other_jobs(self) -> None:
        """GOTACK about a job that is unknown or not acknowledged changes nothing."""
        job = self.replicated(B)
        self.receive_signal(B, GOTACK, job.id, 1)
        self.receive_signal(B, GOTACK, UNKNOWN, 1)
        self.assertEqual([job.id], self.get(b"q"))


class SetackTests(AckCase):
    """SETACK received from another node (section 7.9)."""

    def test_known(self) -> None:
        """The job ends here too; its record is deleted, and the reply says that it was known."""
        job = self.copy(B, ME)
        self.receive_signal(B, SETACK, job.id, 2)
        self.assertEqual([(GOTACK, 1)], self.signals(B))
        self.assertEqual((ACKED, {}), (job.state, self.log.records))
        self.receive_signal(B, DELJOB, job.id)
        self.assert_nothing_left()

    def test_unknown(self) -> None:
        """Originals wait for a reply from every holder, so SETACK of an unknown job is answered
        too."""
        self.receive_signal(B, SETACK, UNKNOWN, 2)
        self.assertEqual([(GOTACK, 0)], self.signals(B))
        self.assert_nothing_left()

    def test_sender_knows_fewer(self) -> None:
        """A node that knows more holders than the sender keeps the job and does not reply yet."""
        job = self.copy(B, C, ME)
        self.receive_signal(B, SETACK, job.id, 2)
        self.assertEqual([[(SETACK, 3)]] * 2, [self.signals(B), self.signals(C)])

    def test_sender_is_no_holder(self) -> None:
        """With aux 0 the sender gets its reply, and this node goes on collecting."""
        self.join(D)
        job = self.copy(B, ME)
        self.receive_signal(D, SETACK, job.id, 0)
        self.assertEqual(([(GOTACK, 1)], [(SETACK, 2)]), (self.signals(D), self.signals(B)))

    def test_forgets_alone(self) -> None:
        """When the DELJOB is lost, this node sends SETACK itself and then forgets the job."""
        job = self.copy(B, ME)
        self.receive_signal(B, SETACK, job.id, 2)
        self.clear_sent()
        self.pass_ms(1_000)
        self.assertEqual([(SETACK, 2)], self.signals(B))
        self.receive_signal(B, GOTACK, job.id, 0)
        self.assert_nothing_left()

    def test_only_holder(self) -> None:
        """The only holder, notified by a node that lists itself, eventually forgets the job."""
        job = self.copy(ME)
        self.receive_signal(B, SETACK, job.id, 1)
        self.assertEqual([(GOTACK, 1)], self.signals(B))
        self.assertEqual(0, self.node.acknowledge([]))
        self.pass_ms(1_000)
        self.assert_nothing_left()

    def test_acknowledged_twice(self) -> None:
        """ACKJOB of a job that was acknowledged on another node before is not counted."""
        job = self.copy(ME)
        self.receive_signal(B, SETACK, job.id, 1)
        self.assertEqual(0, self.node.acknowledge([job.id]))

    def test_asked_about_a_done_job(self) -> None:
        """The reply to any message about an acknowledged job is SETACK; DELJOB ends the
        exchange."""
        job = self.copy(B, ME)
        self.receive_signal(B, SETACK, job.id, 2)
        self.clear_sent()
        for kind in (WILLQUEUE, QUEUED, WORKING):
            self.receive_signal(B, kind, job.id)
            self.assertEqual([(SETACK, 2)], self.signals(B))

    def test_given_a_done_job(self) -> None:
        """An acknowledged job is not accepted again; its sender is notified with SETACK."""
        job = self.copy(B, ME)
        self.receive_signal(B, SETACK, job.id, 2)
        self.clear_sent()
        self.receive_jobs(B, YOURJOBS, peer_job(1, (B, ME)))
        self.assertEqual(([(SETACK, 2)], []), (self.signals(B), self.get(b"q")))


class ImportedTests(AckCase):
    """A job received from a node that did not list this one as a holder (section 10.10)."""

    def test_giver_is_notified(self) -> None:
        """The only holder is notified with aux 0, and takes over: it does not deliver the job
        again."""
        job = self.copy(B, giver=B)
        self.assertEqual([job.id], self.get(b"q"))
        self.node.acknowledge([job.id])
        self.assertEqual([(SETACK, 0)], self.signals(B))
        self.receive_signal(B, GOTACK, job.id, 1)
        self.assertEqual([], self.signals(B))
        self.assert_nothing_left()

    def test_retried_until_reachable(self) -> None:
        """A sender that cannot be reached is notified later."""
        job = self.copy(B, giver=B)
        self.unlink(B)
        self.node.acknowledge([job.id])
        self.link(B)
        self.pass_ms(1_000)
        self.assertEqual([(SETACK, 0)], self.signals(B))

    def test_nobody_knows(self) -> None:
        """When no holder knows the job any longer it is forgotten, without a DELJOB."""
        job = self.copy(B, C, giver=B)
        self.node.acknowledge([job.id])
        self.clear_sent()
        self.receive_signal(B, GOTACK, job.id, 0)
        self.receive_signal(C, GOTACK, job.id, 0)
        self.assertEqual([], self.signals(B) + self.signals(C))
        self.assert_nothing_left()

    def test_listed(self) -> None:
        """Received from a node that lists this one, it is collected like every other job."""
        job = self.copy(B, ME, giver=B)
        self.node.acknowledge([job.id])
        self.assertEqual([(SETACK, 2)], self.signals(B))


class DummyTests(AckCase):
    """ACKJOB of a job that is unknown to this node."""

    def test_somebody_knows(self) -> None:
        """Every node is notified; once a holder replies, the holder does the rest."""
        self.assertEqual(0, self.node.acknowledge([UNKNOWN]))
        self.assertEqual([[(SETACK, 0)]] * 2, [self.signals(B), self.signals(C)])
        self.receive_signal(B, GOTACK, UNKNOWN, 1)
        self.assert_nothing_left()

    def test_nobody_knows(self) -> None:
        """When all replied that they do not know it either, it is forgotten."""
        self.node.acknowledge([UNKNOWN])
        self.receive_signal(B, GOTACK, UNKNOWN, 0)
        self.assertEqual(1, self.node.jobs.acked)
        self.receive_signal(C, GOTACK, UNKNOWN, 0)
        self.assert_nothing_left()

    def test_a_node_is_gone(self) -> None:
        """A node that was removed from the cluster is not waited for."""
        self.node.acknowledge([UNKNOWN])
        self.receive_signal(B, GOTACK, UNKNOWN, 0)
        self.node.cluster.forget(C)
        self.pass_ms(1_000)
        self.assert_nothing_left()

    def test_end(self) -> None:
        """It is kept no longer than the last copy may live by the TTL in the job's ID, and nothing
        is logged."""
        self.node.acknowledge([UNKNOWN])
        self.pass_ms(0x5A1 * 60_000 + 4_000 - 20)
        self.assertIsNotNone(self.node.jobs.get(UNKNOWN))
        self.pass_ms(20)
        self.assert_nothing_left()
        self.assertEqual([], self.log.lines)

    def test_not_made(self) -> None:
        """There is none for RETRY 0, on a leaving node, or on a node without peers."""
        self.node.acknowledge([UNKNOWN_ONCE])
        self.leave()
        self.node.acknowledge([UNKNOWN])
        self.node.membership.set_leaving(False)
        for peer in self.peers:
            self.node.cluster.forget(peer)
        self.node.acknowledge([UNKNOWN])
        self.assert_nothing_left()

    def test_blank(self) -> None:
        """SHOW has nothing to print about it, rather than garbage."""
        self.node.acknowledge([UNKNOWN])
        job = self.job(UNKNOWN)
        self.assertEqual(
            (b"", b"", (), 0, 0, 0, 0),
            (job.queue, job.body, job.nodes, job.repl, job.retry_s, job.ctime, job.nacks),
        )

    def test_two_of_them(self) -> None:
        """When two nodes have a dummy of the same job, only one goes on looking for its holders:
        the node with the greater ID replies that it does, and the other stops."""
        self.node.acknowledge([UNKNOWN])
        self.clear_sent()
        self.receive_signal(B, SETACK, UNKNOWN, 0)
        self.assertEqual([(GOTACK, 0)], self.signals(B))
        small = b"0" * 40
        self.join(small)
        self.receive_signal(small, SETACK, UNKNOWN, 0)
        self.assertEqual([(GOTACK, 1)], self.signals(small))
        self.receive_signal(B, GOTACK, UNKNOWN, 1)
        self.assert_nothing_left()

    def test_lists_of_one_length(self) -> None:
        """Two lists that grew independently may name different holders: each of them is
        notified."""
        job = self.replicated(B)
        self.node.jobs.merge_holders(job, (C,))
        self.clear_sent()
        self.receive_signal(B, SETACK, job.id, 3)
        self.assertEqual([(GOTACK, 1), (SETACK, 3)], self.signals(B))
        self.assertEqual([(SETACK, 3)], self.signals(C))

    def test_a_job_comes_later(self) -> None:
        """A copy that arrives after its acknowledgement names holders, which are then notified."""
        self.node.acknowledge([UNKNOWN])
        self.clear_sent()
        late = peer_job(1, (B, ME))
        late.id = UNKNOWN
        self.receive_jobs(B, REPLJOB, late)
        self.clear_sent()
        self.node.acknowledge([UNKNOWN])
        self.assertEqual(([(SETACK, 2)], []), (self.signals(B), self.signals(C)))
        self.receive_signal(B, GOTACK, UNKNOWN, 1)
        self.assertEqual([(DELJOB, 0)], self.signals(B))
        self.assert_nothing_left()

    def test_given(self) -> None:
        """The job itself, sent to this node, is not accepted: its sender is notified that it is
        done."""
        self.node.acknowledge([UNKNOWN])
        self.clear_sent()
        late = peer_job(1, (B, ME))
        late.id = UNKNOWN
        self.receive_jobs(B, YOURJOBS, late)
        self.assertEqual(([(SETACK, 0)], []), (self.signals(B), self.get(b"q")))


class WaitingTests(AckCase):
    """A job that is acknowledged while its client still waits for copies."""

    def test_by_another_node(self) -> None:
        """The client gets the ID, because the job was processed; no other client receives the
        job."""
        client = self.begin_add(3)
        (wait,) = self.node.waiters.copies.values()
        self.receive_signal(B, SETACK, wait.job.id, 3)
        self.assertEqual(wait.job.id, self.status(client))
        self.assertEqual([], self.get(b"q"))
        self.receive_signal(B, DELJOB, wait.job.id)
        self.assert_nothing_left()

    def test_by_a_client(self) -> None:
        """ACKJOB does the same, and is counted."""
        client = self.begin_add(3)
        (wait,) = self.node.waiters.copies.values()
        self.assertEqual(1, self.node.acknowledge([wait.job.id]))
        self.assertEqual(wait.job.id, self.status(client))
        for peer in self.peers:
            self.receive_signal(peer, GOTACK, wait.job.id, 1)
        self.assert_nothing_left()

    def test_without_a_copy_here(self) -> None:
        """A leaving node that waits for confirmations sends no ENQUEUE for an acknowledged job."""
        self.leave()
        for by_client in (False, True):
            client = self.begin_add(2)
            (wait,) = self.node.waiters.copies.values()
            self.clear_sent()
            if by_client:
                self.assertEqual(1, self.node.acknowledge([wait.job.id]))
            else:
                self.receive_signal(B, SETACK, wait.job.id, 2)
            self.assertEqual(wait.job.id, self.status(client))
            self.assertNotIn("ENQUEUE", self.sent_names(B) + self.sent_names(C))
            self.assertEqual(ACKED, self.job(wait.job.id).state)
            self.receive_signal(B, GOTACK, wait.job.id, 1)
            self.assert_nothing_left()

    def test_fast(self) -> None:
        """FASTACK deletes the job, so its waiting client gets an error."""
        client = self.begin_add(3)
        (wait,) = self.node.waiters.copies.values()
        self.assertEqual(WAIT_REPL, wait.job.state)
        self.assertEqual(1, self.node.fast_acknowledge([wait.job.id]))
        self.assertIsInstance(self.replies(client)[0], Error)
        self.assert_nothing_left()

    def test_fast_ends_once(self) -> None:
        """The holders get one message and the event log one event: anyone who counts the ends of
        jobs by messages or events would otherwise count this one twice."""
        events = self.node.outbox.events = RecordedEvents()
        self.begin_add(3)
        (wait,) = self.node.waiters.copies.values()
        self.clear_sent()
        events.take()
        self.node.fast_acknowledge([wait.job.id])
        self.assertEqual([[(DELJOB, 0)]] * 2, [self.signals(B), self.signals(C)])
        self.assertEqual([("deleted", "not-replicated", 0, -1)], events.take())

    def test_flushed_once(self) -> None:
        """A job that FLUSHALL cancels is not counted again among the flushed ones."""
        self.begin_add(3)
        self.begin_add(1)
        events = self.node.outbox.events = RecordedEvents()
        self.node.flush_all()
        self.assertEqual([("deleted", "not-replicated", 0, -1), ("flushed", 1)], events.take())


class FastTests(AckCase):
    """FASTACK and DELJOB."""

    def test_known(self) -> None:
        """All holders are sent one DELJOB, to which they do not reply."""
        job = self.replicated(B)
        self.assertEqual(1, self.node.fast_acknowledge([job.id]))
        self.assertEqual(([(DELJOB, 0)], []), (self.signals(B), self.signals(C)))
        self.assert_nothing_left()

    def test_unknown(self) -> None:
        """For an unknown job DELJOB is sent to all nodes."""
        self.assertEqual(0, self.node.fast_acknowledge([UNKNOWN]))
        self.assertEqual([[(DELJOB, 0)]] * 2, [self.signals(B), self.signals(C)])

    def test_only_here(self) -> None:
        """DELJOB as a command sends nothing to other nodes."""
        job = self.replicated(B)
        self.assertEqual(1, self.node.delete([job.id]))
        self.assertEqual([], self.signals(B))

    def test_received(self) -> None:
        """DELJOB from another node removes a job in any state, from the log too if it was
        active."""
        queued, done = self.replicated(B), self.replicated(B)
        self.node.acknowledge([done.id])
        for job in (queued, done):
            self.receive_signal(B, DELJOB, job.id)
        self.receive_signal(B, DELJOB, UNKNOWN)
        self.assertEqual({}, self.log.records)
        self.assert_nothing_left()


class FlowTests(FlowCase):
    """The same messages as originals in the same situations."""

    def test_replica(self) -> None:
        """A holder that knows a job to be acknowledged replies with SETACK to any message about
        it."""
        self.replay("replica-side")

    def test_collected(self) -> None:
        """The acknowledgement of a job with two holders."""
        job = self.replicated(PEER)
        self.node.acknowledge([job.id])
        self.replay("ack-gc", job.id)
        self.assert_nothing_left()

    def test_unknown_everywhere(self) -> None:
        """The acknowledgement of an ID that no node knows."""
        self.node.acknowledge([self.flow("dummy-ack-unknown-everywhere")[0]["id"].encode()])
        self.replay("dummy-ack-unknown-everywhere")
        self.assert_nothing_left()
