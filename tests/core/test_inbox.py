"""Messages from the bus: which senders are accepted, and that no message does harm."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.nodes.duplicateids import START_SPAN
from disque_tx.errors import CommandError
from disque_tx.messages.bus import NOREPLY, Gossip, JobSignal, NodeFailed, QueueSignal
from disque_tx.messages.bustypes import (
    DELJOB,
    ENQUEUE,
    GOTACK,
    GOTJOB,
    NEEDJOBS,
    PAUSE,
    PING,
    REPLJOB,
    SETACK,
    WILLQUEUE,
    WORKING,
    YOURJOBS,
)
from disque_tx.messages.bustypes import QUEUED as QUEUED_THERE
from disque_tx.messages.nodes import FAIL, MYSELF, Link
from tests import profiles  # noqa: F401
from tests.core.bench import ME
from tests.core.peerbench import B, C, D, PeerCase, SentMessages, peer_job

STRANGER = b"e" * 40


class SenderTests(PeerCase):
    """Which nodes may send messages about jobs."""

    def stranger(self) -> Link:
        """A connection on which nothing was received yet."""
        return Link(SentMessages(), None, b"10.0.0.9", b"10.0.0.1", self.now_ms, 99)

    def receive_as(self, link: Link, sender: bytes, message: JobSignal) -> None:
        """The node receives a message with this sender."""
        message.sender = sender
        self.node.receive(link, message)

    def test_unknown(self) -> None:
        """Messages from nodes that are not in the table are ignored (cluster protocol, section
        6)."""
        job = self.replicated(B)
        self.receive_as(self.stranger(), STRANGER, JobSignal(DELJOB, job.id))
        self.assertEqual([job.id], self.get(b"q"))

    def test_known(self) -> None:
        """Messages from a known node are accepted on any connection, from the first one on."""
        job = self.replicated(B)
        link = self.stranger()
        self.receive_as(link, C, JobSignal(DELJOB, job.id))
        self.assertEqual((C, []), (link.peer_id, self.get(b"q")))

    def test_changed_sender(self) -> None:
        """A connection belongs to one node; if the sender's ID changes, it is closed."""
        job = self.replicated(B)
        self.receive_as(self.accepted[B], C, JobSignal(DELJOB, job.id))
        self.assertEqual([self.accepted[B]], self.node.outbox.hangups)
        self.assertEqual([job.id], self.get(b"q"))

    def test_as_myself(self) -> None:
        """No other node may use the ID of this one."""
        job = self.replicated(B)
        link = self.stranger()
        self.receive_as(link, ME, JobSignal(DELJOB, job.id))
        self.assertEqual([link], self.node.outbox.hangups)
        self.assertEqual([job.id], self.get(b"q"))

    def test_on_our_own_link(self) -> None:
        """On connections that this node opened, messages about jobs are ignored."""
        job = self.replicated(B)
        link = self.node.membership.nodes[B].link
        assert link is not None
        self.receive_as(link, B, JobSignal(DELJOB, job.id))
        self.assertEqual([job.id], self.get(b"q"))

    def test_forgotten(self) -> None:
        """Messages from a forgotten node are ignored, even on its old connection."""
        job = self.replicated(B)
        self.node.cluster.forget(B)
        self.receive_signal(B, DELJOB, job.id)
        self.assertEqual([job.id], self.get(b"q"))

    def test_failure(self) -> None:
        """A node that a majority found failed is marked failed here."""
        self.receive(B, NodeFailed(C))
        self.assertTrue(self.node.membership.nodes[C].flags & FAIL)


class ReplacedLinkTests(PeerCase):
    """Messages that were under way on a link when its node opened a new one, and arrive late."""

    def setUp(self) -> None:
        super().setUp()
        self.old = self.accepted[B]
        self.ping(self.old, 7)
        self.new = Link(SentMessages(), None, self.old.peer_ip, b"10.0.0.1", self.now_ms, 99)

    def ping(self, link: Link, number: int) -> None:
        """B sends its first PING on the link, with this link number."""
        message = Gossip(PING, [])
        message.sender, message.flags, message.port, message.epoch = B, MYSELF, 7711, number
        self.node.receive(link, message)

    def replaced(self) -> None:
        """B opens a new link."""
        self.ping(self.new, 8)
        self.clear_sent()

    def test_sent_before(self) -> None:
        """A job that was sent before is no longer queued: it may be done and forgotten by now, and
        its sender kept a copy, which it queues again if necessary."""
        self.replaced()
        self.receive_jobs(B, YOURJOBS, peer_job(1, (B, ME)))
        self.receive_jobs(B, YOURJOBS, peer_job(2, (B, ME), retry_s=1))
        self.assertEqual([], self.get(b"q"))
        self.accepted[B] = self.new
        self.receive_jobs(B, YOURJOBS, peer_job(1, (B, ME)))
        self.assertEqual([peer_job(1, ()).id], self.get(b"q"))

    def test_acknowledged(self) -> None:
        """The reply to an acknowledged job is SETACK, as always."""
        self.receive_jobs(B, REPLJOB, peer_job(1, (B, ME)))
        self.node.acknowledge([peer_job(1, ()).id])
        self.replaced()
        self.receive_jobs(B, YOURJOBS, peer_job(1, (B, ME)))
        self.assertEqual(["SETACK"], self.sent_names(B))

    def test_moved(self) -> None:
        """A job with RETRY 0 is accepted nevertheless: there is no other copy of it."""
        self.replaced()
        job = peer_job(1, (B, ME), once=True)
        self.receive_jobs(B, YOURJOBS, job, serial=1)
        self.assertEqual([job.id], self.get(b"q"))

    def test_copy(self) -> None:
        """A copy is not stored: its sender repeats it as long as it needs one."""
        self.replaced()
        self.receive_jobs(B, REPLJOB, peer_job(1, (B, ME)))
        self.assertEqual(([], 0), (self.sent_to(B), len(self.node.jobs)))

    def test_restarted(self) -> None:
        """After a restart a node numbers its links from a new start, and so does a twin of it: its
        messages are accepted, and so are those on the earlier link."""
        self.ping(self.new, 7 + 2 * START_SPAN)
        self.receive_jobs(B, YOURJOBS, peer_job(1, (B, ME)))
        self.assertEqual([peer_job(1, ()).id], self.get(b"q"))

    def test_unnumbered(self) -> None:
        """An original does not number its links; its messages are always accepted."""
        self.ping(self.old, 0)
        self.ping(self.new, 0)
        self.receive_jobs(B, YOURJOBS, peer_job(1, (B, ME)))
        self.assertEqual([peer_job(1, ()).id], self.get(b"q"))


class Bench(PeerCase):
    """A node for the state machine below, outside of any test case."""

    peers = (B, C, D)

    def runTest(self) -> None:
        """Required by the test case class; does nothing."""


numbers = st.integers(1, 4)
peers = st.sampled_from((B, C, D))
counts = st.sampled_from((0, 1, 2, 3, 101, 4_294_967_295))
mflags = st.integers(0, 7)
holders = st.lists(st.sampled_from((ME, B, C, D, STRANGER)), max_size=4, unique=True).map(tuple)
signals = st.sampled_from(
    (GOTJOB, ENQUEUE, QUEUED_THERE, SETACK, WILLQUEUE, GOTACK, DELJOB, WORKING)
)


class AnythingMachine(RuleBasedStateMachine):
    """All messages, commands, link failures and clock steps, in any order.

    Nothing raises, and when the messages stop, all clients are unblocked and all jobs are gone.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.bench.setUp()
        self.node = self.bench.node
        self.once_delivered: set[bytes] = set()
        self.serial = 0

    def job_id(self, number: int, mine: bool) -> bytes:
        """The ID of a job that was added here, or of a job of B; even ones have RETRY 0."""
        if mine:
            for job in self.node.jobs.table.values():
                if job.id[2:10] == ME[:8]:
                    return job.id
        return peer_job(number, (), once=number % 2 == 0).id

    @rule(peer=peers, kind=signals, number=numbers, mine=st.booleans(), aux=counts, why=mflags)
    def signal(self, peer: bytes, kind: int, number: int, mine: bool, aux: int, why: int) -> None:
        self.bench.receive_signal(peer, kind, self.job_id(number, mine), aux, why)

    @rule(
        peer=peers,
        kind=st.sampled_from((REPLJOB, YOURJOBS)),
        some=st.lists(numbers, max_size=2),
        nodes=holders,
        delay_s=st.sampled_from((0, 1, 4_294_967_295)),
        life_s=st.sampled_from((0, 1, 60, 60)),
        why=st.sampled_from((0, NOREPLY)),
    )
    def jobs(
        self,
        peer: bytes,
        kind: int,
        some: list[int],
        nodes: tuple[bytes, ...],
        delay_s: int,
        life_s: int,
        why: int,
    ) -> None:
        sent = [peer_job(n, nodes, retry_s=2, delay_s=delay_s, once=n % 2 == 0) for n in some]
        self.bench.receive_jobs(peer, kind, *sent, life_s=life_s, mflags=why)

    @rule(peer=peers, kind=st.sampled_from((NEEDJOBS, PAUSE)), aux=counts)
    def queue(self, peer: bytes, kind: int, aux: int) -> None:
        self.bench.receive(peer, QueueSignal(kind, b"q", aux))

    @rule(
        replicate=st.integers(1, 4),
        asynchronous=st.booleans(),
        once=st.booleans(),
        delay_s=st.integers(0, 2),
        timeout_ms=st.sampled_from((0, 100)),
    )
    def add(
        self, replicate: int, asynchronous: bool, once: bool, delay_s: int, timeout_ms: int
    ) -> None:
        try:
            self.bench.begin_add(
                1 if once else replicate,
                ttl_s=30,
                retry_s=0 if once else 2,
                delay_s=delay_s,
                timeout_ms=timeout_ms,
                asynchronous=asynchronous,
            )
        except CommandError:
            pass

    @rule(count=st.integers(1, 3))
    def get(self, count: int) -> None:
        for job_id in self.bench.get(b"q", count=count):
            if self.bench.job(job_id).retry_s == 0:
                made_here = job_id[2:10] == ME[:8]
                assert not (made_here and job_id in self.once_delivered), job_id
                self.once_delivered.add(job_id)

    @rule()
    def wait(self) -> None:
        client = self.bench.connect()
        try:
            self.node.get_jobs(client, [b"q", b"r"], 2, 3_000, False, True)
        except CommandError:
            pass

    @rule(number=numbers, mine=st.booleans(), what=st.integers(0, 6))
    def command(self, number: int, mine: bool, what: int) -> None:
        job_id = self.job_id(number, mine)
        ids = [job_id, job_id]
        if what == 0:
            self.node.acknowledge(ids)
        elif what == 1:
            self.node.fast_acknowledge(ids)
        elif what == 2:
            self.node.delete(ids)
        elif what == 3:
            self.node.dequeue(ids)
        elif what == 4:
            try:
                self.node.working(job_id)
            except CommandError:
                pass
        else:
            self.node.enqueue(ids, what == 5)

    @rule(peer=peers, up=st.booleans())
    def links(self, peer: bytes, up: bool) -> None:
        if up:
            self.bench.link(peer)
        else:
            self.bench.unlink(peer)

    @rule()
    def client_gone(self) -> None:
        for client in list(self.node.waiters.blocked)[:1]:
            self.node.client_gone(client)

    @rule(leaving=st.booleans())
    def leave(self, leaving: bool) -> None:
        self.node.membership.set_leaving(leaving)
        self.node.release_leaving()

    @rule(ms=st.sampled_from((20, 60, 500, 2_000, 10_000)))
    def time(self, ms: int) -> None:
        self.bench.pass_ms(ms)

    def teardown(self) -> None:
        """The jobs and timeouts of clients end, and later everything else expires."""
        bench = self.bench
        bench.pass_slowly(4_000)
        for client in list(self.node.waiters.blocked):
            assert client.blocked_job, "a GETJOB outlived its timeout"
        bench.pass_ms(70_000)
        bench.pass_ms(40_000)
        assert not self.node.waiters.blocked, "an ADDJOB outlived its job"
        bench.pass_ms(0x5A1 * 60_000)
        bench.assert_nothing_left()
        assert self.node.federation.next_due_ms() == -1
        assert not bench.log.records


class AnythingTests(SynchronousTestCase):
    """Random sequences of messages."""

    def test_no_harm(self) -> None:
        """Whatever the messages and their order, nothing raises, hangs or leaks."""
        run_state_machine_as_test(AnythingMachine, settings=settings(stateful_step_count=40))
