"""A node in memory with a listener for beanstalkd's protocol."""

from __future__ import annotations

from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from disque_tx.commands.direct import DirectNode
from disque_tx.protocols.beanstalk.connection import BeanstalkConnection
from disque_tx.protocols.beanstalk.tubes import Tubes
from disque_tx.services.clients.direct import DirectConnection, DirectFactory
from tests.services.nodebench import NodeCase

REFUSAL = b"INTERNAL_ERROR\r\n"


class BeanstalkClient:
    """A client's end of a connection."""

    def __init__(self, connection: DirectConnection, transport: StringTransport) -> None:
        self.connection = connection
        self.transport = transport

    def send(self, data: bytes) -> bytes:
        """The replies to these bytes."""
        self.connection.dataReceived(data)
        return self.received()

    def put(self, body: bytes, priority: int = 10, delay_s: int = 0, ttr_s: int = 60) -> bytes:
        """The reply to a put."""
        line = b"put %d %d %d %d\r\n" % (priority, delay_s, ttr_s, len(body))
        return self.send(line + body + b"\r\n")

    def received(self) -> bytes:
        """What arrived since the last call."""
        data = bytes(self.transport.value())
        self.transport.clear()
        return data

    def hang_up(self) -> None:
        """The client is gone."""
        self.connection.connectionLost(Failure(ConnectionDone()))


class BeanstalkCase(NodeCase):
    """Tests by bytes in and out."""

    def setUp(self) -> None:
        super().setUp()
        self.direct = DirectNode(self.server, self.runtime.dispatcher)
        self.tubes = Tubes(self.direct, self.settings, self.later)
        self.beanstalk = DirectFactory(
            self.runtime,
            self.admission,
            b"beanstalk",
            lambda: BeanstalkConnection(self.tubes),
            REFUSAL,
        )

    def later(self, seconds: float, work: Any) -> Any:
        """A timer."""
        return self.reactor.callLater(seconds, self.in_turn, work)

    def in_turn(self, work: Any) -> None:
        """A turn of its own."""
        with self.runtime.turn() as node:
            work()
            node.serve()

    def client(self, host: str = "127.0.0.1") -> BeanstalkClient:
        """A connected client."""
        connection = self.beanstalk.buildProtocol(None)
        transport = StringTransport(peerAddress=IPv4Address("TCP", host, 5001))
        connection.makeConnection(transport)
        return BeanstalkClient(connection, transport)

    def stat(self, name: bytes, request: bytes = b"stats") -> bytes:
        """One field of a report."""
        report = self.client().send(request + b"\r\n")
        for line in report.split(b"\n"):
            if line.startswith(name + b": "):
                return line.partition(b": ")[2]
        self.fail(f"no {name!r} in {report!r}")

    def pass_s(self, seconds: float) -> None:
        """Let time pass in small steps."""
        while seconds > 0:
            self.reactor.advance(min(seconds, 0.1))
            seconds -= 0.1
