"""Jobs with leases: which one a client gets, and when it comes back."""

from __future__ import annotations

from disque_tx.core.base.client import Client
from disque_tx.core.jobs.job import DELAYED, Job
from disque_tx.core.queues.queues import PAUSE_IN, PAUSE_NONE, PAUSE_OUT
from disque_tx.errors import CommandError
from disque_tx.messages.bustypes import WORKING
from disque_tx.messages.records import (
    ACTIVE,
    BCAST_QUEUED,
    BCAST_WILLQUEUE,
    DELIVERED,
    QUEUED,
)
from tests.core.bench import UNIX_S
from tests.core.peerbench import B, PeerCase


class LeaseCase(PeerCase):
    """A node with peers and a client of a protocol with leases."""

    def setUp(self) -> None:
        super().setUp()
        self.leases = self.node.leases
        self.worker: Client = self.connect()

    def take(self, *names: bytes) -> bytes | None:
        """The ID of the job that the client gets."""
        job = self.leases.take(self.worker, list(names))
        return None if job is None else job.id

    def added(self, queue: bytes = b"q", **options: int) -> Job:
        """A job of this node alone."""
        return self.job(self.add(queue, b"body", replicate=1, **options))

    def set(self, queue: bytes, name: bytes, value: bytes) -> None:
        """A setting of a queue."""
        table = self.node.policy_table
        table.apply(table.plan_set(queue, [(name, value)], self.node.id), UNIX_S)


class TakeTests(LeaseCase):
    """The next job of several queues."""

    def test_oldest(self) -> None:
        """The job that is oldest comes first, whichever queue it is in, and in whatever order the
        queues are named."""
        jobs = []
        for queue in (b"a", b"b", b"a", b"c"):
            self.begin(self.now_ms + 10, self.wall_us + 10_000)
            jobs.append(self.added(queue).id)
        found = [self.take(b"c", b"b", b"none", b"a") for _ in range(5)]
        self.assertEqual([*jobs, None], found)

    def test_lease(self) -> None:
        """A lease begins with the delivery, not when the job was queued, and has no jitter."""
        self.chance = 0.9
        job = self.added(retry_s=60)
        self.pass_ms(30_000)
        self.assertEqual(job.id, self.take(b"q"))
        self.assertEqual((ACTIVE, self.now_ms + 60_000), (job.state, job.qtime_ms))
        self.pass_ms(59_999)
        self.assertEqual(0, self.length())
        self.pass_ms(1)
        self.assertEqual(1, self.length())

    def test_paused(self) -> None:
        """A queue that is paused for output gives nothing, one that is paused for input does, and
        is ready for it."""
        self.added()
        for flags, ready in ((PAUSE_OUT, False), (PAUSE_NONE, True), (PAUSE_IN, True)):
            self.node.pause(b"q", flags, b"")
            self.assertEqual(ready, self.leases.is_ready([b"none", b"q"]), flags)
        self.assertIsNotNone(self.take(b"q"))
        self.assertFalse(self.leases.is_ready([b"q"]))
        self.node.pause(b"q", PAUSE_OUT, b"")
        self.added(b"r")
        self.assertTrue(self.leases.is_ready([b"q", b"r"]))

    def test_limited(self) -> None:
        """A queue whose limit is reached gives nothing until a job is done, and others do."""
        self.set(b"q", b"concurrency", b"1")
        first, second, third = self.added(), self.added(), self.added(b"r")
        self.assertEqual(first.id, self.take(b"q", b"r"))
        self.assertEqual([third.id, None], [self.take(b"q", b"r") for _ in range(2)])
        self.assertFalse(self.leases.is_ready([b"q", b"r"]))
        self.node.acknowledge([first.id])
        self.assertEqual(second.id, self.take(b"q", b"r"))

    def test_suspended(self) -> None:
        """A node whose ID another process uses gives nothing, by either way."""
        job = self.added()
        self.node.membership.identity.suspended = True
        self.assertRaises(CommandError, self.take, b"q")
        self.assertRaises(CommandError, self.leases.take_this, self.worker, job)
        self.assertEqual(1, self.length())

    def test_waiting(self) -> None:
        """A client that waits is served with the next job; a node that leaves lets none wait."""
        self.leases.wait(self.worker, [b"q"], 0)
        job = self.added()
        (answer,) = self.replies(self.worker)
        self.assertEqual([[b"q", job.id, b"body"]], answer)
        self.leave()
        error = self.assertRaises(CommandError, self.leases.wait, self.connect(), [b"q"], 0)
        self.assertEqual("LEAVING", error.code)


class TakeThisTests(LeaseCase):
    """A job that a client names."""

    def take_this(self, job: Job) -> bool:
        """Whether the client gets it."""
        return self.leases.take_this(self.worker, job)

    def test_states(self) -> None:
        """Jobs that are queued, delayed or held back are given; one that a client has is not."""
        queued, delayed, held = self.added(), self.added(delay_s=50), self.added(b"r")
        self.take(b"r")
        self.assertTrue(self.leases.hold(held, self.now_ms + 9_000))
        for job in (queued, delayed, held):
            self.assertTrue(self.take_this(job))
            self.assertEqual((ACTIVE, self.now_ms + 300_000), (job.state, job.qtime_ms))
            self.assertTrue(job.flags & DELIVERED)
            self.assertFalse(self.take_this(job))
        self.assertEqual(0, self.length())

    def test_over(self) -> None:
        """A job whose life is over is not given, to the millisecond."""
        job = self.added(ttl_s=60, retry_s=30)
        self.begin(int(job.expire_ms), self.wall_us)
        self.assertFalse(self.take_this(job))
        self.begin(int(job.expire_ms) - 1, self.wall_us)
        self.assertTrue(self.take_this(job))

    def test_recorded(self) -> None:
        """A delayed job that is given is recorded: a restart must not take it for one whose delay
        is still running. Others have been before."""
        delayed, queued = self.added(delay_s=50), self.added()
        self.log.lines.clear()
        self.take_this(delayed)
        self.assertEqual([("load", delayed.id)], self.log.lines)
        self.take_this(queued)
        self.assertEqual(1, len(self.log.lines))

    def test_once(self) -> None:
        """A job with RETRY 0 that is given has no end of its lease, and does not come back."""
        job = self.added(delay_s=50, retry_s=0)
        self.assertTrue(self.take_this(job))
        self.assertEqual((0, False), (job.qtime_ms, bool(job.flags & BCAST_WILLQUEUE)))
        self.pass_ms(3_600_000)
        self.assertEqual(0, self.length())


class RenewTests(LeaseCase):
    """A lease that begins again, and its end."""

    def test_alone(self) -> None:
        """Without other holders nobody is told, before the job is queued or when it is."""
        job = self.added(retry_s=60)
        self.take(b"q")
        self.pass_ms(40_000)
        self.leases.renew(job)
        self.assertEqual(self.now_ms + 60_000, job.qtime_ms)
        self.assertFalse(job.flags & BCAST_WILLQUEUE)
        self.assertEqual([], self.sent_names(B))

    def test_holders(self) -> None:
        """Other holders are told that a client works on the job, each time."""
        job = self.replicated(B, retry_s=60)
        self.take(b"q")
        self.clear_sent()
        for _ in range(2):
            self.leases.renew(job)
            self.assertEqual(WORKING, self.sent_signal(B).type)
            self.assertTrue(job.flags & BCAST_WILLQUEUE)

    def test_once(self) -> None:
        """A job with RETRY 0 has no lease."""
        job = self.added(retry_s=0)
        self.take(b"q")
        before = job.qtime_ms
        self.leases.renew(job)
        self.assertEqual(before, job.qtime_ms)

    def test_held(self) -> None:
        """A job that a client has can be held back until a time; one that must not come again, or
        is in a queue, cannot."""
        job, queued, once = self.added(), self.added(b"r"), self.added(b"o", retry_s=0)
        self.take(b"q")
        self.take(b"o")
        self.assertFalse(self.leases.hold(queued, self.now_ms + 5_000))
        self.assertFalse(self.leases.hold(once, self.now_ms + 5_000))
        self.assertTrue(self.leases.hold(job, self.now_ms + 5_000))
        self.pass_ms(4_999)
        self.assertEqual(0, self.length())
        self.pass_ms(1)
        self.assertEqual(1, self.length())

    def test_restarted(self) -> None:
        """A job of the log that nobody has any more is queued at once, and that is no additional
        delivery; one that is delayed, queued, or may be delivered once only, stays."""
        job, delayed = self.added(), self.added(delay_s=50)
        queued, once = self.added(b"r"), self.added(b"o", retry_s=0)
        self.take(b"q")
        self.take(b"o")
        for one in (job, delayed, queued, once):
            self.leases.restart(one)
        self.assertEqual((QUEUED, 0, 0), (job.state, job.nacks, job.deliveries))
        self.assertTrue(job.flags & BCAST_QUEUED)
        self.assertEqual((ACTIVE, DELAYED), (delayed.state, delayed.place))
        self.assertEqual([1, 1, 0], [self.length(name) for name in (b"q", b"r", b"o")])
