"""Acknowledgements and their collection (cluster protocol, 7.9 to 7.11 and 10.8 to 10.10)."""

from __future__ import annotations

from itertools import pairwise

from disque_tx.busmessages import (
    DELJOB,
    GOTACK,
    QUEUED,
    REPLJOB,
    SETACK,
    WILLQUEUE,
    WORKING,
    YOURJOBS,
    JobSignal,
)
from disque_tx.commands.values import Error
from disque_tx.core.job import Job
from disque_tx.messages import ACKED, WAIT_REPL
from tests.core.bench import ME
from tests.core.notes import Notes
from tests.core.peerbench import PEER, B, C, D, FlowCase, PeerCase, theirs

UNKNOWN = b"D-cccccccc-%024d-05a1" % 1
UNKNOWN_ONCE = b"D-cccccccc-%024d-05a0" % 1


class AckCase(PeerCase):
    """Asks who was told what."""

    def signals(self, peer: bytes) -> list[tuple[int, int]]:
        """Type and aux of what ``peer`` was told."""
        return [(m.type, m.aux) for m in self.sent(peer) if isinstance(m, JobSignal)]

    def copy(self, *nodes: bytes, giver: bytes = b"") -> Job:
        """A job of another node that this one knows; given to be queued by ``giver``."""
        job = theirs(1, nodes)
        self.receive_jobs(giver or B, YOURJOBS if giver else REPLJOB, job)
        self.forget_sent()
        return self.job(job.id)


class HolderTests(AckCase):
    """A holder collects the acknowledgement."""

    def test_collected(self) -> None:
        """All holders are told, and when each has confirmed all may forget the job."""
        job = self.replicated(B, C)
        self.assertEqual(1, self.node.acknowledge([job.id]))
        self.assertEqual([[(SETACK, 3)]] * 2, [self.signals(B), self.signals(C)])
        self.assertEqual({}, self.log.records)
        self.receive_signal(B, GOTACK, job.id, 1)
        self.assertEqual(ACKED, self.job(job.id).state)
        self.receive_signal(C, GOTACK, job.id, 0)
        self.assertEqual([[(DELJOB, 0)]] * 2, [self.signals(B), self.signals(C)])
        self.assert_nothing_left()

    def test_original_that_made_the_job(self) -> None:
        """Section 19: an original that may believe to be the only holder hears of no others, or it
        would crash while it waits for us."""
        job = self.copy(B, ME, C)
        self.node.membership.nodes[B].numbers = False
        self.node.acknowledge([job.id])
        self.assertEqual([[(SETACK, 0)], [(SETACK, 3)]], [self.signals(B), self.signals(C)])
        self.receive_signal(B, WILLQUEUE, job.id)
        self.assertEqual([(SETACK, 0)], self.signals(B))

    def test_not_delivered_any_more(self) -> None:
        """From the acknowledgement on nobody gets the job, in its queue or not."""
        job = self.replicated(B)
        self.node.acknowledge([job.id])
        self.assertEqual([], self.get(b"q"))
        self.assertEqual(0, self.node.enqueue([job.id], False))
        self.pass_slowly(120_000)
        self.assertEqual([], self.get(b"q"))

    def test_only_holder(self) -> None:
        """A job that nobody else has is gone at once."""
        job_id = self.status(self.ask(1))
        self.assertEqual([1, 0], [self.node.acknowledge([job_id]) for _ in range(2)])
        self.assertEqual([[(SETACK, 0)]] * 2, [self.signals(B), self.signals(C)])

    def test_attempts(self) -> None:
        """A node that is silent is told again after 1, 4, 8, ... 180 s, until the job's end."""
        job = self.replicated(B, ttl_s=3_600)
        begun_ms = self.now_ms
        self.node.acknowledge([job.id])
        times: list[int] = []
        while self.node.jobs.get(job.id) is not None:
            self.pass_ms(500)
            times += [(self.now_ms - begun_ms) // 1000] * len(self.sent(B))
        waits = [late - early for early, late in pairwise(times)]
        self.assertEqual([0, 1], times[:2])
        self.assertEqual([1, 4, 8, 16, 32, 64, 128, 180, 180], waits[:9])
        self.assertEqual(3_600, (self.now_ms - begun_ms) // 1000)
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
        """ACKJOB of a job that is done counts nothing, and tells the others once more."""
        job = self.replicated(B)
        self.node.acknowledge([job.id])
        self.forget_sent()
        self.assertEqual(0, self.node.acknowledge([job.id]))
        self.assertEqual([(SETACK, 2)], self.signals(B))

    def test_holder_that_was_forgotten(self) -> None:
        """A holder that left the cluster for good is not waited for till the end of the job."""
        job = self.replicated(B, C)
        self.node.cluster.forget(B, self.now_ms)
        self.node.acknowledge([job.id])
        self.receive_signal(C, GOTACK, job.id, 1)
        self.pass_slowly(5_000)
        self.assertIsNotNone(self.node.jobs.get(job.id))
        self.pass_slowly(1_200_000)
        self.assert_nothing_left()

    def test_confirmed_by_everybody_but_one(self) -> None:
        """Sets are compared, not sizes: a confirmation of somebody else does not count."""
        self.join(D)
        job = self.replicated(B)
        self.node.acknowledge([job.id])
        self.receive_signal(D, GOTACK, job.id, 0)
        self.assertIsNotNone(self.node.jobs.get(job.id))

    def test_unexpected_holder(self) -> None:
        """Who knows the job though nobody listed it becomes one of those that may forget it."""
        job = self.replicated(B)
        self.node.acknowledge([job.id])
        self.receive_signal(C, GOTACK, job.id, 1)
        self.forget_sent()
        self.receive_signal(B, GOTACK, job.id, 1)
        self.assertEqual([[(DELJOB, 0)]] * 2, [self.signals(B), self.signals(C)])

    def test_no_holder(self) -> None:
        """Who does not know the job and is not listed is not told to forget it."""
        job = self.replicated(B)
        self.node.acknowledge([job.id])
        self.receive_signal(C, GOTACK, job.id, 0)
        self.assertEqual((ME, B), job.nodes)
        self.forget_sent()
        self.receive_signal(B, GOTACK, job.id, 1)
        self.assertEqual([[(DELJOB, 0)], []], [self.signals(B), self.signals(C)])

    def test_answers_about_other_jobs(self) -> None:
        """GOTACK about a job that is unknown or not done changes nothing."""
        job = self.replicated(B)
        self.receive_signal(B, GOTACK, job.id, 1)
        self.receive_signal(B, GOTACK, UNKNOWN, 1)
        self.assertEqual([job.id], self.get(b"q"))


class ToldTests(AckCase):
    """SETACK from another node (section 7.9)."""

    def test_known(self) -> None:
        """The job is over here too; its record ends, and the sender hears that it was known."""
        job = self.copy(B, ME)
        self.receive_signal(B, SETACK, job.id, 2)
        self.assertEqual([(GOTACK, 1)], self.signals(B))
        self.assertEqual((ACKED, {}), (job.state, self.log.records))
        self.receive_signal(B, DELJOB, job.id)
        self.assert_nothing_left()

    def test_unknown(self) -> None:
        """Originals wait for an answer of every holder, so an unknown job is answered too."""
        self.receive_signal(B, SETACK, UNKNOWN, 2)
        self.assertEqual([(GOTACK, 0)], self.signals(B))
        self.assert_nothing_left()

    def test_sender_knows_fewer(self) -> None:
        """Who knows more holders goes on, and lets the sender wait."""
        job = self.copy(B, C, ME)
        self.receive_signal(B, SETACK, job.id, 2)
        self.assertEqual([[(SETACK, 3)]] * 2, [self.signals(B), self.signals(C)])

    def test_sender_is_no_holder(self) -> None:
        """aux 0: the sender can forget about it, this node goes on."""
        self.join(D)
        job = self.copy(B, ME)
        self.receive_signal(D, SETACK, job.id, 0)
        self.assertEqual(([(GOTACK, 1)], [(SETACK, 2)]), (self.signals(D), self.signals(B)))

    def test_forgets_alone(self) -> None:
        """When the DELJOB is lost, this node asks by itself, and forgets the job."""
        job = self.copy(B, ME)
        self.receive_signal(B, SETACK, job.id, 2)
        self.forget_sent()
        self.pass_ms(1_000)
        self.assertEqual([(SETACK, 2)], self.signals(B))
        self.receive_signal(B, GOTACK, job.id, 0)
        self.assert_nothing_left()

    def test_only_holder(self) -> None:
        """The only holder, told by one that lists itself, forgets the job in the end."""
        job = self.copy(ME)
        self.receive_signal(B, SETACK, job.id, 1)
        self.assertEqual([(GOTACK, 1)], self.signals(B))
        self.assertEqual(0, self.node.acknowledge([]))
        self.pass_ms(1_000)
        self.assert_nothing_left()

    def test_acknowledged_twice(self) -> None:
        """ACKJOB of a job that another node acknowledged before is not counted."""
        job = self.copy(ME)
        self.receive_signal(B, SETACK, job.id, 1)
        self.assertEqual(0, self.node.acknowledge([job.id]))

    def test_asked_about_a_done_job(self) -> None:
        """Whoever says something about a job that is done hears so; DELJOB ends it."""
        job = self.copy(B, ME)
        self.receive_signal(B, SETACK, job.id, 2)
        self.forget_sent()
        for kind in (WILLQUEUE, QUEUED, WORKING):
            self.receive_signal(B, kind, job.id)
            self.assertEqual([(SETACK, 2)], self.signals(B))

    def test_given_a_done_job(self) -> None:
        """A job that is done is not taken again; the giver hears that it is done."""
        job = self.copy(B, ME)
        self.receive_signal(B, SETACK, job.id, 2)
        self.forget_sent()
        self.receive_jobs(B, YOURJOBS, theirs(1, (B, ME)))
        self.assertEqual(([(SETACK, 2)], []), (self.signals(B), self.get(b"q")))


class ImportedTests(AckCase):
    """A job that was given by a node which did not list this one (section 10.10)."""

    def test_the_giver_hears(self) -> None:
        """The only holder is told, with aux 0, and takes over: it does not deliver it again."""
        job = self.copy(B, giver=B)
        self.assertEqual([job.id], self.get(b"q"))
        self.node.acknowledge([job.id])
        self.assertEqual([(SETACK, 0)], self.signals(B))
        self.receive_signal(B, GOTACK, job.id, 1)
        self.assertEqual([], self.signals(B))
        self.assert_nothing_left()

    def test_told_until_heard(self) -> None:
        """A giver that cannot be reached is told later."""
        job = self.copy(B, giver=B)
        self.unlink(B)
        self.node.acknowledge([job.id])
        self.link(B)
        self.pass_ms(1_000)
        self.assertEqual([(SETACK, 0)], self.signals(B))

    def test_nobody_knows(self) -> None:
        """When no holder knows the job any more it is forgotten, without a DELJOB."""
        job = self.copy(B, C, giver=B)
        self.node.acknowledge([job.id])
        self.forget_sent()
        self.receive_signal(B, GOTACK, job.id, 0)
        self.receive_signal(C, GOTACK, job.id, 0)
        self.assertEqual([], self.signals(B) + self.signals(C))
        self.assert_nothing_left()

    def test_listed(self) -> None:
        """Given by a node that lists the receiver, it is collected like every job."""
        job = self.copy(B, ME, giver=B)
        self.node.acknowledge([job.id])
        self.assertEqual([(SETACK, 2)], self.signals(B))


class DummyTests(AckCase):
    """ACKJOB of a job that this node never heard of."""

    def test_somebody_knows(self) -> None:
        """Everybody is told; when a holder has heard it, it goes on alone."""
        self.assertEqual(0, self.node.acknowledge([UNKNOWN]))
        self.assertEqual([[(SETACK, 0)]] * 2, [self.signals(B), self.signals(C)])
        self.receive_signal(B, GOTACK, UNKNOWN, 1)
        self.assert_nothing_left()

    def test_nobody_knows(self) -> None:
        """When all answered that they do not know it either, it is forgotten."""
        self.node.acknowledge([UNKNOWN])
        self.receive_signal(B, GOTACK, UNKNOWN, 0)
        self.assertEqual(1, self.node.jobs.acked)
        self.receive_signal(C, GOTACK, UNKNOWN, 0)
        self.assert_nothing_left()

    def test_a_node_is_gone(self) -> None:
        """Who was forgotten is not waited for."""
        self.node.acknowledge([UNKNOWN])
        self.receive_signal(B, GOTACK, UNKNOWN, 0)
        self.node.cluster.forget(C, self.now_ms)
        self.pass_ms(1_000)
        self.assert_nothing_left()

    def test_end(self) -> None:
        """It is kept no longer than the job can live, as its ID says; nothing is recorded."""
        self.node.acknowledge([UNKNOWN])
        self.pass_ms(0x5A1 * 60_000 - 20)
        self.assertIsNotNone(self.node.jobs.get(UNKNOWN))
        self.pass_ms(20)
        self.assert_nothing_left()
        self.assertEqual([], self.log.lines)

    def test_not_made(self) -> None:
        """Not for RETRY 0, not by a leaving node, not by one that is alone."""
        self.node.acknowledge([UNKNOWN_ONCE])
        self.leave()
        self.node.acknowledge([UNKNOWN])
        self.node.membership.set_leaving(False)
        for peer in self.peers:
            self.node.cluster.forget(peer, self.now_ms)
        self.node.acknowledge([UNKNOWN])
        self.assert_nothing_left()

    def test_blank(self) -> None:
        """What SHOW would tell of it is nothing, not garbage."""
        self.node.acknowledge([UNKNOWN])
        job = self.job(UNKNOWN)
        self.assertEqual(
            (b"", b"", (), 0, 0, 0, 0),
            (job.queue, job.body, job.nodes, job.repl, job.retry_s, job.ctime, job.nacks),
        )

    def test_two_of_them(self) -> None:
        """Of two nodes that never knew the job one goes on looking for its holders: the one with
        the greater ID says that it does, and the other one hears that."""
        self.node.acknowledge([UNKNOWN])
        self.forget_sent()
        self.receive_signal(B, SETACK, UNKNOWN, 0)
        self.assertEqual([(GOTACK, 0)], self.signals(B))
        small = b"0" * 40
        self.join(small)
        self.receive_signal(small, SETACK, UNKNOWN, 0)
        self.assertEqual([(GOTACK, 1)], self.signals(small))
        self.receive_signal(B, GOTACK, UNKNOWN, 1)
        self.assert_nothing_left()

    def test_lists_of_one_length(self) -> None:
        """Two lists that grew may name different holders: each of them hears of it."""
        job = self.replicated(B)
        self.node.jobs.merge_holders(job, (C,))
        self.forget_sent()
        self.receive_signal(B, SETACK, job.id, 3)
        self.assertEqual([(GOTACK, 1), (SETACK, 3)], self.signals(B))
        self.assertEqual([(SETACK, 3)], self.signals(C))

    def test_a_job_comes_later(self) -> None:
        """A copy that comes behind its acknowledgement names holders, who are told."""
        self.node.acknowledge([UNKNOWN])
        self.forget_sent()
        late = theirs(1, (B, ME))
        late.id = UNKNOWN
        self.receive_jobs(B, REPLJOB, late)
        self.forget_sent()
        self.node.acknowledge([UNKNOWN])
        self.assertEqual(([(SETACK, 2)], []), (self.signals(B), self.signals(C)))
        self.receive_signal(B, GOTACK, UNKNOWN, 1)
        self.assertEqual([(DELJOB, 0)], self.signals(B))
        self.assert_nothing_left()

    def test_given(self) -> None:
        """The job itself, given to this node, is not taken: its giver hears that it is done."""
        self.node.acknowledge([UNKNOWN])
        self.forget_sent()
        late = theirs(1, (B, ME))
        late.id = UNKNOWN
        self.receive_jobs(B, YOURJOBS, late)
        self.assertEqual(([(SETACK, 0)], []), (self.signals(B), self.get(b"q")))


class WaitingTests(AckCase):
    """A job that is acknowledged while its client still waits for copies."""

    def test_by_another_node(self) -> None:
        """The client gets its ID, for the job was worked on; nobody gets it again."""
        client = self.ask(3)
        (wait,) = self.node.waiters.copies.values()
        self.receive_signal(B, SETACK, wait.job.id, 3)
        self.assertEqual(wait.job.id, self.status(client))
        self.assertEqual([], self.get(b"q"))
        self.receive_signal(B, DELJOB, wait.job.id)
        self.assert_nothing_left()

    def test_by_a_client(self) -> None:
        """ACKJOB does the same, and counts."""
        client = self.ask(3)
        (wait,) = self.node.waiters.copies.values()
        self.assertEqual(1, self.node.acknowledge([wait.job.id]))
        self.assertEqual(wait.job.id, self.status(client))
        for peer in self.peers:
            self.receive_signal(peer, GOTACK, wait.job.id, 1)
        self.assert_nothing_left()

    def test_without_a_copy_here(self) -> None:
        """A leaving node that waits for others to confirm tells nobody to queue a done job."""
        self.leave()
        for by_client in (False, True):
            client = self.ask(2)
            (wait,) = self.node.waiters.copies.values()
            self.forget_sent()
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
        """FASTACK refuses the client, whose job is gone."""
        client = self.ask(3)
        (wait,) = self.node.waiters.copies.values()
        self.assertEqual(WAIT_REPL, wait.job.state)
        self.assertEqual(1, self.node.fast_acknowledge([wait.job.id]))
        self.assertIsInstance(self.said(client)[0], Error)
        self.assert_nothing_left()

    def test_fast_ends_once(self) -> None:
        """The holders hear of the end once, and it is one event: whoever counts ends of jobs by
        messages or events would count this one twice."""
        notes = self.node.outbox.events = Notes()
        self.ask(3)
        (wait,) = self.node.waiters.copies.values()
        self.forget_sent()
        notes.take()
        self.node.fast_acknowledge([wait.job.id])
        self.assertEqual([[(DELJOB, 0)]] * 2, [self.signals(B), self.signals(C)])
        self.assertEqual([("deleted", "not-replicated", 0, -1)], notes.take())

    def test_flushed_once(self) -> None:
        """A job that FLUSHALL takes back is not counted among those that are forgotten."""
        self.ask(3)
        self.ask(1)
        notes = self.node.outbox.events = Notes()
        self.node.flush_all()
        self.assertEqual([("deleted", "not-replicated", 0, -1), ("flushed", 1)], notes.take())


class FastTests(AckCase):
    """FASTACK and DELJOB."""

    def test_known(self) -> None:
        """All holders are told to forget the job, once, without an answer."""
        job = self.replicated(B)
        self.assertEqual(1, self.node.fast_acknowledge([job.id]))
        self.assertEqual(([(DELJOB, 0)], []), (self.signals(B), self.signals(C)))
        self.assert_nothing_left()

    def test_unknown(self) -> None:
        """Of an unknown job everybody is told."""
        self.assertEqual(0, self.node.fast_acknowledge([UNKNOWN]))
        self.assertEqual([[(DELJOB, 0)]] * 2, [self.signals(B), self.signals(C)])

    def test_only_here(self) -> None:
        """DELJOB as a command tells nobody."""
        job = self.replicated(B)
        self.assertEqual(1, self.node.delete([job.id]))
        self.assertEqual([], self.signals(B))

    def test_told(self) -> None:
        """DELJOB of another node removes a job in every state, recorded if it was alive."""
        queued, done = self.replicated(B), self.replicated(B)
        self.node.acknowledge([done.id])
        for job in (queued, done):
            self.receive_signal(B, DELJOB, job.id)
        self.receive_signal(B, DELJOB, UNKNOWN)
        self.assertEqual({}, self.log.records)
        self.assert_nothing_left()


class FlowTests(FlowCase):
    """What originals say and hear in the same situations."""

    def test_replica(self) -> None:
        """A holder that was told that a job is done says so to whoever asks."""
        self.replay("replica-side")

    def test_collected(self) -> None:
        """The acknowledged job of two holders."""
        job = self.replicated(PEER)
        self.node.acknowledge([job.id])
        self.replay("ack-gc", job.id)
        self.assert_nothing_left()

    def test_unknown_everywhere(self) -> None:
        """An ID that nobody knows."""
        self.node.acknowledge([self.flow("dummy-ack-unknown-everywhere")[0]["id"].encode()])
        self.replay("dummy-ack-unknown-everywhere")
        self.assert_nothing_left()
