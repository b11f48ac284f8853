"""The bound on connections that wait for jobs, and those who wait for one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from disque_tx.client.tx.calls import Call
from disque_tx.client.tx.connection import Connection


class Line:
    """At most ``places`` calls wait at nodes at the same time; others stand in line, in order.

    A call that has stood in line for as long as it may wait for jobs is ``over``.
    """

    def __init__(self, places: int, reactor: Any, over: Callable[[Call[Any]], None]) -> None:
        self._places = places
        self._reactor = reactor
        self._over = over
        self._busy: set[Connection] = set()
        self._line: dict[Call[Any], Any] = {}

    @property
    def has_room(self) -> bool:
        """Whether another connection may wait."""
        return len(self._busy) < self._places

    def occupy(self, connection: Connection) -> None:
        """It waits from now on."""
        self._busy.add(connection)

    def vacate(self, connection: Connection) -> Call[Any] | None:
        """It waits no longer, if it did. The call that may take its place."""
        if connection not in self._busy:
            return None
        self._busy.remove(connection)
        for call in self._line:
            self.leave(call)
            return call
        return None

    def stand(self, call: Call[Any]) -> None:
        """Stand in line."""
        self._line[call] = self._reactor.callLater(call.request.wait_s, self._too_long, call)

    def leave(self, call: Call[Any]) -> None:
        """Stand in line no longer; does nothing for others."""
        timer = self._line.pop(call, None)
        if timer is not None:
            timer.cancel()

    def everybody(self) -> Iterator[Call[Any]]:
        """Send all away."""
        while self._line:
            call = next(iter(self._line))
            self.leave(call)
            yield call

    def _too_long(self, call: Call[Any]) -> None:
        del self._line[call]
        self._over(call)
