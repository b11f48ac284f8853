"""What must happen at which time.

Times are cut into slots of 20 ms and an item is due at the end of its slot: never early, and at
most that much late. Adding and taking back cost the same with a million items. Items of one slot
come out in the order in which they went in, so that a run can be repeated.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

from mypy_extensions import i64

T = TypeVar("T")

SLOT_MS: Final = 20
_HEAP_SLACK: Final = 64


class Schedule(Generic[T]):
    """Items by due time. Whoever adds an item keeps the slot it was given, to take it back."""

    __slots__ = ("_slots", "_heap")

    def __init__(self) -> None:
        self._slots: dict[int, dict[T, None]] = {}
        self._heap: list[int] = []

    def add(self, item: T, at_ms: i64) -> i64:
        """Make ``item`` due at ``at_ms``; returns its slot."""
        slot: i64 = (at_ms + SLOT_MS - 1) // SLOT_MS
        items = self._slots.get(slot)
        if items is None:
            self._slots[slot] = {item: None}
            heappush(self._heap, slot)
        else:
            items[item] = None
        return slot

    def remove(self, item: T, slot: i64) -> None:
        """Take back what :meth:`add` put into ``slot``."""
        items = self._slots[slot]
        del items[item]
        if not items:
            del self._slots[slot]
            if len(self._heap) > 4 * len(self._slots) + _HEAP_SLACK:
                # Slots that emptied before their time leave their number behind.
                self._heap = list(self._slots)
                heapify(self._heap)

    def next_ms(self) -> i64:
        """When the next item is due, -1 when there is none; an empty slot may count as one."""
        return self._heap[0] * SLOT_MS if self._heap else -1

    def due(self, now_ms: i64, limit: i64) -> list[T]:
        """Take out up to ``limit`` items that are due."""
        result: list[T] = []
        while self._heap and self._heap[0] * SLOT_MS <= now_ms and len(result) < limit:
            slot = self._heap[0]
            items = self._slots.get(slot)
            if items is None:
                heappop(self._heap)
                continue
            room = limit - len(result)
            if len(items) <= room:
                heappop(self._heap)
                del self._slots[slot]
                result.extend(items)
                continue
            some = list(items)[:room]
            for item in some:
                del items[item]
            result.extend(some)
        return result

    def clear(self) -> None:
        """Forget everything."""
        self._slots = {}
        self._heap = []
