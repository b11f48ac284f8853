"""A request on its way: from the program that waits for it, over one or several nodes, and back."""

from __future__ import annotations

from typing import Any, Final, Generic, Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from disque_tx.client.addresses import Address
from disque_tx.client.nodes import Search
from disque_tx.client.requests import Request

_T = TypeVar("_T")

#: How a request travels: with others on the connection for answers at once; with a few others that
#: the node may keep waiting for copies; or alone, because it waits for jobs.
QUICK: Final = "quick"
COPYING: Final = "copying"
WAITING: Final = "waiting"


class Dispatcher(Protocol):
    """Where calls come from."""

    def cancelled(self, call: Call[Any]) -> None:
        """The program does not want it any more."""

    def unwanted(self, call: Call[Any], value: Any, address: Address) -> None:
        """The answer to a cancelled call has come."""


class Carrier(Protocol):
    """A connection that has the call."""

    def abandon(self, call: Call[Any]) -> None:
        """The program does not want it any more."""


class Call(Generic[_T]):
    """A request and the Deferred that waits for it.

    ``at``: the node it should go to, if not any. ``strict``: that one or none. ``located``: the
    Deferred fires with the address of the node that answered, and the value. ``search``: ``None``
    until the first failure. ``moved``: a node has sent it on to a better one. ``carrier``: the
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
        dispatcher: Dispatcher,
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
        """Done, by the node at this address."""
        if self.cancelled:
            self._dispatcher.unwanted(self, value, address)
        elif self.located:
            self.deferred.callback((address, value))
        else:
            self.deferred.callback(value)

    def fail(self, error: Exception) -> None:
        """Not done; this is what the program is told."""
        if not self.cancelled:
            self.deferred.errback(Failure(error))


def pace(request: Request[Any]) -> str:
    """How it travels."""
    if request.wait_s == 0.0:
        return QUICK
    return WAITING if request.words[0] == "GETJOB" else COPYING
