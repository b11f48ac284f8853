"""The queues with most jobs, and those whose first job has waited for longest, kept for pages that
show them again and again: with very many queues a walk over all of them costs milliseconds.

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

from disque_tx.core.counting.orders import BY_OLDEST, BY_QUEUED, FirstRows, Key, order_of
from disque_tx.core.queues.queues import Queue, Queues

#: Rows of a ranking. A page has 50 rows as a rule, so that some may leave.
_ROWS_MAX: Final = 200


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
    order = order_of(sort, queue, 0)
    if rows.takes(order, queue.name):
        rows.add((int(order), queue.name))
