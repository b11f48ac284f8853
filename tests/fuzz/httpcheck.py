"""The HTTP listener without a node, for any bytes that a client may send."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IAddress
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from disque_tx.config.settings import Settings
from disque_tx.plugins.interfaces import IHost
from disque_tx.plugins.values import Role
from disque_tx.protocols.http.server.exchange import Exchange, Parameter
from disque_tx.protocols.http.server.routes import Route, Routes
from disque_tx.protocols.http.server.sessions import Sessions
from disque_tx.protocols.http.site import HttpFactory


class _Client:
    """A client that is admitted, with the password of the node."""

    network = "loopback"

    def authenticate(self, password: bytes | None) -> Role:
        """Every password is right."""
        return Role.FULL

    def received(self, size: int) -> None:
        """Not counted."""

    def sent(self, size: int) -> None:
        """Not counted."""

    def closed(self) -> None:
        """Nothing is held."""


class _Host:
    """What a connection needs of a node."""

    def __init__(self) -> None:
        self.settings = Settings(dir="/")
        self.reactor = Clock()
        self.faults: list[str] = []
        self.log = self

    def warning(self, text: str) -> None:
        """A line of the log: only faults are logged."""
        self.faults.append(text)

    def admit(self, transport: Any, protocol: str) -> _Client:
        """Everybody may connect."""
        return _Client()

    def authenticate(self, password: bytes | None, peer: IAddress) -> Role:
        """Every password is right."""
        return Role.FULL


def _echo(exchange: Exchange) -> dict[str, Any]:
    words = [exchange.word(parameter.name) for parameter in exchange.parameters]
    path = {name: value.decode("latin-1") for name, value in exchange.path.items()}
    return {"path": path, "words": words, "json": exchange.json() if exchange.schema else None}


def _routes() -> Routes:
    routes = Routes()
    body = {"type": "object", "properties": {"body": {"type": "string"}}}
    parameters = (Parameter("queue", "A word"), Parameter("count", "A number", "integer", 1, 1, 9))
    routes.add(
        Route("GET", "/healthz/live", _echo, "Nothing", open=True),
        Route("GET", "/x", _echo, "Words", parameters),
        Route("POST", "/api/v1/queues/{queue}/jobs", _echo, "A body", body=body),
    )
    return routes


def answers(pieces: Iterable[bytes]) -> bytes:
    """What a connection answers to bytes that arrive in these pieces. Raises ``AssertionError`` at
    a fault of the program."""
    host = _Host()
    node = cast(IHost, host)
    channel = HttpFactory(node, _routes(), Sessions(node)).buildProtocol(None)
    transport = StringTransport(peerAddress=IPv4Address("TCP", "127.0.0.1", 5001))
    channel.makeConnection(transport)
    for piece in pieces:
        if transport.disconnected or transport.disconnecting:
            break
        channel.dataReceived(piece)
        host.reactor.advance(0)
    sent = bytes(transport.value())
    channel.connectionLost(Failure(ConnectionDone()))
    assert not host.faults, host.faults
    assert not host.reactor.getDelayedCalls()
    return sent
