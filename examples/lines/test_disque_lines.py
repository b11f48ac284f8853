"""Tests of the line protocol: ``python -m twisted.trial test_disque_lines``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from disque_lines import WAITING_MAX, LinesPlugin
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyClass

from disque_tx.plugins import CommandError, IClientProtocol, IConnection, Role


@implementer(IConnection)
class Connection:
    """A client of a node that exists in this test alone. ``password``: of the node. ``calls``:
    what the protocol asked for. ``waiting``: calls that the test answers."""

    def __init__(self, password: bytes) -> None:
        self.password = password
        self.calls: list[tuple[bytes, ...]] = []
        self.waiting: list[Deferred[Any]] | None = None
        self.open = True

    def authenticate(self, password: bytes | None) -> Role:
        return Role.FULL if (password or b"") == self.password else Role.NONE

    def call(self, role: Role, *words: bytes) -> Deferred[Any]:
        if role is not Role.FULL:
            return fail(CommandError("NOAUTH", "Authentication required."))
        self.calls.append(words)
        if self.waiting is None:
            return succeed(SimpleNamespace(text=b"D-%d" % len(self.calls)))
        self.waiting.append(Deferred())
        return self.waiting[-1]

    def acted(self, jobs: int, *words: bytes) -> None:
        """The protocol changes nothing but by adding jobs."""

    def rename(self, name: bytes) -> None:
        """The protocol names no client."""

    def received(self, size: int) -> None:
        """Not counted here."""

    def sent(self, size: int) -> None:
        """Not counted here."""

    def closed(self) -> None:
        self.open = False
        for call in self.waiting or []:
            call.cancel()


class LinesTests(SynchronousTestCase):
    """Lines in, jobs out."""

    def connect(self, password: bytes = b"") -> None:
        """A client that is connected."""
        self.connection = Connection(password)
        host: Any = SimpleNamespace(admit=lambda _transport, _name: self.connection)
        self.transport = StringTransport()
        self.protocol: Any = LinesPlugin().factory(host).buildProtocol(None)
        self.protocol.makeConnection(self.transport)

    def answers(self, data: bytes) -> list[bytes]:
        """What a client gets for these bytes."""
        self.transport.clear()
        self.protocol.dataReceived(data)
        return self.transport.value().splitlines()

    def test_interfaces(self) -> None:
        """The node can use the plugin, and the double above is what the node offers."""
        verifyClass(IClientProtocol, LinesPlugin)
        verifyClass(IConnection, Connection)

    def test_jobs(self) -> None:
        """Each line is a job, and is answered with its ID."""
        self.connect()
        self.assertEqual([b"D-1", b"D-2"], self.answers(b"mail Dear Alice\nmail hello\r\n"))
        self.assertEqual((b"ADDJOB", b"mail", b"Dear Alice", b"5000"), self.connection.calls[0])

    def test_nonsense(self) -> None:
        """A line without a body is an error, and the next one is served."""
        self.connect()
        first, second = self.answers(b"mail\nmail x\n")
        self.assertTrue(first.startswith(b"ERROR ERR A line is"))
        self.assertEqual(b"D-1", second)

    def test_password(self) -> None:
        """Without the password nothing is added."""
        self.connect(b"secret")
        lines = b"mail x\nPASSWORD guess\nPASSWORD secret\nmail x\n"
        codes = [answer.split()[:2] for answer in self.answers(lines)]
        self.assertEqual([[b"ERROR", b"NOAUTH"], [b"ERROR", b"NOPERM"], [b"OK"], [b"D-1"]], codes)

    def test_too_long(self) -> None:
        """A line without an end does not fill the memory."""
        self.connect()
        self.answers(b"x" * 1_000_000)
        self.assertTrue(self.transport.disconnecting)

    def test_too_many(self) -> None:
        """A client that sends faster than jobs can be added has to wait."""
        self.connect()
        self.connection.waiting = []
        self.answers(b"mail x\n" * WAITING_MAX)
        self.assertEqual("paused", self.transport.producerState)
        self.connection.waiting[0].callback(SimpleNamespace(text=b"D-1"))
        self.assertEqual("producing", self.transport.producerState)

    def test_gone(self) -> None:
        """The end of the connection ends what is under way."""
        self.connect()
        self.connection.waiting = []
        self.answers(b"mail x\nmail y\n")
        self.protocol.connectionLost(Failure(ConnectionDone()))
        self.assertEqual((1, False), (len(self.connection.calls), self.connection.open))
