"""What arrives on a link has one effect, whichever way it takes to the node."""

from __future__ import annotations

import errno
from functools import partial
from select import EPOLLHUP, EPOLLIN
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from disque_tx.core.jobs.job import Job
from disque_tx.engine.buslinks import BusLinks
from disque_tx.engine.buspump import BusPump, MessageDelivery
from disque_tx.engine.linkend import LinkEnd
from disque_tx.messages.bus import NOREPLY, Gossip, JobCopy, JobsMessage, Sender
from disque_tx.messages.bustypes import DELJOB, GOTACK, GOTJOB, REPLJOB, SETACK, YOURJOBS
from disque_tx.messages.nodes import MYSELF
from disque_tx.messages.records import JOB_ID_LENGTH
from disque_tx.wire.bus.parser import STRANGER_BYTES_MAX, encode
from disque_tx.wire.bus.writer import BusWriter
from tests import profiles  # noqa: F401
from tests.core.bench import ME
from tests.core.peerbench import B, C, PeerCase, peer_job
from tests.fuzz.checks import cut, message_fields
from tests.wire.test_busfuzz import CUTS

SENDER: Final = Sender(B, 7711, MYSELF, b"", 0)
SIGNALS: Final = (GOTJOB, SETACK, GOTACK, DELJOB)


class End:
    """A connection that only remembers why it was to be closed (see ``LinkConnection``)."""

    paused = False

    def __init__(self) -> None:
        self.ended: list[str] = []

    def local_ip(self) -> bytes:
        return b"10.0.0.1"

    def write(self, data: bytes) -> None:
        raise AssertionError("nothing is sent on connections that others made")

    def close(self) -> None:
        self.ended.append("closed")

    def drop(self, why: str) -> None:
        self.ended.append(why)

    def broken(self, error: OSError) -> None:
        self.ended.append(str(error))

    def overflowed(self) -> None:
        self.ended.append("overflowed")

    def faulty(self, error: Exception) -> None:
        raise error


def _receiving(received: bytes | OSError, room: int) -> bytes:
    """Receive this from a socket."""
    if isinstance(received, OSError):
        raise received
    return received[:room]


class Alone:
    """Settings and network of a node that makes no connections."""

    cluster_link_buffer_limit = 0

    def connect(self, entry: object) -> None:
        raise AssertionError

    def resolve(self, host: bytes, port: int) -> None:
        raise AssertionError


class PumpCase(PeerCase):
    """A node on whose link a peer sends bytes."""

    def opened(self, hot: bool, features: int = 2) -> None:
        """A node with some jobs, and a connection of B on which it has sent a PING."""
        self.setUp()
        self.node.membership.features = features
        self.jobs = [peer_job(number, (B, ME)) for number in range(3)]
        self.receive_jobs(B, REPLJOB, self.jobs[0])
        self.mine = self.replicated(B, C)
        self.waiting = self.begin_add(3)
        self.links = BusLinks(self.node, Alone(), Alone(), 1)
        self.pump = BusPump(self.node, self.links, MessageDelivery(self.node))
        self.pump.hot = hot
        self.connection = End()
        self.end = LinkEnd(self.connection, None, b"10.0.0.98", BusWriter(self.links.written))
        self.links.opened(self.end)
        self.links.up(self.end)
        ping = Gossip(0, [])
        SENDER.sign(ping)
        self.pump.receive(self.end, encode(ping))
        self.end.writer.take()
        self.clear_sent()

    def ids(self) -> list[bytes]:
        """IDs of jobs in different states, and of none."""
        (wait,) = self.node.waiters.copies.values()
        return [self.mine.id, wait.job.id, self.jobs[0].id, self.jobs[1].id]

    def outcome(self) -> Any:
        """Everything that can be seen of the node afterwards."""
        membership = self.node.membership
        sent = {
            peer: [message_fields(message) for message in self.sent_to(peer)] for peer in (B, C)
        }
        jobs = {job.id[10:]: shown(job) for job in self.node.jobs.table.values()}
        counters = (membership.messages_received, membership.messages_ignored)
        answers = list(self.replies(self.waiting))
        return sent, jobs, counters, answers, self.connection.ended, self.end.trusted


def shown(job: Job) -> Any:
    """What is known of a job."""
    return (
        *(job.state, job.flags, job.nodes, job.retry_s, job.held, job.body, job.queue),
        None if job.confirmed is None else sorted(job.confirmed),
    )


#: What to send: type, which ID or job, aux, flags; and places and values of damage.
MESSAGES: Final = st.lists(
    st.tuples(
        st.sampled_from((*SIGNALS, REPLJOB, REPLJOB)),
        st.integers(0, 3),
        st.integers(0, 4),
        st.sampled_from((0, NOREPLY)),
    ),
    max_size=10,
)
DAMAGE: Final = st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 255)), max_size=2)


class BothWaysTests(PumpCase):
    """The short way and the readable one."""

    def played(self, hot: bool, bulk: bool, plan: Any, damage: Any, cuts: Any) -> Any:
        """The outcome of sending these messages, damaged and cut like this."""
        self.opened(hot)
        writer = BusWriter([])
        writer.bulk = bulk
        ids = self.ids()
        for kind, which, aux, mflags in plan:
            if kind == REPLJOB:
                writer.copy(SENDER, JobCopy(self.jobs[which % 3], 60), mflags)
            else:
                writer.signal(SENDER, kind, ids[which], aux)
        data = bytearray(writer.take())
        for place, value in damage:
            if data:
                data[place % len(data)] = value
        for piece in cut(bytes(data), cuts):
            if not self.connection.ended:
                self.pump.receive(self.end, piece)
        return self.outcome()

    @given(MESSAGES, st.booleans(), DAMAGE, CUTS)
    def test_same(self, plan: Any, bulk: bool, damage: Any, cuts: Any) -> None:
        """Jobs, answers, counters and connection are the same afterwards, also for damaged
        input."""
        readable = self.played(False, bulk, plan, damage, ())
        self.assertEqual(readable, self.played(True, bulk, plan, damage, cuts))

    @given(MESSAGES, CUTS)
    def test_bulk_or_not(self, plan: Any, cuts: Any) -> None:
        """In a bulk or one by one, the messages have the same effects."""
        one_by_one = self.played(True, False, plan, (), ())
        for hot in (False, True):
            self.assertEqual(one_by_one, self.played(hot, True, plan, (), cuts))


class TogetherTests(PumpCase):
    """Messages that arrive together, after a connection was cut for a while."""

    def test_done_meanwhile(self) -> None:
        """A job that B gave, and then found to be done, goes to no client that waits; without the
        second message it does."""
        for hot in (False, True):
            for done, delivered in ((True, 0), (False, 1)):
                self.opened(hot)
                job = peer_job(7, (B, ME))
                job.queue = b"other"
                client = self.wait(job.queue)
                given = JobsMessage(YOURJOBS, [job], [3_600])
                SENDER.sign(given)
                writer = BusWriter([])
                if done:
                    writer.signal(SENDER, SETACK, job.id, 0)
                self.pump.receive(self.end, encode(given) + writer.take())
                self.assertEqual(delivered, len(self.replies(client)), (hot, done))


class SpeakerTests(PumpCase):
    """Who may send hot messages."""

    def bulk_of(self, sender: Sender) -> bytes:
        """A bulk that ends two jobs of the node."""
        writer = BusWriter([])
        writer.bulk = True
        for job_id in (self.mine.id, self.jobs[0].id):
            writer.signal(sender, DELJOB, job_id, 0)
        return writer.take()

    def test_other_sender(self) -> None:
        """A node that sends a bulk in the name of another one, or of this one, loses its link, and
        no job is touched."""
        for sender in (Sender(C, 7711, MYSELF, b"", 0), Sender(ME, 7711, MYSELF, b"", 0)):
            for hot in (False, True):
                self.opened(hot)
                jobs = len(self.node.jobs)
                self.pump.receive(self.end, self.bulk_of(sender))
                self.assertEqual(jobs, len(self.node.jobs))
                self.assertIn(self.end.link, self.node.outbox.hangups)

    def test_forgotten(self) -> None:
        """A node that is not in the table any more changes nothing."""
        for hot in (False, True):
            self.opened(hot)
            self.node.cluster.forget(B)
            jobs = len(self.node.jobs)
            self.pump.receive(self.end, self.bulk_of(SENDER))
            self.assertEqual(jobs, len(self.node.jobs))

    def test_ordinary_way(self) -> None:
        """Links that this way is not for, as those with TLS, and all that is unusual about one, are
        left to the reactor, and none is forgotten."""
        self.opened(True)
        self.assertIsNone(self.end.recv)
        events = [(7, EPOLLIN), (8, EPOLLIN), (7, EPOLLIN | EPOLLHUP)]
        again: list[tuple[int, int]] = []
        self.assertEqual(events, self.pump.serve(events, {7: self.end}, again))
        for received in (b"", OSError(errno.ECONNRESET, "gone")):
            self.end.recv = partial(_receiving, received)
            self.assertEqual(events, self.pump.serve(events, {7: self.end}, again))
        self.end.recv = partial(_receiving, BlockingIOError())
        self.assertEqual(events[1:], self.pump.serve(events, {7: self.end}, again))
        self.assertEqual([], again)

    def test_first_message(self) -> None:
        """A bulk as the first message of a known node shows whose link it is, as any message."""
        for hot in (False, True):
            self.opened(hot)
            end = LinkEnd(End(), None, b"10.0.0.98", BusWriter(self.links.written))
            self.links.opened(end)
            self.links.up(end)
            self.assertEqual(STRANGER_BYTES_MAX, end.parser.limit_bytes)
            self.pump.receive(end, self.bulk_of(SENDER))
            self.assertIsNone(self.node.jobs.get(self.mine.id))
            self.assertTrue(end.trusted)

    def test_as_an_original(self) -> None:
        """A node without our messages ignores a bulk as a whole."""
        for hot in (False, True):
            self.opened(hot, features=0)
            jobs = len(self.node.jobs)
            self.pump.receive(self.end, self.bulk_of(SENDER))
            membership = self.node.membership
            self.assertEqual((jobs, 1), (len(self.node.jobs), membership.messages_ignored))
            self.assertEqual(JOB_ID_LENGTH, len(self.mine.id))
