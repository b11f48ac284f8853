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

from disque_tx.commands.context import Control, Server
from disque_tx.commands.dispatch import Dispatcher
from disque_tx.commands.memory import MemoryControl
from disque_tx.commands.table import standard_registry
from disque_tx.config.settings import Settings
from disque_tx.core.membership import Membership
from disque_tx.core.node import Node
from disque_tx.nodetable import MYSELF, NodeEntry
from disque_tx.services.clients.admission import Admission
from disque_tx.services.clients.protocol import RespFactory, RespProtocol
from disque_tx.services.host.log import DaemonLog
from disque_tx.services.host.memoryfiles import MemoryFiles
from disque_tx.services.host.platform import Platform
from disque_tx.services.interfaces import IClock
from disque_tx.services.net.hub import Hub
from disque_tx.services.runtime import Runtime
from tests.commands.desk import ME, UNIX_S, NumberedIds

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


class BenchLog:
    """A log that records, at each commit, the output sent until then. ``error``: raised."""

    def __init__(self) -> None:
        self.write_error = ""
        self.commits = 0
        self.error: Exception | None = None
        self.before: Any = None

    def commit(self) -> None:
        if self.error is not None:
            raise self.error
        self.commits += 1
        if self.before is not None:
            self.before()


class NodeCase(SynchronousTestCase):
    """Tests on one node; ``self.connect`` makes clients on a Twisted transport, ``self.dial`` on
    the fast acceptor. ``request_ns``: how long each request takes."""

    def setUp(self) -> None:
        self.reactor = self.make_reactor()
        self.settings = Settings(dir="/")
        self.log_path = self.mktemp()
        self.log = DaemonLog("debug", self.log_path)
        membership = Membership(NodeEntry(ME, b"", 7711, MYSELF, 0), lambda: b"b" * 40)
        self.node = Node(membership, NumberedIds(), lambda: 0.5)
        self.control = self.make_control()
        self.server = Server(self.node, self.control, standard_registry())
        self.request_ns = 0
        self._clock_ns = 0
        dispatcher = Dispatcher(self.server, self.server.registry, self.clock_ns)
        self.runtime = Runtime(
            self.node, self.server, dispatcher, BenchClock(self.reactor), self.reactor
        )
        self.commits = BenchLog()
        self.runtime.turns.log = self.commits
        self.admission = Admission(self.runtime, self.settings, self.log)
        self.factory = RespFactory(self.runtime, self.admission)
        self.hub = Hub(self.reactor, self.runtime)
        self.hub.start()
        self.addCleanup(self.hub.stop)
        self.addCleanup(self.runtime.stop)

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
        return MemoryReactorClock()

    def make_control(self) -> Control:
        """The process control that commands use."""
        return MemoryControl({b"requirepass": b"", b"maxmemory": b"1073741824"})

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
        mine, its = socket.socketpair()
        self.addCleanup(mine.close)
        mine.settimeout(5)
        self.hub.adopt(its, self.factory)
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
