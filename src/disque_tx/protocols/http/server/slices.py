"""Long work in slices, between which the node serves its clients.

What a slice may cost is counted in bytes that are looked at, not in jobs or queues: one job may be
a million times larger than another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from disque_tx.protocols.http.server.problems import Problem

if TYPE_CHECKING:
    from disque_tx.plugins import IHost, QueueFigures

#: Bytes that are looked at, or written, in a slice: a millisecond or two.
SLICE_BYTES: Final = 128 * 1024
#: What anything costs that is looked at, however short it is.
ITEM_BYTES: Final = 512
#: As many comparisons of characters, of a pattern and a name, cost what looking at a byte does.
COMPARISONS_PER_BYTE: Final = 16
QUEUES_PER_SLICE: Final = SLICE_BYTES // ITEM_BYTES
#: Seconds between two slices: long enough for a turn of the node.
PAUSE_S: Final = 0.001
#: Requests at the same time whose cost grows with all of the node.
COSTLY_MAX: Final = 2


class Slices:
    """The slices of all requests of a listener: however many requests there are, one slice is done
    between two turns of the node."""

    def __init__(self, reactor: IReactorTime) -> None:
        self._reactor = reactor
        self._waiting: deque[Deferred[None]] = deque()
        self._next: IDelayedCall | None = None
        self._costly = 0

    @property
    def busy(self) -> bool:
        """Whether others wait for their slice; then a request waits for its first one, too."""
        return bool(self._waiting)

    def turn(self) -> Deferred[None]:
        """Fires when the next slice of the caller may begin; it may be cancelled."""
        waiting: Deferred[None] = Deferred(self._waiting.remove)
        self._waiting.append(waiting)
        self._plan()
        return waiting

    def _plan(self) -> None:
        if self._waiting and self._next is None:
            self._next = self._reactor.callLater(PAUSE_S, self._begin)

    def _begin(self) -> None:
        self._next = None
        if self._waiting:
            self._waiting.popleft().callback(None)
            self._plan()

    def enter(self) -> None:
        """A request begins whose cost grows with all of the node; ``Problem`` when there are
        enough of them."""
        if self._costly >= COSTLY_MAX:
            raise Problem(
                503, "TRYLATER", f"{COSTLY_MAX} requests that cost much are under way here."
            )
        self._costly += 1

    def leave(self) -> None:
        """A request that holds a slice has ended."""
        self._costly -= 1


class Share:
    """What one request may do: a slice, and then another one."""

    def __init__(self, slices: Slices) -> None:
        self._slices = slices
        self._left = 0 if slices.busy else SLICE_BYTES

    async def spend(self, size: int) -> None:
        """Account for bytes that are to be looked at; waits for the next slice if they do not fit
        into this one."""
        self._left -= ITEM_BYTES + size
        if self._left < 0:
            self._left = SLICE_BYTES - ITEM_BYTES - size
            await self._slices.turn()


async def all_queues(host: IHost, slices: Slices) -> AsyncIterator[list[QueueFigures]]:
    """Every queue of the node, some at a time; one that is returned twice is left out the second
    time."""
    seen: set[bytes] = set()
    cursor = 0
    if slices.busy:
        await slices.turn()
    while True:
        cursor, some = host.view.queues(cursor, QUEUES_PER_SLICE)
        fresh = [queue for queue in some if queue.name not in seen]
        seen.update(queue.name for queue in fresh)
        yield fresh
        if cursor == 0:
            return
        await slices.turn()
