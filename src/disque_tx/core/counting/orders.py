"""The orders that lists of queues can have, and the rows that come first in one."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.counting.counts import QueueNumbers
from disque_tx.core.queues.queues import Queue

BY_NAME: Final = 0
BY_QUEUED: Final = 1
BY_OLDEST: Final = 2
BY_RATE: Final = 3
SORTS: Final = (b"name", b"queued", b"oldest", b"rate")

#: The key of a queue without jobs, behind every time.
_NEVER: Final = 1 << 62
#: Behind all.
_NO_ORDER: Final = _NEVER + 1

#: Where a row stands, smallest first: its order, and its name.
Key = tuple[int, bytes]


def key_of(sort: i64, counts: QueueNumbers, now_ms: i64) -> Key:
    """Where a row stands in the list."""
    numbers = counts.numbers
    if sort == BY_QUEUED:
        return -numbers[0], counts.name
    if sort == BY_OLDEST:
        return (int(now_ms) - numbers[6] if numbers[0] else _NEVER), counts.name
    if sort == BY_RATE:
        return -(numbers[7] + numbers[8]), counts.name
    return 0, counts.name


def order_of(sort: i64, queue: Queue | None, now_ms: i64) -> i64:
    """The order of a queue, smallest first; ``None``: one that only has jobs that are not in it."""
    if sort == BY_NAME:
        return 0
    if sort == BY_OLDEST:
        first = queue.jobs.first() if queue is not None else None
        return _NEVER if first is None else first.moved_ms
    if queue is None:
        return 0
    if sort == BY_QUEUED:
        return -queue.jobs.size
    in_milli, out_milli = queue.milli_per_s(now_ms)
    return -(in_milli + out_milli)


class FirstRows:
    """The first ``most`` rows of all that were offered. Once there are so many, no row behind the
    last of them is taken, even after some were removed: what is here is all up to that one."""

    __slots__ = ("_last_name", "_last_order", "_most", "_rows")

    def __init__(self, most: i64) -> None:
        self._most: i64 = most
        self._rows: list[Key] = []
        self._last_order: i64 = _NO_ORDER
        self._last_name: bytes = b""

    def takes(self, order: i64, name: bytes) -> bool:
        """Whether a row is not behind the last one, as far as this is known."""
        return order < self._last_order or (order == self._last_order and name <= self._last_name)

    def add(self, key: Key) -> None:
        """A row that :meth:`takes` says yes to; it may have been added before."""
        self._rows.append(key)
        if len(self._rows) >= 2 * self._most:
            self.rows()

    def remove(self, names: set[bytes]) -> None:
        """Remove the rows with these names."""
        self._rows = [key for key in self._rows if key[1] not in names]

    def rows(self) -> list[Key]:
        """The rows in order, each once."""
        self._rows = sorted(set(self._rows))[: self._most]
        if len(self._rows) == self._most:
            last = self._rows[-1]
            self._last_order, self._last_name = i64(last[0]), last[1]
        return self._rows
