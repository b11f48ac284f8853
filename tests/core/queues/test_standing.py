"""What nodes have told each other that they can use of one queue."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.queues.standing import (
    CREDIT_MS,
    WINDOW_BYTES_MAX,
    WINDOW_MAX,
    Credit,
    Grant,
    PeerDemand,
    StandingDemand,
)
from tests.core.flowbench import FlowTestCase


class WindowTests(SynchronousTestCase):
    """How many jobs this node asks for beyond those for which clients wait."""

    def setUp(self) -> None:
        self.standing = StandingDemand()

    def window(self, now_ms: int, waiting: int = 0, stock: int = 0, size: int = 0) -> int:
        """The window after a job of this size came, if any, and its sender has more."""
        if size:
            self.standing.arrived(b"giver", size, True)
        self.standing.adjust(waiting, stock, now_ms)
        return int(self.standing.window)

    def test_grows(self) -> None:
        """It begins at 16, or twice as many as clients wait, and doubles each time that its sender
        has more and nearly all were taken, up to its limit."""
        self.assertEqual(0, self.window(0))
        self.assertEqual([16, 32, 64], [self.window(0, 8, 0, 100) for _ in range(3)])
        self.assertEqual(200, self.window(0, 100, 0, 100))
        found = [self.window(0, 0, 0, 100) for _ in range(5)]
        self.assertEqual([400, 800, 1_600, WINDOW_MAX, WINDOW_MAX], found)

    def test_stock(self) -> None:
        """It grows while a quarter of it lies here at most."""
        self.window(0, 0, 0, 100)
        self.assertEqual(16, self.window(0, 0, 5, 100))
        self.assertEqual(32, self.window(0, 0, 4, 100))

    def test_large_bodies(self) -> None:
        """Few jobs are asked for when their bodies are large, but never none."""
        for size, expected in (
            (WINDOW_BYTES_MAX // 10, 10),
            (WINDOW_BYTES_MAX, 1),
            (2 * WINDOW_BYTES_MAX, 1),
        ):
            self.setUp()
            self.assertEqual(expected, self.window(0, 0, 0, size))

    def test_shrinks(self) -> None:
        """What was not needed for more than a second is halved, again a second later, and down to
        none."""
        self.window(5_000, 0, 0, 100)
        found = [self.window(ms) for ms in (6_000, 6_001, 7_001, 7_002, 8_003, 9_004, 10_005)]
        self.assertEqual([16, 8, 8, 4, 2, 1, 0], found)

    def test_sizes(self) -> None:
        """A large body is remembered for some jobs, less and less."""
        found = []
        for size in (1_600, 10, 10, 2_000):
            self.standing.arrived(b"giver", size, False)
            found.append(int(self.standing.size))
        self.assertEqual([1_600, 1_500, 1_407, 2_000], found)

    def test_arrived(self) -> None:
        """Each job uses up what its sender was told, not below none, and counts as surplus."""
        grant = self.standing.grants[b"giver"] = Grant(1)
        grant.credit, grant.waiting = 2, 1
        found = []
        for _ in range(3):
            self.standing.arrived(b"giver", 1, False)
            found.append((int(grant.credit), int(grant.waiting)))
        self.standing.arrived(b"other", 1, False)
        self.assertEqual([(1, 0), (0, 0), (0, 0)], found)
        self.assertEqual((4, b"other"), (self.standing.surplus, self.standing.giver))
        grant.credit = grant.waiting = 5
        self.standing.renew()
        self.assertEqual((0, 0), (grant.credit, grant.waiting))


class PeerTests(SynchronousTestCase):
    """Which node gets the next job."""

    def setUp(self) -> None:
        self.peers = PeerDemand()

    def add(
        self, name: bytes, credit: int, waiting: int, since_ms: int, told_ms: int = 0
    ) -> Credit:
        """What one node can use."""
        found = self.peers.credits[name] = Credit(name)
        found.credit, found.waiting = credit, waiting
        found.since_ms, found.told_ms = since_ms, told_ms
        return found

    def chosen(self, now_ms: int = 0, unreachable: tuple[bytes, ...] = ()) -> list[bytes]:
        """The node whose client has waited for longest, and the one that can use most."""
        found = (
            self.peers.longest_waiting(list(unreachable), now_ms),
            self.peers.largest(list(unreachable), now_ms),
        )
        return [b"" if one is None else one.node_id for one in found]

    def test_chosen(self) -> None:
        """Of those that wait the one that has waited for longest, and of all the one that can use
        most; among equals the first one; those that cannot be reached are left out."""
        self.assertEqual([b"", b""], self.chosen())
        self.add(b"a", 1, 1, 300)
        self.add(b"b", 3, 1, 200)
        self.add(b"c", 3, 1, 200)
        self.add(b"d", 9, 0, 100)
        self.add(b"e", 0, 5, 100)
        self.assertEqual([b"b", b"d"], self.chosen())
        self.assertEqual([b"c", b"c"], self.chosen(unreachable=(b"b", b"d")))

    def test_old(self) -> None:
        """What was told more than 90 seconds ago is void."""
        self.add(b"a", 1, 1, 0, 5_000)
        self.assertEqual([b"a", b"a"], self.chosen(5_000 + CREDIT_MS))
        self.assertEqual([b"", b""], self.chosen(5_001 + CREDIT_MS))

    def test_given(self) -> None:
        """What was sent is used up, not below none."""
        credit = self.add(b"a", 5, 2, 0)
        found = []
        for number in (1, 3, 3):
            credit.given(number)
            found.append((int(credit.credit), int(credit.waiting)))
        self.assertEqual([(4, 1), (1, 0), (0, 0)], found)


class SurplusTests(FlowTestCase):
    """Jobs that came by demand and lie here."""

    nodes = 2

    def test_fetched(self) -> None:
        """Jobs that clients take are no surplus; jobs that never were any count for nothing."""
        self.wait(1)
        self.add(0)
        queue = self.flow.nodes[1].queues.get(b"q")
        assert queue is not None and queue.standing is not None
        self.assertEqual(0, queue.standing.surplus)
        self.add(1, count=3)
        self.assertEqual(3, self.take(1, 3))
        self.assertEqual(0, queue.standing.surplus)
