"""Which connection to a node gets a request, and which wait for jobs."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client.addresses import Address
from disque_tx.client.tx.calls import COPYING, QUICK, WAITING
from disque_tx.client.tx.pool import ConnectionPool, WaitQueue
from tests.forwardclock import ForwardClock


class _Connection:
    """A connection that only counts its calls. ``ended``: it was closed."""

    def __init__(self, pace: str) -> None:
        self.pace = pace
        self.load = 0
        self.opened = self.retired = self.ended = False

    def open(self) -> None:
        """It is made."""
        self.opened = True

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

    def test_copying(self) -> None:
        """ADDJOBs, which may wait for copies, get another connection when all have eight of them,
        up to eight connections; after that the one with the fewest."""
        for count, connections in ((8, 1), (1, 2), (7, 2), (48, 8), (9, 8)):
            for _ in range(count):
                self.send(COPYING)
            self.assertEqual(connections, len(self.made))
        self.assertEqual([10, *[9] * 7], [each.load for each in self.made])
        self.made[5].load = 0
        self.send(COPYING)
        self.assertEqual(1, self.made[5].load)
        self.assertEqual([COPYING] * 8, [each.pace for each in self.made])
        self.assertTrue(all(each.opened for each in self.made))

    def test_quick(self) -> None:
        """All requests that are answered at once share a connection; one that waits for jobs has
        its own, and uses the one that was used last if that is idle."""
        for _ in range(100):
            self.send(QUICK)
        self.assertEqual([100], [each.load for each in self.made])
        first, second = self.pool.for_waiting(), self.pool.for_waiting()
        self.assertEqual([QUICK, WAITING, WAITING], [each.pace for each in self.made])
        self.pool.idle += [first, second]
        self.assertIs(second, self.pool.for_waiting())
        self.assertEqual(3, len(self.pool))

    def test_idle(self) -> None:
        """Connections that wait for nothing are closed when they are not needed, and no other; a
        pool knows which are left."""
        self.send(QUICK)
        self.pool.idle += [self.pool.for_waiting() for _ in range(3)]
        busy = self.pool.idle.pop(1)
        self.pool.close_idle()
        self.assertEqual([False, True, False, True], [each.ended for each in self.made])
        for connection in self.pool.idle[:]:
            self.pool.forget(connection)
        self.assertEqual(([], 2), (self.pool.idle, len(self.pool)))
        self.pool.forget(busy)
        self.pool.forget(busy)
        self.assertEqual(1, len(self.pool))

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
        self.clock = ForwardClock()
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

    def test_several(self) -> None:
        """As many connections wait at nodes as are allowed, whichever end first."""
        queue = WaitQueue(2, self.clock, self.expired.append)
        pair: list[Any] = [_Connection(WAITING) for _ in range(2)]
        for connection, has_room in zip(pair, (True, False), strict=True):
            queue.acquire(connection)
            self.assertIs(has_room, queue.has_room)
        self.assertIsNone(queue.release(self.connection))
        self.assertFalse(queue.has_room)
        self.assertIsNone(queue.release(pair[1]))
        self.assertTrue(queue.has_room)

    def test_too_long(self) -> None:
        """A call waits in the queue for as long as it would at a node, and then no more."""
        self.queue.remove(self.calls[1])
        self.clock.advance(5.0)
        self.assertEqual([self.calls[0], self.calls[2]], self.expired)
        self.assertIsNone(self.queue.release(self.connection))
