"""Which connection to a node gets a request, and which wait for jobs."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.addresses import Address
from disque_tx.client.tx.calls import COPYING, QUICK, WAITING
from disque_tx.client.tx.pool import ConnectionPool, WaitQueue


class _Connection:
    """A connection that only counts its calls. ``ended``: it was closed."""

    def __init__(self, pace: str) -> None:
        self.pace = pace
        self.load = 0
        self.retired = self.ended = False

    def open(self) -> None:
        """It is made."""

    def send(self, call: Any) -> None:
        """One more call."""
        self.load += 1

    def close(self, why: object) -> None:
        """It ends."""
        self.ended = True


class _Request:
    wait_s = 5.0


class _Call:
    """A call that may wait for 5 s. ``pace``: of its command."""

    def __init__(self, pace: str = WAITING) -> None:
        self.pace = pace
        self.request = _Request()


class PoolTests(SynchronousTestCase):
    """The connections to one node."""

    def setUp(self) -> None:
        self.made: list[_Connection] = []
        connect: Any = self.connect
        self.pool = ConnectionPool(Address("127.0.0.1", 1), connect)

    def connect(self, address: Address, pace: str) -> _Connection:
        """A new connection."""
        self.made.append(_Connection(pace))
        return self.made[-1]

    def send(self, pace: str) -> None:
        """Send a call of this pace."""
        call: Any = _Call(pace)
        self.pool.send(call)

    def test_ended(self) -> None:
        """A connection that has ended gets no more calls, whatever it was for."""
        for pace in (QUICK, COPYING):
            self.send(pace)
            self.pool.forget(self.made[-1])  # type: ignore[arg-type]
            self.send(pace)
        waiting = self.pool.for_waiting()
        self.pool.idle.append(waiting)
        self.pool.forget(waiting)
        self.assertIsNot(waiting, self.pool.for_waiting())
        self.assertEqual([1, 1, 1, 1, 0, 0], [each.load for each in self.made])

    def test_retired(self) -> None:
        """With another password old connections get no more calls, and end once they have
        answered those that they have."""
        self.send(QUICK)
        self.send(COPYING)
        self.pool.idle.append(self.pool.for_waiting())
        self.pool.retire()
        self.assertEqual([False, False, True], [each.ended for each in self.made])
        self.assertTrue(all(each.retired for each in self.made))
        self.send(QUICK)
        self.send(COPYING)
        self.pool.for_waiting()
        self.assertEqual([1, 1, 0, 1, 1, 0], [each.load for each in self.made])


class WaitQueueTests(SynchronousTestCase):
    """More calls that wait for jobs than connections."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.expired: list[Any] = []
        self.queue = WaitQueue(1, self.clock, self.expired.append)
        connection: Any = _Connection(WAITING)
        self.connection = connection
        self.calls: list[Any] = [_Call() for _ in range(3)]
        self.queue.acquire(self.connection)
        for call in self.calls:
            self.queue.enqueue(call)

    def test_in_order(self) -> None:
        """Whoever asked first is served first; a connection that ends twice counts once."""
        self.assertFalse(self.queue.has_room)
        self.assertIs(self.calls[0], self.queue.release(self.connection))
        self.assertTrue(self.queue.has_room)
        self.assertIsNone(self.queue.release(self.connection))
        self.assertEqual(self.calls[1:], list(self.queue.drain()))
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_too_long(self) -> None:
        """A call waits in the queue for as long as it would at a node, and then no more."""
        self.queue.remove(self.calls[1])
        self.clock.advance(5.0)
        self.assertEqual([self.calls[0], self.calls[2]], self.expired)
        self.assertIsNone(self.queue.release(self.connection))
