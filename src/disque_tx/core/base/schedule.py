"""What must happen at which time.

Times are cut into slots of 20 ms and an item is due at the end of its slot: never early, and at
most that much late. The items of a slot form a ring through the items themselves, so adding one and
taking it back touch nothing but its neighbours, whatever else is stored. They come out in the order
in which they went in, so that a run can be repeated.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

from mypy_extensions import i64

from disque_tx.errors import LocalError
from disque_tx.messages.records import Linked

T = TypeVar("T", bound=Linked)

SLOT_MS: Final = 20
#: Rings that may stand empty before they are looked for.
_EMPTY_RINGS: Final = 1_024


class Schedule(Generic[T]):
    """Items by due time; an item is in one schedule at a time, and in it once."""

    __slots__ = ("_count", "_heap", "_rings")

    def __init__(self) -> None:
        self._count: i64 = 0
        # Slot number → the ring's own item, whose neighbours are the last and the first.
        self._rings: dict[int, Linked] = {}
        self._heap: list[int] = []

    def add(self, item: T, at_ms: i64) -> None:
        """Make ``item`` due at ``at_ms``."""
        if item.next is not None:
            raise LocalError("an item was scheduled twice")
        slot: i64 = (at_ms + SLOT_MS - 1) // SLOT_MS
        ring = self._rings.get(slot)
        if ring is None:
            ring = self._new_ring(slot)
        last = ring.prev
        assert last is not None
        item.prev = last
        item.next = ring
        last.next = item
        ring.prev = item
        self._count += 1

    def _new_ring(self, slot: i64) -> Linked:
        if len(self._rings) > 4 * self._count + _EMPTY_RINGS:
            self._drop_empty()
        ring = Linked()
        ring.prev = ring
        ring.next = ring
        self._rings[slot] = ring
        heappush(self._heap, slot)
        return ring

    def _drop_empty(self) -> None:
        """Items that were taken back before their time left their rings behind."""
        for slot, ring in list(self._rings.items()):
            if ring.next is ring:
                del self._rings[slot]
                _open(ring)
        self._heap = list(self._rings)
        heapify(self._heap)

    def remove(self, item: T) -> None:
        """Take back an item; nothing happens when it is not scheduled."""
        before, after = item.prev, item.next
        if before is None or after is None:
            return
        before.next = after
        after.prev = before
        item.prev = None
        item.next = None
        self._count -= 1

    def next_ms(self) -> i64:
        """When the next item is due, -1 when there is none; an empty slot may count as one."""
        return self._heap[0] * SLOT_MS if self._heap else -1

    def due(self, now_ms: i64, limit: i64) -> list[T]:
        """Take out up to ``limit`` items that are due."""
        result: list[T] = []
        while self._heap and self._heap[0] * SLOT_MS <= now_ms:
            ring = self._rings[self._heap[0]]
            item = ring.next
            while item is not None and item is not ring and len(result) < limit:
                self.remove(item)  # type: ignore[arg-type]
                result.append(item)  # type: ignore[arg-type]
                item = ring.next
            if item is not ring:
                break
            del self._rings[heappop(self._heap)]
            _open(ring)
        return result

    def clear(self) -> None:
        """Forget everything, item by item: their neighbours must not keep them alive."""
        for ring in self._rings.values():
            item = ring.next
            while item is not None and item is not ring:
                self.remove(item)  # type: ignore[arg-type]
                item = ring.next
            _open(ring)
        self._rings = {}
        self._heap = []


def _open(ring: Linked) -> None:
    """An empty ring holds itself; let go of it."""
    ring.prev = None
    ring.next = None


def earlier(due_ms: i64, other_ms: i64) -> i64:
    """The earlier of two times, of which each may be -1 for never."""
    return other_ms if due_ms < 0 or 0 <= other_ms < due_ms else due_ms
