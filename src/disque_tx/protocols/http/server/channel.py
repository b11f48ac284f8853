"""One HTTP connection: limits of size and time around Twisted's parser, admission to the node.

What a client sends is parsed piece by piece, at most one request in a turn of the reactor, and
only while it takes its answers: a client that sends requests ahead delays itself only.
"""

from __future__ import annotations

from typing import Any, Final

from twisted.internet.interfaces import IDelayedCall
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel

from disque_tx.errors import CommandError
from disque_tx.plugins import IConnection, IHost
from disque_tx.protocols.http.server.problems import CONTENT_TYPE, Problem, problem_of
from disque_tx.protocols.http.server.request import Request
from disque_tx.protocols.http.server.routes import Routes
from disque_tx.protocols.http.server.sessions import Sessions
from disque_tx.protocols.http.server.slices import Slices

#: Seconds for the head of a request, from its first byte, and for its body.
HEAD_S: Final = 10
BODY_S: Final = 60
#: For how long a connection that is refused is still read, so that the client can read why.
LINGER_S: Final = 1
#: For how long the last answer on a connection may wait to be taken.
UNREAD_S: Final = 60
#: Bytes that are parsed in one turn, of heads and chunks, and of bodies whose length is known.
PIECE_BYTES: Final = 8 * 1024
BODY_PIECE_BYTES: Final = 256 * 1024
#: Bytes that may wait to be parsed before nothing more is received.
INPUT_MAX: Final = 64 * 1024
#: Digits of a length; with more of them it is too large in any case.
_LENGTH_DIGITS_MAX: Final = 18


class Channel(HTTPChannel):
    """One connection. ``connection``: its row in the node's table of clients."""

    maxHeaders = 100
    requestFactory: Any = Request
    transport: Any

    def __init__(self, host: IHost, routes: Routes, sessions: Sessions, slices: Slices) -> None:
        super().__init__()
        self.host = host
        self.routes = routes
        self.sessions = sessions
        self.slices = slices
        self.connection: IConnection | None = None
        self._deadline: IDelayedCall | None = None
        self._in_request = False
        self._ending = False
        self._input = bytearray()
        self._next_piece: IDelayedCall | None = None

    # -- start and end -----------------------------------------------------------------------

    def connectionMade(self) -> None:
        """Register the client, or refuse it."""
        super().connectionMade()
        try:
            self.connection = self.host.admit(self.transport, "http")
        except CommandError as error:
            problem = problem_of(error)
            if error.code == "ERR":
                problem = Problem(503, "ERR", problem.detail)
            self.end_with(problem)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Nothing is held for this client any more."""
        self._forget_deadline()
        self._forget_input()
        super().connectionLost(reason)
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.closed()

    # -- input -------------------------------------------------------------------------------

    def dataReceived(self, data: bytes) -> None:
        """Keep what arrived, and parse the first piece, unless the connection is about to end."""
        if self._ending or self.connection is None:
            return
        self.connection.received(len(data))
        self._input += data
        if self._next_piece is None:
            self._parse()
        if len(self._input) > INPUT_MAX:
            self._networkProducer.pauseProducing()

    def _parse(self) -> None:
        """Parse a piece of what has arrived, unless a request or the client is to be waited for."""
        self._next_piece = None
        if not self._may_parse():
            return
        if not self._in_request:
            self._in_request = True
            self._limit_time(HEAD_S)
        is_body = not self.line_mode and self.length is not None
        size = BODY_PIECE_BYTES if is_body else PIECE_BYTES
        piece = bytes(self._input[:size])
        del self._input[:size]
        super().dataReceived(piece)
        if self._may_receive():
            self._networkProducer.resumeProducing()
        self._parse_later()

    def _may_receive(self) -> bool:
        """Whether there is room again for what arrives. While a request is answered, or the client
        takes no answers, whoever ends that lets the connection receive."""
        waits = self._handlingRequest or self._waitingForTransport
        return len(self._input) <= INPUT_MAX and not waits and not self._ending

    def _may_parse(self) -> bool:
        waits = self._handlingRequest or self._waitingForTransport
        return bool(self._input) and not waits and not self._ending

    def _parse_later(self) -> None:
        if self._next_piece is None and self._may_parse():
            self._next_piece = self.host.reactor.callLater(0, self._parse)

    def _forget_input(self) -> None:
        call, self._next_piece = self._next_piece, None
        if call is not None and call.active():
            call.cancel()
        self._input.clear()

    def requestDone(self, request: Any) -> None:
        """A request is answered. The next one, if it is there, has to wait for the next turn."""
        rest = b"".join(self._dataBuffer) + self.clearLineBuffer()
        self._dataBuffer = []
        super().requestDone(request)
        if not self.persistent:
            self._ending = True
            self._limit_time(UNREAD_S)
            return
        self._input[:0] = rest
        self._parse_later()

    def resumeProducing(self) -> None:
        """The client took its answers."""
        super().resumeProducing()
        self._parse_later()

    def lineReceived(self, line: bytes) -> None:
        """A line of the head. Lines that continue the one before are obsolete, and programs read
        them differently (RFC 9112)."""
        if self._ending:
            return
        if line[:1] in (b" ", b"\t"):
            self._respondToBadRequestAndDisconnect()
            return
        super().lineReceived(line)

    def headerReceived(self, line: bytes) -> bool:
        """A header. The value is checked here, before anything reads it: it must be UTF-8, and
        what tells the size of the body must have one meaning only."""
        name, _, value = line.partition(b":")
        if not self._ending and not _is_sound(name.lower(), value.strip(b" \t")):
            self._respondToBadRequestAndDisconnect()
        return not self._ending and bool(super().headerReceived(line))

    def lineLengthExceeded(self, line: bytes) -> None:
        """A line is longer than Twisted's 16 KiB."""
        self._respondToBadRequestAndDisconnect()

    def rawDataReceived(self, data: bytes) -> None:
        """A part of a body."""
        if not self._ending:
            super().rawDataReceived(data)

    def allHeadersReceived(self) -> None:
        """The head is complete."""
        self._limit_time(BODY_S)
        super().allHeadersReceived()

    def allContentReceived(self) -> None:
        """The request is complete."""
        self._in_request = False
        self._forget_deadline()
        if not self._ending:
            super().allContentReceived()

    def checkPersistence(self, request: Any, version: bytes) -> bool:
        """``Connection: close`` is answered, whatever else the header contains."""
        values = request.requestHeaders.getRawHeaders(b"Connection", [])
        tokens = {word.strip().lower() for value in values for word in value.split(b",")}
        if version == b"HTTP/1.1" and b"close" not in tokens:
            return True
        request.responseHeaders.setRawHeaders(b"Connection", [b"close"])
        return False

    def _send100Continue(self) -> None:
        if not self._ending:
            super()._send100Continue()

    # -- refusals ----------------------------------------------------------------------------

    def end_with(self, problem: Problem) -> None:
        """Answer with this problem and end the connection; for requests that are not complete."""
        if self._ending:
            return
        self._ending = True
        self._forget_input()
        body = problem.encoded()
        head = [
            f"HTTP/1.1 {problem.status} {problem.document()['title']}",
            f"Content-Type: {CONTENT_TYPE}",
            f"Content-Length: {len(body)}",
            "Cache-Control: no-store",
            "X-Content-Type-Options: nosniff",
            "Connection: close",
            *(f"{name}: {value}" for name, value in problem.headers.items()),
        ]
        self.transport.write("\r\n".join([*head, "", ""]).encode() + body)
        # Closing while there is unread input would destroy the answer on its way.
        self._limit_time(LINGER_S)

    def _respondToBadRequestAndDisconnect(self) -> None:
        self.end_with(Problem(400, "ERR", "This is not valid HTTP, or the head is too long."))

    def _limit_time(self, seconds: float) -> None:
        self._forget_deadline()
        self._deadline = self.host.reactor.callLater(seconds, self._too_late)

    def _forget_deadline(self) -> None:
        call, self._deadline = self._deadline, None
        if call is not None and call.active():
            call.cancel()

    def _too_late(self) -> None:
        self._deadline = None
        if self._ending:
            self.transport.abortConnection()
        else:
            self.end_with(Problem(408, "TIMEOUT", "The request did not arrive in time."))


def _is_sound(name: bytes, value: bytes) -> bool:
    """Whether a header, with its name in lower case, can be read in one way only."""
    if name == b"content-length":
        return value.isdigit() and len(value) <= _LENGTH_DIGITS_MAX
    if name == b"transfer-encoding":
        return value.lower() == b"chunked"
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
