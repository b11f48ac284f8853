"""A whole node with an HTTP listener, on connections in memory."""

from __future__ import annotations

import json
from typing import Any

import attrs
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from disque_tx.protocols.http.server.channel import Channel
from disque_tx.protocols.http.site import standard_factory
from tests.services.nodebench import drive
from tests.services.rootbench import RootCase

#: Steps of the reactor's clock. The clocks of the node are real ones: this is many seconds of them.
_STEPS_MAX = 1_000_000


@attrs.frozen
class Answer:
    """A response. ``headers``: by name in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as a value."""
        return json.loads(self.body)


def whole(data: bytes) -> bool:
    """Whether a response is complete."""
    head, end, rest = data.partition(b"\r\n\r\n")
    if b"\r\nTransfer-Encoding: chunked" in head:
        return rest.endswith(b"0\r\n\r\n")
    return end != b"" and (
        b"\r\nContent-Length:" not in head or len(rest) >= len(parsed(data)[0].body)
    )


def dechunked(data: bytes) -> tuple[bytes, bytes]:
    """A body in chunks, as far as it has arrived, and what follows it."""
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        body, data = body + data[:length], data[length + 2 :]
        if not length:
            break
    return body, data


def parsed(data: bytes) -> tuple[Answer, bytes]:
    """The first response, and what follows it."""
    head, _, rest = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        body, rest = dechunked(rest)
        return Answer(int(first.split(" ")[1]), headers, body), rest
    size = int(headers.get("content-length", "0"))
    return Answer(int(first.split(" ")[1]), headers, rest[:size]), rest[size:]


class HttpCase(RootCase):
    """Tests on the HTTP listener of a node that is started."""

    def setUp(self) -> None:
        super().setUp()
        self.root = self.started()
        self.host = self.root.plugin_host
        self.factory = standard_factory(self.host)

    def connect(self, host: str = "127.0.0.1") -> tuple[Channel, StringTransport]:
        """A connection of a client at this address."""
        channel = self.factory.buildProtocol(None)
        transport = StringTransport(peerAddress=IPv4Address("TCP", host, 5001))
        channel.makeConnection(transport)
        self.addCleanup(self.hang_up, channel)
        return channel, transport

    def let_answer(self, transport: StringTransport, complete: bool = False) -> None:
        """Let time pass until something was sent, or a complete answer; nothing is sent if a
        request hangs."""
        for _ in range(_STEPS_MAX):
            sent = transport.value()
            if sent and (not complete or whole(sent)):
                return
            self.reactor.advance(0.01)
        self.fail("There is no answer.")

    def hang_up(self, channel: Channel) -> None:
        """The client goes away."""
        if channel.connection is not None:
            channel.connectionLost(Failure(ConnectionDone()))
        channel._forget_deadline()

    def exchange(self, data: bytes) -> Answer:
        """The response to these bytes on a connection of their own."""
        channel, transport = self.connect()
        channel.dataReceived(data)
        drive(self.reactor)
        answer, _rest = parsed(transport.value())
        self.hang_up(channel)
        return answer

    def http(
        self,
        method: str,
        path: str,
        body: Any = None,
        **headers: str,
    ) -> Answer:
        """The response to a request; a ``body`` that is not bytes is sent as JSON."""
        return self.exchange(request(method, path, body, **headers))

    def call(self, *words: bytes) -> Any:
        """The result of a command of the node."""
        return self.successResultOf(self.root.node_service.call(*words))

    def problem(self, status: int, code: str, answer: Answer) -> None:
        """Check that the answer is a problem document."""
        self.assertEqual(status, answer.status, answer.body)
        self.assertEqual("application/problem+json", answer.headers["content-type"])
        document = answer.json
        self.assertEqual((status, code), (document["status"], document["code"]))
        self.assertEqual({"type", "title", "status", "code", "detail"}, set(document))


def request(method: str, path: str, body: Any = None, **headers: str) -> bytes:
    """The bytes of a request."""
    fields = {"Host": "127.0.0.1:7780"}
    if body is not None:
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        fields |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")
