"""Tests for :mod:`disque_tx.sim.world.network`."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.messages.bus import JobSignal
from disque_tx.messages.bustypes import GOTJOB
from disque_tx.sim.world.network import Network, SimConnection
from disque_tx.sim.world.world import World
from disque_tx.wire.bus.parser import encode

A, B = b"10.0.0.1", b"10.0.0.2"
PORT = 7711
SECOND = 1_000_000


class End:
    """One end of a connection, with the data it has read; ``pieces``: read by read."""

    def __init__(self, connection: SimConnection) -> None:
        self.connection = connection
        self.pieces: list[bytes] = []
        self.lost = False
        connection.on_data = self.pieces.append
        connection.on_lost = self._lose

    def _lose(self) -> None:
        self.lost = True

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)


class Pair:
    """A network on which A connects to B. ``accepted``, ``near``: ends in order of connection."""

    def __init__(self, seed: int, messages: bool = False) -> None:
        self.world = World(seed)
        self.network = Network(self.world)
        self.accepted: list[End] = []
        self.near: list[End] = []
        self.failures: list[int] = []
        self.network.listen(B, PORT, lambda c: self.accepted.append(End(c)), messages)

    def connect(self) -> None:
        self.network.connect(
            A,
            B,
            PORT,
            lambda c: self.near.append(End(c)),
            lambda: self.failures.append(self.world.now_us),
        )

    def connected(self) -> tuple[End, End]:
        self.connect()
        self.world.run_for(10_000)
        return self.near[-1], self.accepted[-1]


def message(number: int) -> bytes:
    """A distinguishable message of the bus."""
    signal = JobSignal(GOTJOB, b"D-%038d" % number)
    signal.sender = b"a" * 40
    return encode(signal)


def numbered(count: int) -> list[bytes]:
    return [b"<%d:%s>" % (n, b"x" * (n % 50)) for n in range(count)]


class LiveTests(SynchronousTestCase):
    """Connections that work."""

    def test_in_order(self) -> None:
        """However a connection is delayed, all bytes arrive once and in order."""
        for seed in range(20):
            pair = Pair(seed)
            here, there = pair.connected()
            sent = numbered(200)
            random = pair.world.random("test")
            for number, piece in enumerate(sent):
                here.connection.write(piece)
                if number == 50:
                    here.connection.out.stall(SECOND)
                    pair.network.slow([A], 20_000, 10_000)
                if number == 100:
                    pair.world.at(900_000, pair.network.partition([A], [B], True))
                pair.world.run_for(random.randint(0, 500))
            pair.world.run_for(20 * SECOND)
            self.assertEqual(b"".join(sent), there.data)
            self.assertEqual(0, here.connection.unread_bytes)

    def test_pieces(self) -> None:
        """Reads are independent of writes: some combine them, some split them."""
        pair = Pair(5)
        here, there = pair.connected()
        sent = numbered(300)
        for piece in sent:
            here.connection.write(piece)
            pair.world.run_for(100)
        pair.world.run_for(SECOND)
        ends = {len(b"".join(sent[:n])) for n in range(len(sent) + 1)}
        read = [len(b"".join(there.pieces[:n])) for n in range(len(there.pieces) + 1)]
        self.assertTrue(any(place not in ends for place in read))
        self.assertLess(len(there.pieces), len(sent))

    def test_close(self) -> None:
        """Closing loses no written data, and the other side is notified after it."""
        pair = Pair(1)
        here, there = pair.connected()
        here.connection.write(b"last words")
        here.connection.close()
        self.assertFalse(there.lost)
        pair.world.run_for(SECOND)
        self.assertEqual((b"last words", True), (there.data, there.lost))
        self.assertFalse(here.lost)
        self.assertEqual([], pair.network.live())

    def test_refused(self) -> None:
        """Without a listener connecting fails at once; behind a partition, after its timeout."""
        pair = Pair(1)
        pair.network.partition([A], [B], False)
        pair.connect()
        pair.world.run_for(10 * SECOND)
        self.assertGreaterEqual(pair.failures[0], 2 * SECOND)
        pair.network.heal()
        pair.network.stop_listening(B)
        before_us = pair.world.now_us
        pair.connect()
        pair.world.run_for(SECOND)
        self.assertLess(pair.failures[1], before_us + 10_000)

    def test_partition_heals(self) -> None:
        """Data written during a partition arrives when it ends."""
        for one_way in (False, True):
            pair = Pair(2)
            here, there = pair.connected()
            rejoin = pair.network.partition([A], [B], one_way)
            here.connection.write(b"across")
            there.connection.write(b"back")
            pair.world.run_for(900_000)
            self.assertEqual(b"", there.data)
            self.assertEqual(b"back" if one_way else b"", here.data)
            rejoin()
            pair.world.run_for(SECOND)
            self.assertEqual((b"back", b"across"), (here.data, there.data))

    def test_frozen(self) -> None:
        """A frozen process reads nothing and accepts no connection; when it resumes it finds
        everything."""
        pair = Pair(1)
        pair.network.freeze(B)
        pair.connect()
        pair.world.run_for(10_000)
        pair.near[0].connection.write(b"hello")
        pair.world.run_for(SECOND)
        self.assertEqual([], pair.accepted)
        self.assertEqual(5, pair.near[0].connection.unread_bytes)
        pair.network.thaw(B)
        pair.world.run_for(SECOND)
        self.assertEqual(b"hello", pair.accepted[0].data)


class BrokenTests(SynchronousTestCase):
    """Connections that break."""

    def test_reset(self) -> None:
        """A reset loses the end of each direction, nothing in the middle; both sides are
        notified."""
        lost_some = 0
        for seed in range(40):
            pair = Pair(seed)
            here, there = pair.connected()
            sent = numbered(20)
            for piece in sent:
                here.connection.write(piece)
                pair.world.run_for(30)
            pair.network.reset(here.connection)
            pair.world.run_for(30 * SECOND)
            self.assertTrue(b"".join(sent).startswith(there.data))
            lost_some += len(there.data) < len(b"".join(sent))
            self.assertTrue(here.lost and there.lost)
        self.assertGreater(lost_some, 0)

    def test_half_open(self) -> None:
        """The side that was not notified finds out when it writes."""
        pair = Pair(1)
        here, there = pair.connected()
        pair.network.half_open(here.connection)
        pair.world.run_for(SECOND)
        self.assertEqual((True, False), (here.lost, there.lost))
        there.connection.write(b"anybody?")
        pair.world.run_for(100_000)
        self.assertTrue(there.lost)
        self.assertEqual(b"", here.data)

    def test_keepalive(self) -> None:
        """The side that was not notified and does not write finds out after some seconds."""
        pair = Pair(1)
        here, there = pair.connected()
        pair.network.half_open(here.connection)
        pair.world.run_for(20 * SECOND)
        self.assertTrue(there.lost)

    def test_one_way_dead(self) -> None:
        """One direction loses everything, the other works, and neither side is notified."""
        pair = Pair(1)
        here, there = pair.connected()
        here.connection.out.dead = True
        here.connection.write(b"lost")
        there.connection.write(b"received")
        pair.world.run_for(600 * SECOND)
        self.assertEqual((b"received", b""), (here.data, there.data))
        self.assertEqual((False, False), (here.lost, there.lost))

    def test_late(self) -> None:
        """Data of an old connection arrives while a newer one is in use."""
        pair = Pair(1)
        old, old_there = pair.connected()
        old.connection.write(b"old")
        pair.network.deliver_late(old.connection, 2 * SECOND)
        pair.world.run_for(10_000)
        self.assertTrue(old.lost)
        new, new_there = pair.connected()
        new.connection.write(b"new")
        pair.world.run_for(SECOND)
        self.assertEqual((b"new", b""), (new_there.data, old_there.data))
        pair.world.run_for(2 * SECOND)
        self.assertEqual((b"old", True), (old_there.data, old_there.lost))

    def test_killed(self) -> None:
        """A killed process is never called again, and the other side is eventually notified."""
        for power in (False, True):
            pair = Pair(3)
            here, there = pair.connected()
            here.connection.write(b"late")
            pair.network.kill(B, power)
            pair.world.run_for(20 * SECOND)
            self.assertEqual((b"", False, True), (there.data, there.lost, here.lost))
            self.assertEqual([], pair.network.live())


class MessageTests(SynchronousTestCase):
    """Lost messages of the bus."""

    def sent(self, rate: float) -> tuple[Pair, list[bytes], bytes]:
        """The number of messages sent, and the bytes that were read."""
        pair = Pair(1, messages=True)
        here, there = pair.connected()
        pair.network.message_faults = rate
        messages = [message(n) for n in range(300)]
        for start in range(0, 300, 3):
            here.connection.write(b"".join(messages[start : start + 3]))
            pair.world.run_for(1_000)
        pair.world.run_for(10 * SECOND)
        return pair, messages, there.data

    def test_counted(self) -> None:
        """Without faults every message is counted and arrives in its place."""
        pair, messages, data = self.sent(0.0)
        self.assertEqual(b"".join(messages), data)
        self.assertEqual(300, pair.world.counters["bus.GOTJOB"])
        self.assertEqual(len(data), pair.world.counters["bus.bytes"])

    def test_faults(self) -> None:
        """Messages are dropped, duplicated and reordered, but stay whole."""
        pair, messages, data = self.sent(0.3)
        size = len(messages[0])
        read = [data[start : start + size] for start in range(0, len(data), size)]
        self.assertEqual(set(), set(read) - set(messages))
        counters = pair.world.counters
        dropped, doubled = counters["bus.GOTJOB.dropped"], counters["bus.GOTJOB.duplicated"]
        self.assertTrue(dropped and doubled and counters["bus.GOTJOB.overtaken"])
        self.assertEqual(300 - dropped + doubled, len(read))
        self.assertEqual(300 - dropped, len(set(read)))
        first = sorted(set(read), key=read.index)
        self.assertNotEqual([one for one in messages if one in read], first)

    def test_next_connection(self) -> None:
        """A late message may arrive on the next connection, but not at the next process."""
        for killed in (False, True):
            pair = Pair(2, messages=True)
            here, _ = pair.connected()
            pair.network.message_faults = 1.0
            for number in range(30):
                here.connection.write(message(number))
            pair.network.message_faults = 0.0
            here.connection.abort()
            if killed:
                pair.network.kill(B, False)
                pair.network.listen(B, PORT, lambda c: pair.accepted.append(End(c)), True)  # noqa: B023
            _, there = pair.connected()
            pair.world.run_for(20 * SECOND)
            self.assertEqual(killed, there.data == b"")
