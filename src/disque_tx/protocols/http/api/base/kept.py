"""Answers that are kept for a moment: however many pages show the same, the nodes are asked once.

What was found out while the node had other connections is not shown any more: it may lack a node
that is back, or count one that is gone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

import attrs
from twisted.internet.defer import Deferred

from disque_tx.protocols.http.server.exchange import Exchange

_T = TypeVar("_T")

#: Answers that are kept, unless something else is said.
_KEPT_MAX: Final = 50


@attrs.frozen
class _Answer(Generic[_T]):
    """``at_s``: when it was asked for. ``connected``: the connections of the node then."""

    value: _T
    at_s: float
    connected: frozenset[str]


class KeptAnswers(Generic[_T]):
    """The answers of the last ``kept_s`` seconds, for readers with the same rights. Requests that
    come while an answer is made wait for that one."""

    def __init__(self, kept_s: float, kept_max: int = _KEPT_MAX) -> None:
        self._kept_s = kept_s
        self._kept_max = kept_max
        self._kept: OrderedDict[Hashable, _Answer[_T]] = OrderedDict()
        self._waiting: dict[Hashable, list[Deferred[None]]] = {}

    async def get(self, exchange: Exchange, key: Hashable, make: Callable[[], Awaitable[_T]]) -> _T:
        """The answer of this key, made by ``make`` if none is kept."""
        host = exchange.host
        while True:
            kept = self._kept.get(key)
            if kept is not None and self._is_good(kept, exchange):
                return kept.value
            waiting = self._waiting.get(key)
            if waiting is None:
                break
            # Whoever makes the answer may fail, or its client go away: then the next one does.
            waiter: Deferred[None] = Deferred(waiting.remove)
            waiting.append(waiter)
            await waiter
        self._waiting[key] = []
        at_s, connected = host.reactor.seconds(), host.view.connected()
        try:
            value = await make()
            self._kept[key] = _Answer(value, at_s, connected)
            self._kept.move_to_end(key)
            if len(self._kept) > self._kept_max:
                self._kept.popitem(last=False)
            return value
        finally:
            waiting = self._waiting.pop(key)
            while waiting:
                waiting.pop(0).callback(None)

    def _is_good(self, kept: _Answer[_T], exchange: Exchange) -> bool:
        host = exchange.host
        recent = host.reactor.seconds() - kept.at_s < self._kept_s
        return recent and kept.connected == host.view.connected()
