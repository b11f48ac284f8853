"""The connections to one node, by what they are for.

- one for requests that are answered at once, many under way on it;
- a few for ADDJOB, which may wait for copies: more as they fill up;
- those for GETJOBs that wait, one call on each; :class:`WaitQueue` limits their number.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Final

from disque_tx.client.addresses import Address
from disque_tx.client.tx.calls import COPYING, QUICK, WAITING, Call
from disque_tx.client.tx.connection import Connection

#: When every connection for ADDJOB has this many calls another one is opened, up to the limit.
_COPYING_LOAD: Final = 8
_COPYING_MAX: Final = 8
#: Why a connection is closed that is not used any more.
UNUSED: Final = "the client does not use it any more"


class ConnectionPool:
    """The connections to the node at ``address``. ``connect``: makes one for a kind of calls."""

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
        """Send a call that does not wait for jobs."""
        if call.pace is QUICK:
            connection = self._quick
            if connection is None:
                connection = self._quick = self._new(QUICK)
        else:
            connection = self._for_copying()
        connection.send(call)

    def _for_copying(self) -> Connection:
        """The connection with the fewest calls, or a new one when all have many."""
        if self._copying:
            emptiest = min(self._copying, key=_load)
            if emptiest.load < _COPYING_LOAD or len(self._copying) >= _COPYING_MAX:
                return emptiest
        connection = self._new(COPYING)
        self._copying.append(connection)
        return connection

    def for_waiting(self) -> Connection:
        """A connection without calls, for a GETJOB that waits."""
        return self.idle.pop() if self.idle else self._new(WAITING)

    def _new(self, pace: str) -> Connection:
        connection = self._connect(self.address, pace)
        self._all[connection] = None
        connection.open()
        return connection

    def forget(self, connection: Connection) -> None:
        """Remove a connection that has ended."""
        self._all.pop(connection, None)
        if self._quick is connection:
            self._quick = None
        for group in (self._copying, self.idle):
            if connection in group:
                group.remove(connection)

    def close_idle(self) -> None:
        """Close the unused connections for GETJOBs that wait."""
        for connection in list(self.idle):
            connection.close(UNUSED)

    def retire(self) -> None:
        """Send nothing more on any of them, and close each when its calls are answered."""
        self._quick = None
        self._copying.clear()
        self.idle.clear()
        for connection in list(self._all):
            connection.retired = True
            if not connection.load:
                connection.close(UNUSED)


def _load(connection: Connection) -> int:
    return connection.load


class WaitQueue:
    """Limits the connections that wait for jobs, and queues calls when all are in use.

    At most ``connections_max`` calls wait at nodes at the same time; others are queued here, in
    order. ``expired``: called with a call that was queued for as long as it may wait for jobs.
    """

    def __init__(
        self, connections_max: int, reactor: Any, expired: Callable[[Call[Any]], None]
    ) -> None:
        self._connections_max = connections_max
        self._reactor = reactor
        self._expired = expired
        self._busy: set[Connection] = set()
        self._wait_queue: OrderedDict[Call[Any], Any] = OrderedDict()

    @property
    def has_room(self) -> bool:
        """Whether another connection may wait."""
        return len(self._busy) < self._connections_max

    def acquire(self, connection: Connection) -> None:
        """Mark the connection as waiting for jobs."""
        self._busy.add(connection)

    def release(self, connection: Connection) -> Call[Any] | None:
        """Mark the connection as free. If it waited for jobs, returns the next queued call."""
        if connection not in self._busy:
            return None
        self._busy.remove(connection)
        for call in self._wait_queue:
            self.remove(call)
            return call
        return None

    def enqueue(self, call: Call[Any]) -> None:
        """Queue a call."""
        self._wait_queue[call] = self._reactor.callLater(call.request.wait_s, self._too_long, call)

    def remove(self, call: Call[Any]) -> None:
        """Remove a call from the queue, if it is there."""
        timer = self._wait_queue.pop(call, None)
        if timer is not None:
            timer.cancel()

    def drain(self) -> Iterator[Call[Any]]:
        """Remove all calls, one by one."""
        while self._wait_queue:
            call = next(iter(self._wait_queue))
            self.remove(call)
            yield call

    def _too_long(self, call: Call[Any]) -> None:
        del self._wait_queue[call]
        self._expired(call)
