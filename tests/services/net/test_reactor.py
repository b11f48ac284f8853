"""The daemon's reactor: what the node does and what Twisted does, in one loop.

Twisted's own tests of reactors are run on it by ``tests/acceptance/test_reactor.py``.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from typing import Any

from twisted.internet import main
from twisted.internet.protocol import Factory, Protocol
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from disque_tx.services.net.reactor import DisqueReactor, install
from disque_tx.services.turns.interfaces import IClock, IRoundsReactor
from tests.services.runningnode import RunningNode

#: A loop that does not end by itself is ended then, and the test fails.
_LIMIT_S = 60


@implementer(IClock)
class HandClock:
    """Both clocks stand still until the test sets them."""

    now_ms = 1_000_000

    def steady_ms(self) -> int:
        return self.now_ms

    def wall_us(self) -> int:
        return 1_700_000_000_000_000 + self.now_ms * 1000


class Caller(Protocol):
    """Calls a function for every read."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work

    def dataReceived(self, data: bytes) -> None:
        self._work()


class Echo(Protocol):
    """Sends back everything; two of them, connected, never end."""

    def dataReceived(self, data: bytes) -> None:
        transport: Any = self.transport
        transport.write(data)


class AlwaysReady:
    """A reader of Twisted's that is ready whenever it is looked at."""

    def __init__(self) -> None:
        self._end, self._other = os.pipe()
        os.write(self._other, b"x")
        self.reads = 0

    def fileno(self) -> int:
        return self._end

    def logPrefix(self) -> str:
        return "always ready"

    def doRead(self) -> None:
        self.reads += 1

    def connectionLost(self, reason: Failure) -> None:
        pass

    def close(self) -> None:
        os.close(self._end)
        os.close(self._other)


class ReactorCase(SynchronousTestCase):
    """A reactor of its own for each test, with a node."""

    def setUp(self) -> None:
        self.reactor = DisqueReactor()
        self.addCleanup(self.close)
        self.node = RunningNode(self.reactor)
        self.addCleanup(self.node.stop)

    def close(self) -> None:
        """Give the reactor's descriptors back."""
        for reader in self.reactor.removeAll():
            reader.connectionLost(Failure(ConnectionAbortedError()))
        self.reactor._poller.close()

    def dial(self) -> socket.socket:
        """A client."""
        client = self.node.dial()
        self.addCleanup(client.close)
        return client

    def served_by(self, protocol: Protocol) -> socket.socket:
        """The other end of a connection that the node serves with this protocol."""
        mine, its = socket.socketpair()
        self.addCleanup(mine.close)
        self.node.hub.adopt(its, Factory.forProtocol(lambda: protocol))
        return mine

    def run_loop(self) -> None:
        """Run the reactor until something stops it."""
        late: list[bool] = []

        def end() -> None:
            late.append(True)
            self.reactor.crash()

        watchdog = self.reactor.callLater(_LIMIT_S, end)
        self.reactor.run(installSignalHandlers=False)
        self.assertEqual([], late, "nothing stopped the reactor")
        watchdog.cancel()

    def flood(self) -> None:
        """Two connections of the node that are always busy with each other."""
        one, other = socket.socketpair()
        for sock in (one, other):
            self.node.hub.adopt(sock, Factory.forProtocol(Echo))
        os.write(one.fileno(), b"x")

    def always_ready(self) -> AlwaysReady:
        """A reader that keeps Twisted's part busy."""
        reader = AlwaysReady()
        self.addCleanup(reader.close)
        self.reactor.addReader(reader)
        self.addCleanup(self.reactor.removeReader, reader)
        return reader

    def stop_when_answered(self, client: socket.socket) -> None:
        """Stop the reactor as soon as the client has a reply."""
        reply = Answered(client, self.reactor.stop)
        self.reactor.addReader(reply)


class Answered(AlwaysReady):
    """A client whose replies Twisted's part of the reactor reads."""

    def __init__(self, client: socket.socket, done: Callable[[], object]) -> None:
        self._client = client
        self._done = done
        self.reply = b""

    def fileno(self) -> int:
        return self._client.fileno()

    def doRead(self) -> None:
        self.reply += self._client.recv(1000)
        self._done()


class AttachTests(ReactorCase):
    """Nodes on the reactor."""

    def test_interface(self) -> None:
        """Any hub finds out that the reactor runs rounds."""
        verifyObject(IRoundsReactor, self.reactor)

    def test_request(self) -> None:
        """A request is answered, without a reader in Twisted's part."""
        client = self.dial()
        client.sendall(b"PING\r\n")
        self.reactor.iterate()
        self.assertEqual(b"+PONG\r\n", client.recv(100))
        self.assertNotIn(self.node.hub, self.reactor.getReaders())

    def test_second_node(self) -> None:
        """A process that embeds two nodes has both of them served."""
        second = RunningNode(self.reactor)
        self.addCleanup(second.stop)
        clients = [self.dial(), second.dial()]
        self.addCleanup(clients[1].close)
        for client in clients:
            client.sendall(b"PING\r\n")
        self.reactor.iterate()
        for client in clients:
            self.assertEqual(b"+PONG\r\n", client.recv(100))

    def test_node_stops(self) -> None:
        """After the end of its node, even within a turn, the reactor goes on, and serves the next
        one."""
        self.served_by(Caller(self.node.stop)).sendall(b"x")
        self.reactor.callLater(0.001, self.reactor.stop)
        self.run_loop()
        self.node = RunningNode(self.reactor)
        self.addCleanup(self.node.stop)
        self.test_request()

    def test_due(self) -> None:
        """A blocked client gets its answer on time, although the reactor knows of no timer."""
        clock = HandClock()
        node = RunningNode(DisqueReactor(), clock=clock)
        self.addCleanup(node.stop)
        client = node.dial()
        self.addCleanup(client.close)
        client.sendall(b"GETJOB TIMEOUT 5000 FROM q\r\n")
        reactor: Any = node.hub._reactor
        reactor.iterate()
        clock.now_ms += 4_900
        reactor.iterate()
        client.setblocking(False)
        self.assertRaises(BlockingIOError, client.recv, 100)
        clock.now_ms += 200
        reactor.iterate()
        self.assertEqual(b"*-1\r\n", client.recv(100))
        self.assertEqual([], reactor.getDelayedCalls())


class CallTests(ReactorCase):
    """What happens in a turn gets Twisted's attention after it."""

    def during(self, work: Callable[[], object]) -> None:
        """Run the loop; ``work`` is called in a turn, while nothing else happens."""
        self.served_by(Caller(work)).sendall(b"x")
        self.run_loop()

    def test_call_later(self) -> None:
        """A call that a turn makes is not left until the next timer."""
        self.during(lambda: self.reactor.callLater(0, self.reactor.stop))

    def test_sooner(self) -> None:
        """Nor is one that is moved forward."""
        call = self.reactor.callLater(_LIMIT_S * 2, self.reactor.stop)
        self.during(lambda: call.reset(0))

    def test_from_thread(self) -> None:
        """Nor is one that is queued as threads do it."""
        self.during(lambda: self.reactor.callFromThread(self.reactor.stop))

    def test_stop(self) -> None:
        """A turn may stop the reactor itself."""
        self.during(self.reactor.stop)

    def test_crash(self) -> None:
        """A turn may end the loop at once."""
        self.during(self.reactor.crash)

    def test_iterate(self) -> None:
        """A turn that lets the reactor iterate does not begin another one, and calls are made."""
        seen: list[bool] = []

        def nested() -> None:
            self.reactor.callLater(0, lambda: seen.append(self.node.runtime.turns.active))
            self.reactor.iterate()
            self.reactor.stop()

        self.during(nested)
        self.assertEqual([True], seen)

    def test_fault(self) -> None:
        """A fault that ends a turn is logged, and the loop goes on."""
        deadlines = self.node.runtime.turns.deadlines

        class Faulty:
            def next_due_ms(self) -> int:
                return 0

            def run_due(self) -> None:
                deadlines.remove(self)
                raise ZeroDivisionError

        deadlines.append(Faulty())
        client = self.dial()
        client.sendall(b"PING\r\n")
        self.stop_when_answered(client)
        self.run_loop()
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))

    def test_signals(self) -> None:
        """While the loop runs, every signal ends its waiting; afterwards as before."""
        during: list[int] = []

        def look() -> None:
            during.append(signal.set_wakeup_fd(-1))
            signal.set_wakeup_fd(during[0])
            self.reactor.stop()

        before = signal.set_wakeup_fd(-1)
        self.addCleanup(signal.set_wakeup_fd, before)
        self.reactor.callLater(0, look)
        self.run_loop()
        self.assertNotEqual([-1], during)
        self.assertEqual(-1, signal.set_wakeup_fd(-1))


class FairnessTests(ReactorCase):
    """Clients and Twisted's part do not starve each other."""

    def test_timers_under_a_flood(self) -> None:
        """Clients that never stop sending do not delay timed calls forever."""
        self.flood()
        self.reactor.callLater(0.001, self.reactor.stop)
        self.run_loop()

    def test_readers_under_a_flood(self) -> None:
        """Nor readers of Twisted's, such as the listening socket."""
        self.flood()
        reader = self.always_ready()
        for _ in range(10):
            self.reactor.iterate()
        self.assertGreaterEqual(reader.reads, 9)

    def test_clients_beside_calls(self) -> None:
        """Calls that are made again and again do not keep clients from being served."""

        def again() -> None:
            self.reactor.callLater(0, again)

        again()
        client = self.dial()
        client.sendall(b"PING\r\n")
        self.stop_when_answered(client)
        self.run_loop()

    def test_clients_beside_readers(self) -> None:
        """Nor does a reader that is always ready."""
        self.always_ready()
        client = self.dial()
        client.sendall(b"PING\r\n")
        self.stop_when_answered(client)
        self.run_loop()

    def test_endless_pipeline(self) -> None:
        """A client that has always sent more than its share keeps neither others nor timers from
        being served."""
        greedy, other = self.dial(), self.dial()
        greedy.setblocking(False)
        replies: list[int] = []

        def more() -> None:
            try:
                greedy.sendall(b"PING\r\n" * 10_000)
            except BlockingIOError:
                replies.append(len(greedy.recv(1 << 20)))
            self.reactor.callLater(0, more)

        more()
        other.sendall(b"PING\r\n")
        self.stop_when_answered(other)
        self.run_loop()


class InstallTests(SynchronousTestCase):
    """The daemon's reactor as the one of the process."""

    def test_installed(self) -> None:
        """The daemon runs on its own reactor, not on Twisted's default."""
        installed: list[object] = []
        self.patch(main, "installReactor", installed.append)
        install()
        (reactor,) = installed
        assert isinstance(reactor, DisqueReactor)
        reactor.removeAll()
        reactor._poller.close()
