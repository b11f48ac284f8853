"""A request in progress: from the program that waits for it to one or several nodes, and back."""

from __future__ import annotations

from typing import Any, Final, Generic, Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from disque_tx.client.addresses import Address
from disque_tx.client.nodes import Search
from disque_tx.client.requests.encoding import Request
from disque_tx.client.steps.tracing import RequestSpan

_T = TypeVar("_T")

#: Which kind of connection a request uses: one shared by all requests that are answered at once;
#: one shared by a few ADDJOBs, which may wait for copies; or one of its own, to wait for jobs.
QUICK: Final = "quick"
COPYING: Final = "copying"
WAITING: Final = "waiting"


class CallDispatcher(Protocol):
    """Sends calls to nodes."""

    def cancelled(self, call: Call[Any]) -> None:
        """The program has cancelled the call."""

    def unwanted(self, call: Call[Any], value: Any, address: Address) -> None:
        """The answer to a cancelled call has arrived."""


class Carrier(Protocol):
    """The connection on which a call is sent."""

    def abandon(self, call: Call[Any]) -> None:
        """The program has cancelled the call."""


class Call(Generic[_T]):
    """A request and the Deferred that waits for it.

    ``at``: the preferred node, ``None`` for any. ``strict``: fail rather than use another node.
    ``located``: the Deferred fires with the address of the node that answered, and the value.
    ``pace``: the kind of connection it needs. ``search``: ``None`` until the first failure.
    ``moved``: the first node was not usable, and the call was sent to another one. ``carrier``: the
    connection that has it, ``None`` while it waits for one. ``cancelled``: the Deferred has fired.
    """

    __slots__ = (
        "_dispatcher",
        "at",
        "cancelled",
        "carrier",
        "deferred",
        "located",
        "moved",
        "pace",
        "request",
        "search",
        "strict",
    )

    def __init__(
        self,
        dispatcher: CallDispatcher,
        request: Request[_T],
        at: Address | None = None,
        strict: bool = False,
        located: bool = False,
    ) -> None:
        self._dispatcher = dispatcher
        self.request = request
        self.pace = pace(request)
        self.at = at
        self.strict = strict
        self.located = located
        self.search: Search | None = None
        self.moved = False
        self.carrier: Carrier | None = None
        self.cancelled = False
        self.deferred: Deferred[Any] = Deferred(self._cancel)

    def _cancel(self, _: Deferred[Any]) -> None:
        self.cancelled = True
        self._dispatcher.cancelled(self)

    def answer(self, value: _T, address: Address) -> None:
        """Fire the Deferred with the answer of the node at this address."""
        if self.cancelled:
            self._dispatcher.unwanted(self, value, address)
        elif self.located:
            self.deferred.callback((address, value))
        else:
            self.deferred.callback(value)

    def fail(self, error: Exception) -> None:
        """Fire the Deferred with this error."""
        if not self.cancelled:
            self.deferred.errback(Failure(error))


def pace(request: Request[Any]) -> str:
    """The kind of connection that a request needs."""
    if request.wait_s == 0.0:
        return QUICK
    return WAITING if request.words[0] == "GETJOB" else COPYING


def value_of(found: tuple[Address, _T]) -> _T:
    """The value without the address of the node that answered."""
    return found[1]


def spanned(found: Deferred[Any], span: RequestSpan) -> Deferred[Any]:
    """A Deferred of the same result, of an address and a value; the span ends with it."""

    def answered(located: tuple[Address, Any]) -> tuple[Address, Any]:
        span.answered(*located)
        return located

    def failed(failure: Failure) -> Failure:
        if failure.value is not None:
            span.failed(failure.value)
        return failure

    return found.addCallbacks(answered, failed)
