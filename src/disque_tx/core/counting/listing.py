"""QLIST: the queues of this node that match a pattern, in order, a page at a time.

1. All names are looked at for every page, a slice of them per turn; only the rows of the page are
   kept, so that neither the number of queues nor that of pages costs memory.
2. A page begins behind the last row of the page before it: behind its key and its name, not at a
   number of rows. What changes meanwhile is in the list where it belongs by then, or missing.
3. The walk for a first page in an order that has a ranking fills the rankings.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.counting.counts import QueueCounter
from disque_tx.core.counting.rankings import (
    BY_OLDEST,
    BY_QUEUED,
    BY_RATE,
    FirstRows,
    Key,
    Rankings,
    order_of,
)
from disque_tx.core.counting.task import ResultReceiver, ResultTask
from disque_tx.core.queues.queues import Queue
from disque_tx.core.state.state import State
from disque_tx.text.globs import Glob

#: Short names matched per slice, and names that need not match a pattern.
_NAMES_PER_SLICE: Final = 400
_ALL_PER_SLICE: Final = 1_600


class ListRequest:
    """What is asked for. ``pattern``: empty for all. ``after``: key and name of the row before the
    first, ``None`` for the first page."""

    __slots__ = ("after", "count", "pattern", "sort")

    def __init__(self, pattern: bytes, sort: i64, count: i64, after: Key | None) -> None:
        self.pattern: bytes = pattern
        self.sort: i64 = sort
        self.count: i64 = count
        self.after: Key | None = after

    def is_ranked(self) -> bool:
        """Whether it is the first page, of all queues, in an order that has a ranking."""
        is_first = not self.pattern and self.after is None
        return is_first and (self.sort == BY_OLDEST or self.sort == BY_QUEUED)


class QueueListing(ResultTask):
    """One page. The result: whether more follows, then the rows."""

    __slots__ = (
        "_counts",
        "_cursor",
        "_found",
        "_glob",
        "_in_tallies",
        "_queues",
        "_ranks",
        "_rankings",
        "_request",
        "_tallies",
        "_turn",
    )

    def __init__(
        self,
        state: State,
        counts: QueueCounter,
        rankings: Rankings,
        request: ListRequest,
        receiver: ResultReceiver,
    ) -> None:
        super().__init__(receiver)
        self._turn = state.turn
        self._queues = state.queues
        self._tallies = state.tallies
        self._counts = counts
        self._rankings: Rankings = rankings
        self._request = request
        self._glob: Glob | None = Glob(request.pattern) if request.pattern else None
        self._cursor: int = 0
        self._in_tallies: bool = False
        # The page, and one row that shows that more follow.
        self._found = FirstRows(request.count + 1)
        # Whether this walk fills the rankings.
        self._ranks: bool = request.is_ranked() and rankings.begin()

    def step(self, now_ms: i64) -> bool:
        if self.receiver.gone():
            self._end_ranking(False)
            return True
        seen: i64 = 0
        most: i64 = _ALL_PER_SLICE if self._glob is None else _NAMES_PER_SLICE
        while seen < most:
            if self._in_tallies:
                self._cursor, tallies = self._tallies.table.scan(self._cursor)
                for tally in tallies:
                    if not tally.is_empty() and self._queues.get(tally.id) is None:
                        seen += self._price(tally.id)
                        self._consider(tally.id, None)
                seen += len(tallies) + 1
            else:
                # With a pattern, the price of a name is known only when it is there.
                part: i64 = most - seen if self._glob is None else 1
                self._cursor, queues = self._queues.table.scan_part(self._cursor, part)
                for queue in queues:
                    seen += self._price(queue.name)
                    self._consider(queue.name, queue)
                    if self._ranks:
                        self._rankings.see(queue)
                seen += 1
                if self._glob is None and self._cursor != 0:
                    break
            if self._cursor == 0:
                if self._in_tallies:
                    self._finish()
                    return True
                self._in_tallies = True
        return False

    def _price(self, name: bytes) -> i64:
        """What it takes to look at this name, in short names."""
        return 1 if self._glob is None else self._glob.price(len(name))

    def _consider(self, name: bytes, queue: Queue | None) -> None:
        order = self._order(queue)
        if not self._found.takes(order, name):
            return
        request = self._request
        glob = self._glob
        if glob is not None and not glob.matches(name):
            return
        key = (int(order), name)
        if request.after is None or key > request.after:
            self._found.add(key)

    def _order(self, queue: Queue | None) -> i64:
        """Where the queue stands, smallest first."""
        if self._request.sort != BY_RATE:
            return order_of(self._request.sort, queue)
        if queue is None:
            return 0
        in_milli, out_milli = queue.milli_per_s(self._turn.now_ms)
        return -(in_milli + out_milli)

    def _finish(self) -> None:
        self._end_ranking(True)
        self.receiver.result(page_of(self._found.rows(), self._request.count, self._counts))

    def _end_ranking(self, complete: bool) -> None:
        if self._ranks:
            self._ranks = False
            self._rankings.end(complete)

    def failed(self) -> None:
        self._end_ranking(False)
        super().failed()


def page_of(rows: list[Key], count: i64, counts: QueueCounter) -> list[bytes]:
    """The result: ``rows`` are those of the page, and one more if more follow."""
    words = [b"1" if len(rows) > count else b"0"]
    for _, name in rows[:count]:
        words += counts.of(name).words()
    return words
