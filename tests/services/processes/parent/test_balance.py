"""Connections spread over processes, and the channel on which they are passed."""

from __future__ import annotations

import random
import socket

from twisted.internet.testing import MemoryReactor
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.services.processes.channel import Message, ProcessChannel, pair
from disque_tx.services.processes.parent.balance import WAITING_MAX, Balance
from disque_tx.services.processes.parent.memorychildren import MemoryChild
from disque_tx.services.processes.summedinfo import SUMMED, fields


class BalanceTests(SynchronousTestCase):
    """Which process gets a connection."""

    def setUp(self) -> None:
        self.balance = Balance()
        self.addCleanup(self.balance.close)
        self.children = [MemoryChild(number, 1000 + number) for number in (1, 2, 3)]

    def add(self, *numbers: int) -> None:
        """These processes take connections."""
        self.balance.add({number: self.children[number - 1] for number in numbers})

    def give(self, count: int, entrance: int = 0) -> list[int]:
        """Pass on so many connections; returns how many each process has got so far."""
        for _ in range(count):
            self.balance.give(entrance, socket.socket())
        return [child.sockets for child in self.children]

    def test_even(self) -> None:
        """Few connections are spread as evenly as can be."""
        self.add(1, 2, 3)
        self.assertEqual([2, 3, 3], sorted(self.give(8)))
        self.assertEqual([["client", 0]] * 3, max(child.messages for child in self.children))

    def test_many(self) -> None:
        """Of many connections no process has three more than another one, however chance has
        it."""
        for choose in (lambda targets: targets[0], lambda targets: targets[-1], random.choice):
            self.balance = Balance(choose)
            self.addCleanup(self.balance.close)
            self.children = [MemoryChild(number, 1000 + number) for number in (1, 2, 3)]
            self.add(1, 2, 3)
            counts = self.give(100)
            self.assertEqual(100, sum(counts))
            self.assertLess(max(counts) - min(counts), 3)

    def test_pairs(self) -> None:
        """Of producers and consumers that connect in turn, neither are all at one process, and some
        pairs are at the same one: their jobs need not move."""
        self.balance = Balance(random.Random(1).choice)
        self.addCleanup(self.balance.close)
        self.add(1, 2)
        order = []
        for _ in range(40):
            before = [child.sockets for child in self.children]
            after = self.give(1)
            order.append([count - had for count, had in zip(after, before, strict=True)].index(1))
        producers, consumers = order[::2], order[1::2]
        self.assertEqual([{0, 1}] * 2, [set(producers), set(consumers)])
        together = sum(map(int.__eq__, producers, consumers))
        self.assertIn(together, range(1, 20))

    def test_fewest_clients(self) -> None:
        """A process whose clients have left gets the next ones."""
        self.add(1, 2, 3)
        self.give(9)
        self.balance.report(2, clients=0, received=3)
        self.assertEqual([3, 6, 3], self.give(3))

    def test_on_the_way(self) -> None:
        """Connections that a process had not received when it reported count, too."""
        self.add(1, 2, 3)
        self.give(9)
        self.balance.report(1, clients=1, received=1)
        self.assertEqual([4, 4, 4], self.give(3))

    def test_ended(self) -> None:
        """A process that has ended gets none, and when it is back it gets its share."""
        self.add(1, 2, 3)
        self.balance.remove(3)
        self.assertEqual([3, 3, 0], self.give(6))
        self.add(3)
        self.assertEqual([3, 3, 3], self.give(3))

    def test_ready_later(self) -> None:
        """A process that takes connections while it loads its log is not taken for an empty one
        when it is ready."""
        self.add(1, 2)
        self.give(4)
        self.add(1)
        self.balance.report(1, clients=2, received=2)
        self.assertEqual([3, 3, 0], self.give(2))

    def test_wait(self) -> None:
        """Clients that connect before any process serves wait, and are spread then."""
        self.give(6, entrance=2)
        self.add(1, 2, 3)
        self.assertEqual([2, 2, 2], [child.sockets for child in self.children])
        self.assertEqual([["client", 2]] * 2, self.children[1].messages)

    def test_waiting_is_limited(self) -> None:
        """When no process comes, those that wait do not use up all descriptors."""
        ours, theirs = socket.socketpair()
        self.addCleanup(theirs.close)
        waiting = [ours.dup() for _ in range(WAITING_MAX)]
        for sock in waiting:
            self.balance.give(0, sock)
        self.balance.give(0, ours)
        self.assertEqual(-1, ours.fileno())
        self.assertNotIn(-1, [sock.fileno() for sock in waiting])
        self.add(1, 2)
        self.assertEqual(WAITING_MAX, sum(child.sockets for child in self.children))

    def test_closed(self) -> None:
        """When the daemon ends, those that wait are disconnected."""
        kept, clients = [], []
        for close in (self.balance.close, lambda: None):
            ours, theirs = socket.socketpair()
            self.addCleanup(theirs.close)
            theirs.setblocking(False)
            self.balance.give(0, ours)
            close()
            kept.append(ours)  # a socket that is collected is closed as well
            clients.append(theirs)
        self.assertEqual([b"", b""], [client.recv(1) for client in clients])


class ChannelTests(SynchronousTestCase):
    """Messages between two processes, here within one."""

    def setUp(self) -> None:
        self.reactor = MemoryReactor()
        self.received: list[tuple[Message, socket.socket | None]] = []
        self.lost = 0
        here, there = pair()
        self.here = ProcessChannel(self.reactor, here, self.take, self.end)
        self.there = ProcessChannel(self.reactor, there, self.take, self.end)
        self.addCleanup(self.here.close)
        self.addCleanup(self.there.close)

    def take(self, message: Message, sock: socket.socket | None) -> None:
        """A message has come."""
        self.received.append((message, sock))

    def end(self) -> None:
        """The other end is gone."""
        self.lost += 1

    def test_message(self) -> None:
        """Messages arrive whole and in order."""
        for number in range(3):
            self.here.send(["report", {"clients": number}])
        self.there.doRead()
        self.assertEqual(
            [(["report", {"clients": number}], None) for number in range(3)], self.received
        )

    def test_socket(self) -> None:
        """A connection that is passed on goes on with its client."""
        ours, client = socket.socketpair()
        self.addCleanup(client.close)
        self.here.send(["client", 0], ours)
        self.assertEqual(-1, ours.fileno())
        self.there.doRead()
        ((message, sock),) = self.received
        assert sock is not None
        self.addCleanup(sock.close)
        self.assertEqual(["client", 0], message)
        sock.sendall(b"hello")
        self.assertEqual(b"hello", client.recv(10))

    def test_slow_reader(self) -> None:
        """What the other end does not read yet waits, and arrives."""
        big = "x" * 50_000
        for _ in range(20):
            self.here.send([big])
        self.assertIn(self.here, self.reactor.getWriters())
        while len(self.received) < 20:
            self.there.doRead()
            self.here.doWrite()
        self.assertNotIn(self.here, self.reactor.getWriters())

    def test_unsent(self) -> None:
        """Connections that did not reach a process that ended can be passed to another one."""
        for _ in range(20):
            self.here.send(["x" * 50_000])
        ours, client = socket.socketpair()
        self.addCleanup(client.close)
        self.here.send(["client", 3], ours)
        self.assertEqual([(["client", 3], ours)], self.here.close())
        ours.close()

    def test_unsent_to_the_dead(self) -> None:
        """A connection that is sent to a process which has just ended is not lost: it is the first
        of those that can be passed to another one."""
        self.there.close()
        mine, client = socket.socketpair()
        self.addCleanup(client.close)
        self.addCleanup(mine.close)
        self.here.send(["client", 3], mine)
        self.here.send(["set", "hz", "10"])
        self.assertNotEqual(-1, mine.fileno())
        self.assertEqual([(["client", 3], mine)], self.here.close())
        self.assertEqual([], self.here.close())

    def test_many(self) -> None:
        """Of very many messages some are read in a turn, in order, and the rest in the next."""
        for number in range(201):
            self.here.send([number])
        while self.here in self.reactor.getWriters():
            self.there.doRead()
            self.here.doWrite()
        while len(self.received) < 201:
            self.there.doRead()
        self.assertEqual([[number] for number in range(201)], [one for one, _ in self.received])

    def test_end(self) -> None:
        """The end of one process is noticed by the other one, and sending is harmless then."""
        self.there.close()
        self.here.doRead()
        self.assertEqual(1, self.lost)
        self.here.close()
        ours, client = socket.socketpair()
        self.addCleanup(client.close)
        self.here.send(["client", 0], ours)
        self.assertEqual(b"", client.recv(1))


class FigureTests(SynchronousTestCase):
    """INFO processes."""

    def test_sums(self) -> None:
        """Sums have the names of the fields that they are the sums of."""
        known = {"pid": 7, "port": 7712, "id": "a" * 40, "state": "ready", "uptime": 5}
        rows = [
            {**known, "number": number, "restarts": 0, "figures": dict.fromkeys(SUMMED, number)}
            for number in (1, 2)
        ]
        rows.append({**known, "number": 3, "restarts": 2, "state": "down", "figures": {}})
        shown = dict(fields(rows, {"total_jobs_added": 40}))
        self.assertEqual("3", shown["processes"])
        self.assertEqual("43", shown["all_total_jobs_added"])
        self.assertEqual("3", shown["all_registered_jobs"])
        node = "a" * 40
        self.assertEqual(
            f"pid=7,port=7712,node={node},state=down,clients=0,jobs=0,uptime=5,restarts=2",
            shown["process_3"],
        )
