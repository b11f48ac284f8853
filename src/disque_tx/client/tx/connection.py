"""One connection to one node, on which many calls may be under way.

Replies come in the order of the requests. A connection sends AUTH and HELLO before anything else;
until both are answered, calls wait in ``_early``, and if the connection fails they are known not to
have reached the node.

The timeout is an idle timeout: it runs from one reply to the next one that is expected.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any, Protocol

import txredisapi
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.protocol import Factory
from twisted.python.failure import Failure

from disque_tx.client.addresses import Address
from disque_tx.client.errors import (
    AuthenticationRefused,
    BrokenReply,
    ClientError,
    ConnectionLost,
    printable,
    refusal,
)
from disque_tx.client.options import ConnectionOptions
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.encoding import Request
from disque_tx.client.requests.replies import MalformedReply
from disque_tx.client.tx.calls import WAITING, Call
from disque_tx.client.tx.endpoints import endpoint
from disque_tx.client.tx.idle import IdleTimeout
from disque_tx.client.tx.protocol import new_protocol, pack
from disque_tx.client.values import Hello


class Owner(Protocol):
    """Receives the events of a connection and of its calls."""

    def opened(self, connection: Connection, said: Hello) -> None:
        """The node has answered HELLO. Waiting calls are sent when this returns."""

    def unopened(self, connection: Connection, error: ClientError, calls: list[Call[Any]]) -> None:
        """The connection could not be opened; the calls have not been sent."""

    def lost(self, connection: Connection, error: ConnectionLost, calls: list[Call[Any]]) -> None:
        """The open connection has ended. The node may have executed the calls, if there are any."""

    def refused(self, connection: Connection, call: Call[Any], error: ClientError) -> None:
        """The reply to a call was an error, or malformed."""

    def closed(self, connection: Connection) -> None:
        """The connection has neither a socket nor a timer on the reactor any more."""

    def free(self, connection: Connection) -> None:
        """All calls are answered, of a connection that waits for jobs or is retired."""


class Connection:
    """See above. ``pace``: the kind of calls it is for. ``retired``: it gets no more calls."""

    def __init__(
        self, address: Address, options: ConnectionOptions, reactor: Any, owner: Owner, pace: str
    ) -> None:
        self.address = address
        self.pace = pace
        self.retired = False
        self._options = options
        self._reactor = reactor
        self._owner = owner
        self._protocol: Any = None
        self._connecting: Deferred[Any] | None = None
        self._greeting: deque[Request[Any]] = deque()
        self._early: dict[Call[Any], None] = {}
        self._pending: deque[Call[Any]] = deque()
        self._ready = self._ended = self._hanging_up = False
        self._idle_timeout = IdleTimeout(
            reactor, options.timeout_s, self._allowed_s, self._idle_too_long
        )
        self._failing: Any = None
        self._closed: list[Deferred[None]] = []

    def __repr__(self) -> str:
        return f"<Connection to {self.address}, {self.pace}>"

    # -- calls -------------------------------------------------------------------------------

    @property
    def load(self) -> int:
        """How many calls are waiting or unanswered."""
        return len(self._pending) + len(self._early)

    def send(self, call: Call[Any]) -> None:
        """Send a call, as soon as possible."""
        call.carrier = self
        if not self._ready:
            self._early[call] = None
            return
        if not self._pending:
            self._idle_timeout.restart()
        self._pending.append(call)
        self._protocol.send(pack(call.request.words))
        self._idle_timeout.start()

    def withdraw(self) -> list[Call[Any]]:
        """Remove and return the calls that have not been sent."""
        calls = list(self._early)
        self._early.clear()
        return calls

    def abandon(self, call: Call[Any]) -> None:
        """The program has cancelled the call.

        A connection that waits for jobs is ended by closing its writing half. Two things may
        happen then. The node reads that first: it unblocks the client and closes, and no job was
        delivered. Or a job was delivered before: its reply is still read, because the reading half
        is open, and the job is given back. Any other connection stays open, and the reply is
        dropped when it arrives.
        """
        if call in self._early:
            del self._early[call]
        elif self.pace == WAITING:
            self._hanging_up = True
            self._idle_timeout.restart()
            self._protocol.transport.loseWriteConnection()

    @property
    def usable(self) -> bool:
        """Whether it takes another call."""
        return not (self._ended or self._hanging_up or self.retired)

    # -- opening -----------------------------------------------------------------------------

    def open(self) -> None:
        """Connect, then send AUTH and HELLO. Nothing is reported before this returns."""
        self._protocol = new_protocol(self._reactor, self)
        factory = Factory.forProtocol(lambda: self._protocol)
        factory.noisy = False
        self._connecting = maybeDeferred(self._reach, factory)
        self._connecting.addErrback(self._unreachable)

    def _reach(self, factory: Factory) -> Any:
        return endpoint(self._reactor, self.address, self._options).connect(factory)

    def _unreachable(self, failure: Failure) -> None:
        # This may happen before the first call has been sent on this connection.
        if not self._ended:
            self._failing = self._reactor.callLater(0, self._end_with, failure.value)

    def connected(self) -> None:
        """Called by the protocol: the socket is connected."""
        if self._ended:
            self._protocol.transport.abortConnection()
            return
        self._tune(self._protocol.transport)
        if self._options.password is not None:
            self._greeting.append(requests.auth(self._options.password))
        if self._options.name is not None:
            self._greeting.append(requests.set_name(self._options.name))
        self._greeting.append(requests.hello())
        for request in self._greeting:
            self._protocol.send(pack(request.words))
        self._idle_timeout.restart()
        self._idle_timeout.start()

    def _tune(self, transport: Any) -> None:
        if self.address.path is None:
            transport.setTcpNoDelay(True)
            transport.setTcpKeepAlive(True)

    def _greeted(self, reply: Any) -> None:
        """The answer to AUTH or HELLO."""
        request = self._greeting.popleft()
        try:
            value = self._value(request, reply)
        except ClientError as error:
            if request.name == "CLIENT":
                return  # A node where CLIENT is renamed does without the name.
            known = request.name == "HELLO" or isinstance(error, AuthenticationRefused)
            self._end(error if known else self._lost_by(str(error), sent=False))
            return
        if not self._greeting:
            self._owner.opened(self, value)
            self._ready = True
            for call in self.withdraw():
                self.send(call)
            self._release()

    # -- replies -----------------------------------------------------------------------------

    def received(self, reply: Any) -> None:
        """Called by the protocol: a reply has arrived."""
        if self._ended:
            return
        if not self._ready and self._greeting:
            self._greeted(reply)
            return
        if not self._pending:
            self.broken("a reply that nobody asked for")
            return
        call = self._pending.popleft()
        self._idle_timeout.restart()
        try:
            value = self._value(call.request, reply)
        except BrokenReply as error:
            self._owner.refused(self, call, error)
            self._end(self._lost_by("the reply before was malformed", sent=True))
        except ClientError as error:
            self._release()
            self._owner.refused(self, call, error)
        else:
            self._release()
            call.answer(value, self.address)

    def _value(self, request: Request[Any], reply: Any) -> Any:
        """:raises Refused, BrokenReply: when the reply is an error, or malformed."""
        if not isinstance(reply, Exception):
            try:
                return request.parse(reply)
            except MalformedReply as error:
                raise BrokenReply(request.name, str(self.address), printable(str(error))) from error
        if isinstance(reply, txredisapi.ResponseError):
            raise refusal(request.name, str(self.address), str(reply))
        raise BrokenReply(request.name, str(self.address), printable(str(reply)))

    def _release(self) -> None:
        if self._pending or self._hanging_up:
            return
        if self.retired or self.pace == WAITING:
            self._owner.free(self)

    def broken(self, what: str) -> None:
        """Called by the protocol: the bytes are not a reply."""
        if self._ended:
            return
        name = self._greeting[0].name if self._greeting else ""
        if self._pending:
            call = self._pending.popleft()
            name = call.request.name
            self._owner.refused(self, call, BrokenReply(name, str(self.address), printable(what)))
        if self._ready:
            self._end(self._lost_by(printable(what), sent=True))
        else:
            self._end(BrokenReply(name, str(self.address), printable(what)))

    # -- the end -----------------------------------------------------------------------------

    def close(self, reason: str) -> Deferred[None]:
        """Close the connection; unanswered calls are lost. Fires when it is closed."""
        done: Deferred[None] = Deferred()
        self._closed.append(done)
        self._end(self._lost_by(reason, sent=self._ready))
        return done

    def disconnected(self, reason: BaseException) -> None:
        """Called by the protocol: the socket is closed."""
        self._protocol.transport = None
        self._end_with(reason)
        self._finished()

    def _end_with(self, reason: BaseException | None) -> None:
        said = printable(_text(reason)).rstrip(".") or type(reason).__name__
        self._end(self._lost_by(said, sent=self._ready))

    def _end(self, error: ClientError) -> None:
        """End the connection, for whatever reason; the calls are returned to the owner once."""
        if self._ended:
            return
        self._ended = True
        self._idle_timeout.stop()
        if self._failing is not None and self._failing.active():
            self._failing.cancel()
        if self._protocol.transport is not None:
            self._protocol.transport.abortConnection()
        elif self._connecting is not None:
            self._connecting.cancel()
        if isinstance(error, ConnectionLost) and self._ready:
            self._owner.lost(self, error, self._taken_back())
        else:
            self._owner.unopened(self, error, self._taken_back())
        if self._protocol.transport is None:
            self._finished()

    def _taken_back(self) -> list[Call[Any]]:
        """Remove and return the calls that are not answered, without cancelled ones."""
        calls = [call for call in (*self._pending, *self._early) if not call.cancelled]
        self._pending.clear()
        self._early.clear()
        for call in calls:
            call.carrier = None
        return calls

    def _finished(self) -> None:
        self._owner.closed(self)
        waiting, self._closed = self._closed, []
        for done in waiting:
            done.callback(None)

    def _lost_by(self, reason: str, sent: bool) -> ConnectionLost:
        return ConnectionLost(str(self.address), reason, sent)

    # -- time --------------------------------------------------------------------------------

    def _allowed_s(self) -> float | None:
        """How long the next reply may take, ``None`` if none is expected."""
        if not self._ready or self._hanging_up:
            return self._options.timeout_s
        if not self._pending:
            return None
        wait_s = self._pending[0].request.wait_s
        return math.inf if wait_s is None else self._options.timeout_s + wait_s

    def _idle_too_long(self, allowed_s: float) -> None:
        self._end(self._lost_by(f"no reply in {allowed_s:.1f} s", sent=self._ready))


def _text(reason: BaseException | None) -> str:
    """What happened, for people; for TLS, the last error that the library reports."""
    errors = reason.args[0] if reason is not None and reason.args else None
    if type(reason).__name__ == "Error" and isinstance(errors, list) and errors:
        return f"TLS: {errors[-1][-1]}"
    return str(reason)
