"""The ports of a process whose connections come from its parent."""

from __future__ import annotations

import socket
from typing import Any

from twisted.internet.interfaces import IListeningPort
from twisted.internet.protocol import Factory
from twisted.internet.testing import MemoryReactor
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from disque_tx.services.processes.parent.balance import Balance
from disque_tx.services.processes.parent.handover import (
    Entrance,
    PassedPort,
    _ListeningReactor,
    _PassedReactor,
    _Passing,
)
from disque_tx.services.processes.parent.memorychildren import MemoryChild


class _Hub:
    """Keeps what it is to serve."""

    def __init__(self) -> None:
        self.adopted: list[tuple[socket.socket, object]] = []

    def adopt(self, sock: socket.socket, factory: Any) -> bool:
        """Serve a connection."""
        self.adopted.append((sock, factory))
        return True


class PassedTests(SynchronousTestCase):
    """Ports in a child."""

    def setUp(self) -> None:
        self.hub = _Hub()
        hub: Any = self.hub
        self.reactor = _PassedReactor(MemoryReactor(), hub)

    def pair(self) -> socket.socket:
        """A connection that was passed on."""
        mine, its = socket.socketpair()
        self.addCleanup(mine.close)
        self.addCleanup(its.close)
        return its

    def test_numbered(self) -> None:
        """Ports have the numbers of the directives that make them, whatever kind they are of, and
        each serves its connections with its own protocol."""
        factories = [Factory() for _ in range(3)]
        ports = [
            self.reactor.listenTCP(0, factories[0], interface="127.0.0.1"),
            self.reactor.listenUNIX("x", factories[1], backlog=5),
            self.reactor.adoptStreamPort(9, socket.AF_INET, factories[2]),
        ]
        self.assertEqual(ports, self.reactor.entrances)
        socks = [self.pair() for _ in ports]
        for port, sock in zip(ports, socks, strict=True):
            port.adopt(sock)
        self.assertEqual(list(zip(socks, factories, strict=True)), self.hub.adopted)

    def test_closed(self) -> None:
        """A port that is closed serves nothing more: what is still passed on is disconnected."""
        port = PassedPort(self.hub, Factory())
        verifyObject(IListeningPort, port)
        port.startListening()
        self.successResultOf(port.stopListening())
        sock = self.pair()
        port.adopt(sock)
        self.assertEqual((-1, []), (sock.fileno(), self.hub.adopted))
        self.assertRaises(NotImplementedError, port.getHost)


class ListeningTests(SynchronousTestCase):
    """Ports in the parent."""

    def test_numbered(self) -> None:
        """The main port is number 0, and each other one is one more, in the order of directives:
        the processes number them alike."""
        balance = Balance()
        self.addCleanup(balance.close)
        child = MemoryChild(1, 1_001)
        balance.add({1: child})
        passing: Any = _Passing(balance)
        reactor = _ListeningReactor(MemoryReactor(), passing)
        places = [Entrance(0), Factory(), Factory(), Entrance(0)]
        for place in places:
            sock = socket.create_server(("127.0.0.1", 0))
            port = reactor.serve(sock, place)
            self.addCleanup(port.stopListening)
            with socket.create_connection(sock.getsockname()):
                port.doRead()
        self.assertEqual([["client", number] for number in (0, 1, 2, 0)], child.messages)
        self.assertEqual(4, child.sockets)

    def test_stopped(self) -> None:
        """What was not passed on is closed when the daemon ends."""
        balance = Balance()
        passing = _Passing(balance)
        mine, its = socket.socketpair()
        self.addCleanup(mine.close)
        passing.start()
        self.assertTrue(passing.adopt(its, Entrance(2)))
        passing.stop()
        self.assertEqual(-1, its.fileno())
