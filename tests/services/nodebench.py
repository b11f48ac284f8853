"""A node with real engine, commands and protocols; the test controls time, log and reactor."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IReactorTime, IReadDescriptor
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from disque_tx.commands.base.control import Control
from disque_tx.engine.turns import CommittedLog
from disque_tx.services.clients.protocol import RespProtocol
from disque_tx.services.machine.log import DaemonLog
from disque_tx.services.machine.memoryfiles import MemoryFiles
from disque_tx.services.machine.platform import Platform
from disque_tx.services.turns.interfaces import IClock
from tests.commands.desk import UNIX_S
from tests.forwardclock import ForwardReactor
from tests.services.runningnode import RunningNode, memory_control

FIRST_ID = b"D-aaaaaaaa-%024d-05a1" % 1


@implementer(IClock)
class BenchClock:
    """Both clocks follow the reactor's."""

    def __init__(self, reactor: IReactorTime) -> None:
        self._reactor = reactor

    def steady_ms(self) -> int:
        return 50_000 + round(self._reactor.seconds() * 1000)

    def wall_us(self) -> int:
        return UNIX_S * 1_000_000 + round(self._reactor.seconds() * 1_000_000)


class BenchLog(CommittedLog):
    """A log that records, at each commit, the output sent until then. ``error``: raised."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open = True
        self.write_error = ""
        self.commits = 0
        self.error: Exception | None = None
        self.before: Any = None

    def commit(self) -> str:
        if self.error is not None:
            raise self.error
        self.commits += 1
        if self.before is not None:
            self.before()
        return self.write_error


class NodeCase(SynchronousTestCase):
    """Tests on one node; ``self.connect`` makes clients on a Twisted transport, ``self.dial`` on
    the fast acceptor. ``request_ns``: how long each request takes."""

    def setUp(self) -> None:
        self.reactor = self.make_reactor()
        self.log_path = self.mktemp()
        self.log = DaemonLog("debug", self.log_path)
        self.request_ns = 0
        self._clock_ns = 0
        self.running_node = RunningNode(
            self.reactor, self.log, BenchClock(self.reactor), self.make_control(), self.clock_ns
        )
        self.addCleanup(self.running_node.stop)
        self.settings = self.running_node.settings
        self.node = self.running_node.node
        self.control = self.running_node.control
        self.server = self.running_node.server
        self.runtime = self.running_node.runtime
        self.commits = BenchLog()
        self.runtime.turns.log = self.commits
        self.admission = self.running_node.admission
        self.factory = self.running_node.factory
        self.hub = self.running_node.hub

    def clock_ns(self) -> int:
        """The dispatcher's clock."""
        self._clock_ns += self.request_ns
        return self._clock_ns

    def platform(self, in_thread: Callable[..., Deferred[Any]] = maybeDeferred) -> Platform:
        """The environment of services. ``in_thread``: runs work at once instead of in a thread."""
        clock = BenchClock(self.reactor)
        return Platform(self.reactor, clock, MemoryFiles(), self.log, in_thread)

    def make_reactor(self) -> MemoryReactorClock:
        """Where timers and descriptors are registered."""
        return ForwardReactor()

    def make_control(self) -> Control:
        """The process control that commands use."""
        return memory_control()

    def logged(self) -> str:
        """The text of the daemon's log."""
        try:
            with open(self.log_path, encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def connect(self, peer: Any = None) -> tuple[RespProtocol, StringTransport]:
        """A client whose transport is in memory."""
        protocol = self.factory.buildProtocol(None)
        transport = StringTransport(peerAddress=peer or IPv4Address("TCP", "127.0.0.1", 5001))
        protocol.makeConnection(transport)
        return protocol, transport

    def dial(self) -> socket.socket:
        """The client's end of a connection to the fast acceptor."""
        mine = self.running_node.dial()
        self.addCleanup(mine.close)
        return mine

    def turn(self, *requests: bytes) -> bytes:
        """The replies to inline requests of a new in-memory client."""
        protocol, transport = self.connect()
        protocol.dataReceived(b"".join(request + b"\r\n" for request in requests))
        return bytes(transport.value())


def drive(reactor: MemoryReactorClock) -> None:
    """Let an in-memory reactor process its descriptors until none is ready."""
    while True:
        reactor.advance(0)
        readers = {d for d in reactor.getReaders() if IReadDescriptor.providedBy(d)}
        ready = select.select(readers, reactor.getWriters(), [], 0)
        if not ready[0] and not ready[1]:
            return
        for descriptor in ready[0]:
            ended(descriptor, descriptor.doRead(), reactor)
        for descriptor in ready[1]:
            if descriptor in reactor.getWriters():
                ended(descriptor, descriptor.doWrite(), reactor)


def ended(descriptor: Any, why: Exception | Failure | None, reactor: MemoryReactorClock) -> None:
    """Do what every reactor does when a descriptor reports that it is finished."""
    if why is not None:
        reactor.removeReader(descriptor)
        reactor.removeWriter(descriptor)
        descriptor.connectionLost(Failure(why))
