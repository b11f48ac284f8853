"""One connection to one node, on which many calls may be under way.

Replies come in the order of the requests. A connection says AUTH and HELLO before anything else;
calls that are sent before these are answered wait in ``_early`` and are known not to have reached
the node if it comes to nothing.

The time-out is of silence: the node has so long for the first unanswered request since the reply
before it.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any, Protocol

import txredisapi
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.protocol import Factory
from twisted.python.failure import Failure

from disque_tx.client import requests
from disque_tx.client.addresses import Address
from disque_tx.client.errors import (
    AuthenticationRefused,
    BrokenReply,
    ClientError,
    ConnectionLost,
    refusal,
    shown,
)
from disque_tx.client.options import ConnectionOptions
from disque_tx.client.replies import Misshapen
from disque_tx.client.requests import Request
from disque_tx.client.tx.calls import WAITING, Call
from disque_tx.client.tx.endpoints import endpoint
from disque_tx.client.tx.idle import Silence
from disque_tx.client.tx.protocol import new_protocol, pack
from disque_tx.client.values import Hello


class Owner(Protocol):
    """Who is told what becomes of a connection and of its calls."""

    def opened(self, connection: Connection, said: Hello) -> None:
        """The node has answered HELLO. Early calls leave when this returns."""

    def unopened(self, connection: Connection, error: ClientError, calls: list[Call[Any]]) -> None:
        """It came to nothing; the calls have not been sent."""

    def lost(self, connection: Connection, error: ConnectionLost, calls: list[Call[Any]]) -> None:
        """It has ended; the calls may have been executed. None are left if nobody waited."""

    def refused(self, connection: Connection, call: Call[Any], error: ClientError) -> None:
        """The reply to a call was an error, or none."""

    def closed(self, connection: Connection) -> None:
        """Nothing is left of it on the reactor."""

    def free(self, connection: Connection) -> None:
        """All calls of a connection for waiting, or of a retired one, are answered."""


class Connection:
    """See above. ``pace``: what kind of calls it is for. ``retired``: no more calls are to come."""

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
        self._silence = Silence(reactor, options.timeout_s, self._allowed_s, self._was_silent)
        self._failing: Any = None
        self._closed: list[Deferred[None]] = []

    def __repr__(self) -> str:
        return f"<Connection to {self.address}, {self.pace}>"

    # -- calls -------------------------------------------------------------------------------

    @property
    def load(self) -> int:
        """How many calls it has."""
        return len(self._pending) + len(self._early)

    def send(self, call: Call[Any]) -> None:
        """Send a call, as soon as possible."""
        call.carrier = self
        if not self._ready:
            self._early[call] = None
            return
        if not self._pending:
            self._silence.broken()
        self._pending.append(call)
        self._protocol.send(pack(call.request.words))
        self._silence.watch()

    def withdraw(self) -> list[Call[Any]]:
        """Take back the calls that have not been sent."""
        calls = list(self._early)
        self._early.clear()
        return calls

    def abandon(self, call: Call[Any]) -> None:
        """Its program does not want it any more.

        A connection that waits for jobs is ended by closing its writing half. Two things may
        happen then. The node reads that first: it unblocks the client and closes, and no job was
        delivered. Or a job was delivered before: its reply is still read, because the reading half
        is open, and the job is given back. Any other connection goes on, and the reply is dealt
        with when it comes.
        """
        if call in self._early:
            del self._early[call]
        elif self.pace == WAITING:
            self._hanging_up = True
            self._silence.broken()
            self._protocol.transport.loseWriteConnection()

    @property
    def usable(self) -> bool:
        """Whether it takes another call."""
        return not (self._ended or self._hanging_up or self.retired)

    # -- opening -----------------------------------------------------------------------------

    def open(self) -> None:
        """Connect, and say AUTH and HELLO. Nothing is reported before this returns."""
        self._protocol = new_protocol(self._reactor, self)
        factory = Factory.forProtocol(lambda: self._protocol)
        factory.noisy = False
        self._connecting = maybeDeferred(self._reach, factory)
        self._connecting.addErrback(self._unreachable)

    def _reach(self, factory: Factory) -> Any:
        return endpoint(self._reactor, self.address, self._options).connect(factory)

    def _unreachable(self, failure: Failure) -> None:
        # That may be known before the first call is here to be told.
        if not self._ended:
            self._failing = self._reactor.callLater(0, self._end_with, failure.value)

    def connected(self) -> None:
        """The protocol's."""
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
        self._silence.broken()
        self._silence.watch()

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
        """The protocol's."""
        if self._ended:
            return
        if not self._ready and self._greeting:
            self._greeted(reply)
            return
        if not self._pending:
            self.broken("a reply that nobody asked for")
            return
        call = self._pending.popleft()
        self._silence.broken()
        try:
            value = self._value(call.request, reply)
        except BrokenReply as error:
            self._owner.refused(self, call, error)
            self._end(self._lost_by("the reply before was not understood", sent=True))
        except ClientError as error:
            self._release()
            self._owner.refused(self, call, error)
        else:
            self._release()
            call.answer(value, self.address)

    def _value(self, request: Request[Any], reply: Any) -> Any:
        """:raises Refused, BrokenReply: when the reply is an error, or none."""
        if not isinstance(reply, Exception):
            try:
                return request.shape(reply)
            except Misshapen as error:
                raise BrokenReply(request.name, str(self.address), shown(str(error))) from error
        if isinstance(reply, txredisapi.ResponseError):
            raise refusal(request.name, str(self.address), str(reply))
        raise BrokenReply(request.name, str(self.address), shown(str(reply)))

    def _release(self) -> None:
        if self._pending or self._hanging_up:
            return
        if self.retired or self.pace == WAITING:
            self._owner.free(self)

    def broken(self, what: str) -> None:
        """The protocol's."""
        if self._ended:
            return
        name = self._greeting[0].name if self._greeting else ""
        if self._pending:
            call = self._pending.popleft()
            name = call.request.name
            self._owner.refused(self, call, BrokenReply(name, str(self.address), shown(what)))
        if self._ready:
            self._end(self._lost_by(shown(what), sent=True))
        else:
            self._end(BrokenReply(name, str(self.address), shown(what)))

    # -- the end -----------------------------------------------------------------------------

    def close(self, reason: str) -> Deferred[None]:
        """Hang up; calls under way are lost. Fires when the connection is closed."""
        done: Deferred[None] = Deferred()
        self._closed.append(done)
        self._end(self._lost_by(reason, sent=self._ready))
        return done

    def disconnected(self, reason: BaseException) -> None:
        """The protocol's."""
        self._protocol.transport = None
        self._end_with(reason)
        self._finished()

    def _end_with(self, reason: BaseException | None) -> None:
        said = shown(_text(reason)).rstrip(".") or type(reason).__name__
        self._end(self._lost_by(said, sent=self._ready))

    def _end(self, error: ClientError) -> None:
        """Over, whatever the reason; the calls are handed back once."""
        if self._ended:
            return
        self._ended = True
        self._silence.stop()
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
        """What is under way, without what nobody waits for."""
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
        """How long the node may be silent now."""
        if not self._ready or self._hanging_up:
            return self._options.timeout_s
        if not self._pending:
            return None
        wait_s = self._pending[0].request.wait_s
        return math.inf if wait_s is None else self._options.timeout_s + wait_s

    def _was_silent(self, allowed_s: float) -> None:
        self._end(self._lost_by(f"no reply in {allowed_s:.1f} s", sent=self._ready))


def _text(reason: BaseException | None) -> str:
    """What happened, for people; of TLS, what the library says last."""
    errors = reason.args[0] if reason is not None and reason.args else None
    if type(reason).__name__ == "Error" and isinstance(errors, list) and errors:
        return f"TLS: {errors[-1][-1]}"
    return str(reason)
