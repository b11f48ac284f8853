"""The orders that lists of queues can have, the rows that come first in one, and two rankings: the
queues with most jobs, and those whose first job has waited for longest. These are kept for pages
that show them again and again: with very many queues a walk over all of them costs milliseconds.

1. A list that walks over all queues fills both rankings. From its beginning on, queues whose jobs
   change are noted (``Queues.note``).
2. Until many have changed, the first rows of a ranking follow from what the walk found and from the
   noted queues alone.
3. Rows that leave are not replaced by those behind the last one, which are not known: when there
   are too few for a page, the next list walks again.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.counting.counts import QueueNumbers
from disque_tx.core.queues.queues import Queue, Queues

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
#: Rows of a ranking. A page has 50 rows as a rule, so that some may leave.
_ROWS_MAX: Final = 200


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


def order_of(sort: i64, queue: Queue | None) -> i64:
    """The order of a queue, smallest first, but for rates, which change all the time. ``None``: a
    queue that only has jobs that are not in it."""
    if sort == BY_OLDEST:
        first = queue.jobs.first() if queue is not None else None
        return _NEVER if first is None else first.moved_ms
    return 0 if queue is None or sort == BY_NAME else -queue.jobs.size


class FirstRows:
    """The first ``most`` rows of all that were offered. When they are complete, no row behind the
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


class Rankings:
    """Both rankings, of queues with jobs. One walk at a time fills them."""

    __slots__ = ("_filling", "_full", "_oldest", "_queued", "_queues")

    def __init__(self, queues: Queues) -> None:
        self._queues: Queues = queues
        self._oldest: FirstRows = FirstRows(_ROWS_MAX)
        self._queued: FirstRows = FirstRows(_ROWS_MAX)
        self._filling: bool = False
        self._full: bool = False

    def first(self, sort: i64, count: i64) -> list[Key]:
        """The first ``count`` rows and one more; empty where they are not known."""
        if not self._full or (sort != BY_OLDEST and sort != BY_QUEUED):
            return []
        if not self._queues.noting:
            self._full = False
            return []
        self._follow()
        rows = (self._oldest if sort == BY_OLDEST else self._queued).rows()
        return rows[: count + 1] if len(rows) > count else []

    def begin(self) -> bool:
        """A walk over all queues begins; ``False`` if another one fills the rankings."""
        if self._filling and self._queues.noting:
            return False
        self._filling = True
        self._full = False
        self._oldest = FirstRows(_ROWS_MAX)
        self._queued = FirstRows(_ROWS_MAX)
        self._queues.note_from_now()
        return True

    def see(self, queue: Queue) -> None:
        """The walk is at this queue."""
        queue.noted = False
        if queue.jobs.size > 0:
            _offer(self._oldest, BY_OLDEST, queue)
            _offer(self._queued, BY_QUEUED, queue)

    def end(self, complete: bool) -> None:
        """The walk is over. ``complete``: it was at every queue."""
        self._filling = False
        self._full = complete

    def _follow(self) -> None:
        """Look at the queues that changed since the last time."""
        changed = self._queues.changed
        if not changed:
            return
        self._queues.changed = []
        names = {queue.name for queue in changed}
        self._oldest.remove(names)
        self._queued.remove(names)
        for queue in changed:
            self.see(queue)


def _offer(rows: FirstRows, sort: i64, queue: Queue) -> None:
    order = order_of(sort, queue)
    if rows.takes(order, queue.name):
        rows.add((int(order), queue.name))
