"""Calls that wait because no node can be used at present, or none is known yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.threads import deferToThreadPool

from disque_tx.client.nodes import Nodes
from disque_tx.client.resolving import resolve
from disque_tx.client.tx.calls import Call


class Backoff:
    """Each call waits for its own time, and then something is done with it."""

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._timers: dict[Call[Any], Any] = {}

    def wait(self, call: Call[Any], wait_s: float, work: Callable[..., object], what: Any) -> None:
        """After this time, do the work with the call and with ``what``."""
        self._timers[call] = self._reactor.callLater(wait_s, self._over, call, work, what)

    def _over(self, call: Call[Any], work: Callable[..., object], what: Any) -> None:
        del self._timers[call]
        work(call, what)

    def remove(self, call: Call[Any]) -> None:
        """The call does not wait any more."""
        timer = self._timers.pop(call, None)
        if timer is not None:
            timer.cancel()

    def drain(self) -> list[Call[Any]]:
        """All calls, which wait no more."""
        calls = list(self._timers)
        for call in calls:
            self.remove(call)
        return calls


def look_up(reactor: Any, nodes: Nodes, now_s: float) -> None:
    """Begin to look up the names that stand for nodes, in a thread, if it is time."""
    due = nodes.due(now_s)
    if due:
        found = deferToThreadPool(reactor, reactor.getThreadPool(), resolve, due)
        found.addCallback(lambda result: nodes.resolved(*result))
