"""The connections to one node, by what they are for.

- one for requests that are answered at once, many under way on it;
- a few for ADDJOB, which a node may keep waiting for copies: more as they fill up;
- those for GETJOBs that wait, one call on each; their number is the concern of :class:`Line`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from disque_tx.client.addresses import Address
from disque_tx.client.tx.calls import COPYING, QUICK, WAITING, Call
from disque_tx.client.tx.connection import Connection

#: One more connection is opened for ADDJOB when each has so many calls, up to a number.
_COPYING_LOAD: Final = 8
_COPYING_MAX: Final = 8


class Links:
    """The connections to the node at ``address``. ``connect``: makes one for a pace."""

    def __init__(self, address: Address, connect: Callable[[Address, str], Connection]) -> None:
        self.address = address
        self.idle: list[Connection] = []
        self._connect = connect
        self._quick: Connection | None = None
        self._copying: list[Connection] = []
        self._all: dict[Connection, None] = {}

    def __len__(self) -> int:
        return len(self._all)

    def send(self, call: Call[Any]) -> None:
        """Send a call that is no wait for jobs."""
        if call.pace is QUICK:
            connection = self._quick
            if connection is None:
                connection = self._quick = self._new(QUICK)
        else:
            connection = self._for_copying()
        connection.send(call)

    def _for_copying(self) -> Connection:
        """The one with the fewest calls, or a new one when all have many."""
        if self._copying:
            emptiest = min(self._copying, key=_load)
            if emptiest.load < _COPYING_LOAD or len(self._copying) >= _COPYING_MAX:
                return emptiest
        connection = self._new(COPYING)
        self._copying.append(connection)
        return connection

    def for_waiting(self) -> Connection:
        """One without calls."""
        return self.idle.pop() if self.idle else self._new(WAITING)

    def _new(self, pace: str) -> Connection:
        connection = self._connect(self.address, pace)
        self._all[connection] = None
        connection.open()
        return connection

    def forget(self, connection: Connection) -> None:
        """It has ended."""
        self._all.pop(connection, None)
        if self._quick is connection:
            self._quick = None
        for group in (self._copying, self.idle):
            if connection in group:
                group.remove(connection)

    def close_idle(self) -> None:
        """Close those for waiting that nobody uses."""
        for connection in list(self.idle):
            connection.close("it was left")

    def retire(self) -> None:
        """Send nothing more on any of them, and close each when its calls are answered."""
        self._quick = None
        self._copying.clear()
        self.idle.clear()
        for connection in list(self._all):
            connection.retired = True
            if not connection.load:
                connection.close("it was left")


def _load(connection: Connection) -> int:
    return connection.load


class Line:
    """The bound on connections that wait for jobs, and the calls that wait for one of them.

    At most ``places`` calls wait at nodes at the same time; others stand in line, in order.

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
