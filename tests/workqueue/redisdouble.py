"""A Redis server in memory that sends scripted replies, for one program with an in-memory
reactor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hiredis
from twisted.internet.error import ConnectionAborted, ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from disque_tx.workqueue.redis import Redis
from tests.forwardclock import ForwardReactor

#: In place of a reply: the server says nothing.
SILENCE = object()


class Refusal(Exception):
    """In place of a reply: an error."""


class _Transport(StringTransport):
    """The client's end of a connection."""

    protocol: Any = None

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Nothing to do in memory."""

    def setTcpKeepAlive(self, enabled: bool) -> None:
        """Nothing to do in memory."""

    def abortConnection(self) -> None:
        self.hang_up(ConnectionAborted())

    def loseConnection(self) -> None:
        self.hang_up(ConnectionDone())

    def hang_up(self, why: Exception) -> None:
        """Either side ends the connection."""
        if not self.disconnected:
            self.disconnected = True
            self.protocol.connectionLost(Failure(why))


class RedisDouble:
    """``answer``: called with the words of each request; returns the reply. CLIENT ID is answered
    here, with the number of the connection. ``requests``: all others, with that number;
    ``transports``: of all connections."""

    def __init__(self, answer: Callable[[list[Any]], Any] = lambda words: b"OK") -> None:
        self.reactor: Any = ForwardReactor()
        self.answer = answer
        self.requests: list[tuple[int, list[bytes]]] = []
        self.transports: list[_Transport] = []
        self._readers: list[hiredis.Reader] = []
        self.redis = Redis.at("redis://127.0.0.1", self.reactor)

    def settle(self) -> None:
        """Connect and answer, until nothing is left to do at this moment."""
        busy = True
        while busy:
            self.reactor.advance(0)
            busy = self._connect()
            for number, transport in enumerate(self.transports):
                busy |= self._answer(number, transport)

    def advance(self, seconds: float) -> None:
        """Let time pass, with answers at its end."""
        self.reactor.advance(seconds)
        self.settle()

    def open(self) -> list[int]:
        """The numbers of the connections that are open."""
        return [at for at, one in enumerate(self.transports) if not one.disconnected]

    def commands(self) -> list[bytes]:
        """The first words of all requests."""
        return [words[0] for _, words in self.requests]

    def _connect(self) -> bool:
        waiting, self.reactor.tcpClients[:] = list(self.reactor.tcpClients), []
        for host, port, factory, *_ in waiting:
            transport = _Transport()
            transport.protocol = factory.buildProtocol((host, port))
            self.transports.append(transport)
            self._readers.append(hiredis.Reader())
            transport.protocol.makeConnection(transport)
        return bool(waiting)

    def _answer(self, number: int, transport: _Transport) -> bool:
        data = transport.value()
        transport.clear()
        self._readers[number].feed(data)
        while isinstance(words := self._readers[number].gets(), list):
            reply: Any = number
            if words[:2] != [b"CLIENT", b"ID"]:
                self.requests.append((number, words))
                reply = self.answer(words)
            if reply is not SILENCE and not transport.disconnected:
                transport.protocol.dataReceived(_encoded(reply))
        return bool(data)


def _encoded(value: Any) -> bytes:
    if value is None:
        return b"$-1\r\n"
    if isinstance(value, Refusal):
        return b"-%s\r\n" % str(value).encode()
    if isinstance(value, int):
        return b":%d\r\n" % value
    if isinstance(value, list):
        return b"*%d\r\n" % len(value) + b"".join(map(_encoded, value))
    return b"$%d\r\n%s\r\n" % (len(value), value)
