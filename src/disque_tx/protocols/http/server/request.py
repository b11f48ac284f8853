"""One request: checked as soon as its head is complete, answered when all of it is there."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from io import BytesIO
from typing import Any, Final, Protocol, cast

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel
from twisted.web.http import Request as TwistedRequest

from disque_tx.errors import CommandError
from disque_tx.plugins import IConnection, IHost, Role
from disque_tx.protocols.http.server.checks import (
    HEALTH_PATH,
    check_host,
    check_origin,
    only,
    password_of,
)
from disque_tx.protocols.http.server.exchange import Exchange, Reply
from disque_tx.protocols.http.server.problems import CONTENT_TYPE, Problem, bad_request, problem_of
from disque_tx.protocols.http.server.routes import BODY_BYTES, JOB_BODY_BYTES, Route, Routes
from disque_tx.protocols.http.server.sessions import Sessions, token_of
from disque_tx.protocols.http.server.slices import Slices
from disque_tx.protocols.http.server.streaming import encoded, send

#: Headers of every answer: no page may embed it, run what it contains, or keep it.
SECURITY_HEADERS: Final = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
)


class Requester(Protocol):
    """The connection of a request. ``connection``: its row in the node's table of clients."""

    host: IHost
    routes: Routes
    sessions: Sessions
    slices: Slices
    connection: IConnection | None

    def end_with(self, problem: Problem) -> None:
        """Answer with this problem and end the connection; for requests that are not complete."""


class Request(TwistedRequest):
    """One request of a connection."""

    channel: Any
    content: Any

    def __init__(self, channel: Requester, *args: Any) -> None:
        super().__init__(cast(HTTPChannel, channel), False)
        self._host = channel.host
        self._connection: Any = channel.connection
        self._routes = channel.routes
        self._sessions = channel.sessions
        self._found: tuple[Route, dict[str, bytes], Role] | None = None
        self._problem: Problem | None = None
        self._size = 0
        self._size_max = JOB_BODY_BYTES  # until the route is known
        self._answering: Deferred[Any] | None = None

    # -- input -------------------------------------------------------------------------------

    def gotLength(self, length: int | None) -> None:
        """The head is complete: decide whether the body is wanted."""
        self.content = BytesIO()
        self.method, self.uri = self.channel._command, self.channel._path
        self.clientproto = self.channel._version
        try:
            self._check(length)
        except CommandError as error:
            self._problem = problem_of(error)
        except Problem as problem:
            self._problem = problem
        if length is not None and length > self._size_max:
            self._refuse_size()
        elif self._problem is not None and (length is None or length > BODY_BYTES):
            self.channel.end_with(self._problem)  # a body that is not wanted is not waited for

    def _check(self, length: int | None) -> None:
        headers = self.requestHeaders
        self.path, _, self._query = self.uri.partition(b"?")
        # Load balancers ask by any name. A page whose name resolves to this address learns no more
        # from the health than that there is a node.
        any_name = self.path.startswith(HEALTH_PATH)
        check_host(headers, self._host.settings.http_hosts, any_name)
        method = self.method.decode("ascii", "replace")
        if not self.uri.startswith(b"/"):
            raise bad_request("The target of the request must be a path.")
        route, path = self._routes.find(method, self.path)
        self._size_max = route.body_max
        if not route.public:
            check_origin(headers)
        role = Role.NONE
        if not route.open or route.identifies:
            role = self._role()
        if not route.open:
            if role is Role.NONE:
                raise Problem(401, "NOAUTH", "Send the password in the header Authorization.")
            if role is Role.READER and route.changes:
                raise Problem(403, "NOPERM", "The read-only password does not allow this.")
        if only(headers, "Content-Encoding") not in (None, b"identity"):
            raise Problem(415, "TYPE", "Compressed bodies are not accepted.")
        if route.body is None and (length is None or length > 0) and not route.changes:
            raise bad_request("This request takes no body.")
        self._found = route, path, role

    def _role(self) -> Role:
        """What this client may do, by the header Authorization, or else by its session."""
        password = password_of(self.requestHeaders)
        if password is None and self._sessions.needed():
            token = token_of(self)
            return Role.NONE if token is None else self._sessions.role(token)
        role: Role = self._connection.authenticate(password)
        return role

    def _may_go_on(self) -> bool:
        """Whether the password, or the session, still admits this client."""
        try:
            return self._role() is not Role.NONE
        except CommandError:
            return False

    def _refuse_size(self) -> None:
        detail = f"The body of this request may have {self._size_max} bytes at most."
        self.channel.end_with(Problem(413, "SIZE", detail))

    def handleContentChunk(self, data: bytes) -> None:
        """A part of the body; what is refused is not kept."""
        self._size += len(data)
        if self._size > self._size_max:
            self._refuse_size()
        elif self._problem is None:
            self.content.write(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """The request is complete."""
        if self._problem is not None:
            self._fail(Failure(self._problem))
            return
        assert self._found is not None
        route, parameters, role = self._found
        exchange = Exchange(
            host=self._host,
            connection=self._connection,
            role=role,
            parameters=route.parameters,
            schema=route.body,
            path=parameters,
            query=self._query,
            body=self.content.getvalue(),
            content_type=self._text(b"Content-Type"),
            request=self,
            may_go_on=self._may_go_on,
            slices=self.channel.slices,
            accept=self._text(b"Accept"),
        )
        self._answering = Deferred.fromCoroutine(self._run(route, exchange))
        self._answering.addCallbacks(self._succeed, self._fail, callbackArgs=(route,))
        self._answering.addErrback(self._broken)

    def _text(self, name: bytes) -> str:
        """A header, which may contain any bytes."""
        value: bytes = self.getHeader(name) or b""
        return value.decode("latin-1")

    async def _run(self, route: Route, exchange: Exchange) -> Any:
        exchange.check_query()
        if route.body is None:
            exchange.json()  # which refuses members that would be ignored
        if not route.costly:
            return await self._handle(route, exchange)
        exchange.slices.enter()
        try:
            return await self._handle(route, exchange)
        finally:
            exchange.slices.leave()

    async def _handle(self, route: Route, exchange: Exchange) -> Any:
        value = await maybeDeferred(route.handler, exchange)
        if isinstance(value, Reply) and isinstance(value.body, AsyncGenerator):
            await send(self, exchange, value)
            return None
        return value

    def connectionLost(self, reason: Failure) -> None:
        """The client is gone: nothing is fetched for it any more."""
        answering, self._answering = self._answering, None
        super().connectionLost(reason)
        if answering is not None:
            answering.cancel()

    # -- output ------------------------------------------------------------------------------

    def _succeed(self, value: Any, route: Route) -> None:
        if value is not None:  # otherwise the handler streams its answer
            self.answer(value if isinstance(value, Reply) else Reply(value, route.status))

    def _fail(self, failure: Failure) -> None:
        error = failure.value
        if isinstance(error, CommandError):
            error = problem_of(error)
        if not isinstance(error, Problem) or self.startedWriting:
            self._broken(failure)
            return
        self.answer(Reply(error.encoded(), error.status, CONTENT_TYPE, error.headers))

    def _broken(self, failure: Failure) -> None:
        """A fault of this program; its traceback is for the log only."""
        if self._disconnected or self.finished:
            return
        self._host.log.warning(
            "A fault in this program at an HTTP request. Please report what follows."
        )
        for line in failure.getTraceback().splitlines():
            self._host.log.warning(line)
        if self.startedWriting:
            self.channel.transport.abortConnection()
            return
        problem = Problem(500, "FAULT", "A fault in the node; its log has the details.")
        self.answer(Reply(problem.encoded(), problem.status, CONTENT_TYPE))

    def answer(self, reply: Reply) -> None:
        """Send the whole answer."""
        if self._disconnected or self.finished:
            return
        body = reply.body
        if not isinstance(body, bytes):
            body = encoded(body)
        self.begin(reply)
        if reply.status != 304:
            self.setHeader("Content-Length", str(len(body)))
        self._connection.sent(len(body))
        self.write(body)
        self.finish()

    def begin(self, reply: Reply) -> None:
        """Set status and headers."""
        reason = b"Misdirected Request" if reply.status == 421 else None
        self.setResponseCode(reply.status, reason)
        self.setHeader("Content-Type", reply.content_type)
        for name, value in (*SECURITY_HEADERS, *reply.headers.items()):
            self.setHeader(name, value)
