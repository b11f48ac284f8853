"""``concurrency`` and ``rate``: how much of a queue is delivered at a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.policies.settings import QueuePolicy
from disque_tx.core.queues.limits import Bucket, tokens_max
from disque_tx.messages.bus import JobsMessage, QueueSignal
from disque_tx.messages.bustypes import NEEDJOBS, QUEUED, YOURJOBS
from tests import profiles  # noqa: F401
from tests.core.bench import NodeCase
from tests.core.peerbench import B, PeerCase
from tests.core.queues.matchbench import MatchCase


class LimitCase(NodeCase):
    """A node with policies."""

    def policy(self, pattern: bytes, **settings: str) -> None:
        """Set some settings of a pattern."""
        for name, value in settings.items():
            self.node.policies.set(pattern, name.replace("_", "-").encode(), value.encode())
        self.node.serve()


class ConcurrencyTests(LimitCase, MatchCase):
    """Setting ``concurrency``."""

    def setUp(self) -> None:
        super().setUp()
        self.policy(b"q", concurrency="2")

    def test_at_the_limit(self) -> None:
        """No more than so many jobs are in flight, even if a client asks for more at once."""
        jobs = [self.add() for _ in range(4)]
        self.assertEqual(jobs[:2], self.get(b"q", count=9))
        self.assertEqual([], self.get(b"q"))
        self.assertEqual(2, self.length())

    def test_other_queues(self) -> None:
        """A queue at its limit is passed over; others deliver."""
        jobs = [self.add() for _ in range(3)]
        other = self.add(b"r")
        self.assertEqual([jobs[0], other, jobs[1]], self.get(b"q", b"r", count=9))

    def test_done(self) -> None:
        """A client that waits is served as soon as a job is done."""
        jobs = [self.add() for _ in range(3)]
        self.get(b"q", count=2)
        client = self.wait(b"q")
        self.node.acknowledge([jobs[1]])
        self.node.serve()
        self.assertEqual([[[b"q", jobs[2], b"body"]]], self.replies(client))

    def test_ends_of_jobs(self) -> None:
        """Whatever ends a job in flight makes room: DELJOB, NACK, the end of its life, RETRY."""
        for end in ("delete", "nack", "expire", "retry"):
            first = self.add(b"q", ttl_s=60, retry_s=20)
            self.add(b"q", ttl_s=600)
            self.policy(b"q", concurrency="1")
            self.assertEqual([first], self.get(b"q"), end)
            client = self.wait(b"q")
            if end == "delete":
                self.node.delete([first])
            elif end == "nack":
                self.node.enqueue([first], True)
            elif end == "expire":
                self.node.pause(b"q", 1)
                self.pass_ms(61_000)
                self.node.pause(b"q", 0)
            else:
                self.pass_ms(21_000)
            self.node.serve()
            self.assertEqual(1, len(self.replies(client)), end)
            self.node.flush_all()

    def test_by_pattern(self) -> None:
        """GETJOB MATCH passes over the queue as well, and gets its job when there is room."""
        jobs = [self.add() for _ in range(3)]
        self.assertEqual([b"q", b"q"], self.match(b"*", count=9))
        client = self.block(b"*")
        self.node.acknowledge([jobs[0]])
        self.node.serve()
        self.assertEqual(b"q", self.queue_of(client))

    def test_changed(self) -> None:
        """A higher limit, or none, takes effect at once for clients that wait."""
        for _ in range(5):
            self.add()
        self.get(b"q", count=2)
        clients = [self.wait(b"q"), self.block(b"*"), self.block(b"q")]
        self.policy(b"q", concurrency="3")
        self.assertEqual(1, sum(len(self.replies(client)) for client in clients))
        self.node.policies.unset(b"q", b"concurrency")
        self.node.serve()
        self.assertEqual(2, sum(len(self.replies(client)) for client in clients))
        self.assertFalse(self.node.policies.limited)

    def test_changed_for_many(self) -> None:
        """A change of a pattern reaches every queue that matches."""
        self.policy(b"m*", concurrency="1")
        for name in (b"m1", b"m2"):
            self.add(name)
            self.add(name)
        self.get(b"m1", b"m2", count=9)
        clients = [self.wait(b"m1"), self.wait(b"m2")]
        self.policy(b"m*", concurrency="0")
        self.pass_ms(1)
        self.assertEqual([1, 1], [len(self.replies(client)) for client in clients])

    def test_not_active(self) -> None:
        """Without such a setting nothing is asked for it."""
        self.node.policies.unset(b"q", b"concurrency")
        self.policy(b"q", max_deliveries="3")
        self.assertEqual((True, False), (self.node.policies.active, self.node.policies.limited))


class RateTests(LimitCase, MatchCase):
    """Settings ``rate`` and ``rate-burst``."""

    def times(self) -> list[int]:
        """When jobs are delivered to a client that asks again at once, in ms from now."""
        start_ms, times = self.now_ms, []
        client = self.connect()
        for _ in range(100):
            while not client.blocked:
                self.node.get_jobs(client, [b"q"], 1, 0, False, False)
                if self.replies(client):
                    times.append(self.now_ms - start_ms)
            due_ms = self.node.next_due_ms()
            if len(times) >= 6 or due_ms < 0:
                break
            self.pass_ms(due_ms - self.now_ms)
            if self.replies(client):
                times.append(self.now_ms - start_ms)
        return times[:6]

    def test_steady(self) -> None:
        """After those that may go at once, jobs go as the rate says, without being asked again."""
        self.policy(b"q", rate="2", rate_burst="3")
        for _ in range(9):
            self.add()
        self.assertEqual([0, 0, 0, 500, 1_000, 1_500], self.times())

    def test_each_in_time(self) -> None:
        """A queue whose next job may go soon does not wait for one whose next may go later."""
        self.policy(b"q", rate="2", rate_burst="1")
        self.policy(b"r", rate="0.1", rate_burst="1")
        for name in (b"r", b"q"):
            for _ in range(2):
                self.add(name)
            self.get(name)
            client = self.wait(name)
        self.pass_ms(600)
        self.assertEqual(1, len(self.replies(client)))

    def test_default_burst(self) -> None:
        """Without rate-burst, one second's worth may go at once, and at least one job."""
        policy = QueuePolicy(b"q")
        policy.rate_milli = 2_500
        self.assertEqual(3, tokens_max(policy))
        policy.rate_milli = 1
        self.assertEqual(1, tokens_max(policy))
        policy.rate_burst = 7
        self.assertEqual(7, tokens_max(policy))

    def test_by_pattern(self) -> None:
        """A client that waits by pattern is served when there is a token, and others before."""
        self.policy(b"q", rate="0.5")
        self.add()
        self.add()
        self.assertEqual([b"q"], self.match(b"*", count=5))
        first, second = self.block(b"*"), self.block(b"*")
        self.add(b"r")
        self.assertEqual((b"r", b""), (self.queue_of(first), self.queue_of(second)))
        self.pass_ms(1_900)
        self.assertEqual(b"", self.queue_of(second))
        self.pass_ms(200)
        self.assertEqual(b"q", self.queue_of(second))

    def test_count(self) -> None:
        """A client that asks for many jobs gets as many as there are tokens."""
        self.policy(b"q", rate="3")
        for _ in range(9):
            self.add()
        self.assertEqual(3, len(self.get(b"q", count=9)))

    def test_queue_forgotten(self) -> None:
        """That a queue was idle, and its memory freed, gives nobody more than the rate allows."""
        self.policy(b"q", rate="0.001")
        self.add()
        self.get(b"q")
        self.begin(self.now_ms + 310_000, self.wall_us)
        self.assertEqual(1, self.node.queues.sweep(self.now_ms, 10))
        self.add()
        self.assertEqual([], self.get(b"q"))
        self.pass_ms(700_000)
        self.assertEqual(1, len(self.get(b"q")))

    def test_many_queues(self) -> None:
        """What is kept about queues that rest is forgotten, not collected."""
        self.policy(b"*", rate="100", rate_burst="1")
        for number in range(3_000):
            self.add(b"q%d" % number)
            self.get(b"q%d" % number)
            self.begin(self.now_ms + 20, self.wall_us)
        self.assertLessEqual(len(self.node.getting.limits), 1_001)

    def test_rate_gone(self) -> None:
        """What was kept about queues that have no rate any more makes room for others."""
        self.policy(b"q*", rate="0.001", concurrency="9")
        self.policy(b"r*", rate="0.001")
        for number in range(1_100):
            if number == 1_000:
                self.policy(b"q*", rate="0")
            name = b"%s%d" % (b"q" if number < 1_000 else b"r", number)
            self.add(name)
            self.get(name)
        self.assertLessEqual(len(self.node.getting.limits), 1_001)

    @given(
        rate_milli=st.integers(1, 10**9),
        burst=st.integers(1, 10**6),
        steps=st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 50)), max_size=50),
    )
    def test_never_more(self, rate_milli: int, burst: int, steps: list[tuple[int, int]]) -> None:
        """No sequence of pauses and requests gets more than burst and rate allow."""
        bucket, now_ms, taken = Bucket(burst * 1_000_000, 0), 0, 0
        for pause_ms, wanted in steps:
            now_ms += pause_ms
            bucket.fill(rate_milli, burst, now_ms)
            for _ in range(wanted):
                if bucket.level >= 1_000_000:
                    bucket.level -= 1_000_000
                    taken += 1
        self.assertLessEqual(taken * 1_000_000, burst * 1_000_000 + now_ms * rate_milli)


class FullBucketTests(SynchronousTestCase):
    """The arithmetic of a bucket."""

    def test_long_pause(self) -> None:
        """A year without use fills the bucket, and nothing overflows."""
        bucket = Bucket(0, 0)
        bucket.fill(10**9, 10**6, 366 * 86_400_000)
        self.assertEqual(10**12, bucket.level)

    def test_smaller_bucket(self) -> None:
        """When a policy allows less at once, what was saved up is gone."""
        bucket = Bucket(5_000_000, 0)
        bucket.fill(1, 2, 0)
        self.assertEqual(2_000_000, bucket.level)


class PeerLimitTests(LimitCase, PeerCase):
    """Limits are about the clients of one node."""

    def setUp(self) -> None:
        super().setUp()
        self.policy(b"q", concurrency="1")

    def test_no_requests_at_the_limit(self) -> None:
        """A node that may deliver no more jobs of a queue asks for none."""
        self.add(replicate=1)
        self.get(b"q")
        self.sent_to(B)
        self.wait(b"q")
        self.assertEqual([], [m for m in self.sent_to(B) if isinstance(m, QueueSignal)])

    def test_gives(self) -> None:
        """Jobs beyond the limit of one node go to another that asks."""
        for _ in range(3):
            self.add(replicate=1)
        self.get(b"q")
        self.sent_to(B)
        self.receive(B, QueueSignal(NEEDJOBS, b"q", 1))
        given = [m for m in self.sent_to(B) if isinstance(m, JobsMessage)]
        self.assertEqual([YOURJOBS], [message.type for message in given])

    def test_queued_elsewhere(self) -> None:
        """When another node queues a job because its RETRY is over, it is in flight here no more:
        the limit must not hold up the others until that job is done."""
        first = self.add(replicate=1)
        second = self.add(replicate=1)
        self.get(b"q")
        client = self.wait(b"q")
        self.receive_signal(B, QUEUED, first)
        self.assertEqual([[[b"q", second, b"body"]]], self.replies(client))
