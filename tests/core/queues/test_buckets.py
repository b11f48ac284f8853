"""How many deliveries the rate of a queue allows at a moment."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.policies.settings import QueuePolicy
from disque_tx.core.queues.limits import Bucket, tokens_max
from tests.core.bench import UNIX_S, NodeCase

_TOKEN = 1_000_000


class BucketTests(SynchronousTestCase):
    """One bucket."""

    def test_size(self) -> None:
        """A bucket holds what is set, or a second's worth of the rate, rounded up, and one at
        least."""
        policy = QueuePolicy(b"q")
        for rate_milli, burst, most in (
            (1, 0, 1),
            (1_000, 0, 1),
            (1_001, 0, 2),
            (5_000, 0, 5),
            (5_000, 1, 1),
            (1, 7, 7),
        ):
            policy.rate_milli, policy.rate_burst = rate_milli, burst
            self.assertEqual(most, tokens_max(policy), (rate_milli, burst))

    def test_filled(self) -> None:
        """It gains its rate per second, exactly, and never more than it holds, however long it was
        not looked at."""
        bucket = Bucket(0, 1_000)
        found = []
        for now_ms in (1_000, 1_001, 1_500, 1_999, 2_000, 2_500, 1 << 40):
            bucket.fill(2_000, 2, now_ms)
            found.append(bucket.level / _TOKEN)
        self.assertEqual([0, 0.002, 1, 1.998, 2, 2, 2], found)

    def test_smaller(self) -> None:
        """A bucket that holds less than before loses what is too much."""
        bucket = Bucket(9 * _TOKEN, 1_000)
        bucket.fill(1_000, 2, 1_000)
        self.assertEqual(2 * _TOKEN, bucket.level)


class RoomTests(NodeCase):
    """How many jobs clients may get now."""

    def set(self, **settings: bytes) -> None:
        """The settings of the queue."""
        table = self.node.policy_table
        pairs = [(name.replace("_", "-").encode(), value) for name, value in settings.items()]
        table.apply(table.plan_set(b"q", pairs, self.node.id), UNIX_S)

    def room(self, name: bytes = b"q") -> int:
        """For how many jobs of a queue there is room."""
        return int(self.node.getting.limits.room(name, self.now_ms))

    def fetch(self, count: int) -> int:
        """How many of so many jobs clients get."""
        for _ in range(count):
            self.add(b"q")
        return len(self.get(b"q", count=count))

    def test_concurrency(self) -> None:
        """What is in flight takes room, to the last one; other queues have no limit."""
        self.assertEqual(1 << 31, self.room())
        self.set(concurrency=b"3")
        self.assertEqual((3, 1 << 31), (self.room(), self.room(b"other")))
        self.assertEqual(2, self.fetch(2))
        self.assertEqual(1, self.room())
        self.assertEqual(1, self.fetch(2))
        self.assertEqual(0, self.room())

    def test_rate(self) -> None:
        """What was delivered takes room until it has come back, a whole job at a time."""
        self.set(rate=b"2", rate_burst=b"4")
        self.assertEqual(4, self.room())
        self.assertEqual(3, self.fetch(3))
        self.assertEqual(1, self.room())
        self.begin(self.now_ms + 499, self.wall_us)
        self.assertEqual(1, self.room())
        self.begin(self.now_ms + 1, self.wall_us)
        self.assertEqual(2, self.room())

    def test_both(self) -> None:
        """The smaller room of both counts."""
        self.set(rate=b"2", rate_burst=b"4", concurrency=b"2")
        self.assertEqual(2, self.room())
        self.set(rate=b"2", rate_burst=b"4", concurrency=b"9")
        self.assertEqual(4, self.room())

    def test_due(self) -> None:
        """A queue without room is to be looked at when it has some, once, and so are others after
        it."""
        limits = self.node.getting.limits
        self.set(rate=b"2", rate_burst=b"1")
        self.assertEqual(1, self.fetch(1))
        for _ in range(2):
            self.assertFalse(limits.allows(b"q", self.now_ms))
        self.assertEqual(self.now_ms + 500, limits.next_due_ms())
        self.assertEqual([], limits.due(self.now_ms + 499, 9))
        self.assertEqual([], limits.due(self.now_ms + 500, 0))
        self.assertEqual([b"q"], limits.due(self.now_ms + 500, 9))
        self.assertEqual(([], -1), (limits.due(self.now_ms + 900, 9), limits.next_due_ms()))
