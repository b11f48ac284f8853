"""One HTTP connection: limits of size and time around Twisted's parser, admission to the node."""

from __future__ import annotations

from typing import Any, Final

from twisted.internet.interfaces import IDelayedCall
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel

from disque_tx.errors import CommandError
from disque_tx.protocols.http.problems import CONTENT_TYPE, Problem, problem_of
from disque_tx.protocols.http.request import Request
from disque_tx.protocols.http.routes import Routes
from disque_tx.protocols.http.sessions import Sessions
from disque_tx.services.interfaces import IConnection, IHost

#: Seconds for the head of a request, from its first byte, and for its body.
HEAD_S: Final = 10
BODY_S: Final = 60
#: For how long a connection that is refused is still read, so that the client can read why.
LINGER_S: Final = 1
#: Bytes of answers that may wait for a client that goes on sending requests.
UNREAD_MAX: Final = 4 * 1024 * 1024


class Channel(HTTPChannel):
    """One connection. ``connection``: its row in the node's table of clients."""

    maxHeaders = 100
    requestFactory: Any = Request
    transport: Any

    def __init__(self, host: IHost, routes: Routes, sessions: Sessions) -> None:
        super().__init__()
        self.host = host
        self.routes = routes
        self.sessions = sessions
        self.connection: IConnection | None = None
        self._deadline: IDelayedCall | None = None
        self._in_request = False
        self._ending = False

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
        super().connectionLost(reason)
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.closed()

    # -- input -------------------------------------------------------------------------------

    def dataReceived(self, data: bytes) -> None:
        """Parse what arrived, unless the connection is about to end."""
        if self._ending or self.connection is None:
            return
        self.connection.received(len(data))
        if not self._in_request and not self._handlingRequest:
            self._in_request = True
            self._limit_time(HEAD_S)
        super().dataReceived(data)

    def lineReceived(self, line: bytes) -> None:
        """A line of the head; pipelined requests come here without passing ``dataReceived``."""
        if self._ending:
            return
        if not self._in_request:
            self._in_request = True
            self._limit_time(HEAD_S)
        super().lineReceived(line)

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
        if self._ending:
            return
        unsent = getattr(self.transport, "unsent_bytes", None)
        if unsent is not None and unsent() > UNREAD_MAX:
            self.transport.abortConnection()
            return
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
