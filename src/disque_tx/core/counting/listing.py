"""QLIST: the queues of this node that match a pattern, in order, a page at a time.

1. All names are looked at for every page, a slice of them per turn; only the rows of the page are
   kept, so that neither the number of queues nor that of pages costs memory.
2. A page begins behind the last row of the page before it: behind its key and its name, not at a
   number of rows. What changes meanwhile is in the list where it belongs by then, or missing.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.counting.counts import QueueCounter, QueueNumbers
from disque_tx.core.counting.task import ResultReceiver, ResultTask
from disque_tx.core.queues.queues import Queue
from disque_tx.core.state.state import State
from disque_tx.text.globs import Glob

BY_NAME: Final = 0
BY_QUEUED: Final = 1
BY_OLDEST: Final = 2
BY_RATE: Final = 3
SORTS: Final = (b"name", b"queued", b"oldest", b"rate")

#: Short names matched per slice, and names that need not match a pattern.
_NAMES_PER_SLICE: Final = 400
_ALL_PER_SLICE: Final = 1_600
#: The key of a queue without jobs, behind every time.
_NEVER: Final = 1 << 62
#: Behind all.
_NO_ORDER: Final = _NEVER + 1

Key = tuple[int, bytes]


class ListRequest:
    """What is asked for. ``pattern``: empty for all. ``after``: key and name of the row before the
    first, ``None`` for the first page."""

    __slots__ = ("after", "count", "pattern", "sort")

    def __init__(self, pattern: bytes, sort: i64, count: i64, after: Key | None) -> None:
        self.pattern: bytes = pattern
        self.sort: i64 = sort
        self.count: i64 = count
        self.after: Key | None = after


def key_of(sort: i64, counts: QueueNumbers, now_ms: i64) -> Key:
    """Where a row stands in the list, smallest first."""
    numbers = counts.numbers
    if sort == BY_QUEUED:
        return -numbers[0], counts.name
    if sort == BY_OLDEST:
        return (int(now_ms) - numbers[6] if numbers[0] else _NEVER), counts.name
    if sort == BY_RATE:
        return -(numbers[7] + numbers[8]), counts.name
    return 0, counts.name


class QueueListing(ResultTask):
    """One page. The result: whether more follows, then the rows."""

    __slots__ = (
        "_counts",
        "_cursor",
        "_found",
        "_glob",
        "_in_tallies",
        "_last_name",
        "_last_order",
        "_queues",
        "_request",
        "_tallies",
        "_turn",
    )

    def __init__(
        self, state: State, counts: QueueCounter, request: ListRequest, receiver: ResultReceiver
    ) -> None:
        super().__init__(receiver)
        self._turn = state.turn
        self._queues = state.queues
        self._tallies = state.tallies
        self._counts = counts
        self._request = request
        self._glob: Glob | None = Glob(request.pattern) if request.pattern else None
        self._cursor: int = 0
        self._in_tallies: bool = False
        self._found: list[Key] = []
        # The row behind the page, as far as is known: most queues stand behind it.
        self._last_order: i64 = _NO_ORDER
        self._last_name: bytes = b""

    def step(self, now_ms: i64) -> bool:
        if self.receiver.gone():
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
        if order >= self._last_order and (order > self._last_order or name > self._last_name):
            return
        request = self._request
        glob = self._glob
        if glob is not None and not glob.matches(name):
            return
        key = (int(order), name)
        if request.after is not None and key <= request.after:
            return
        self._found.append(key)
        if len(self._found) > 2 * request.count + 1:
            self._cut()

    def _order(self, queue: Queue | None) -> i64:
        """Where the queue stands, smallest first."""
        sort = self._request.sort
        if sort == BY_NAME:
            return 0
        if sort == BY_OLDEST:
            first = queue.jobs.first() if queue is not None else None
            return _NEVER if first is None else first.moved_ms
        if queue is None:
            return 0
        if sort == BY_QUEUED:
            return -queue.jobs.size
        in_milli, out_milli = queue.milli_per_s(self._turn.now_ms)
        return -(in_milli + out_milli)

    def _cut(self) -> None:
        """Keep the rows of the page, and one that shows that more follow."""
        rows = self._request.count + 1
        self._found = sorted(set(self._found))[:rows]
        if len(self._found) == rows:
            last = self._found[-1]
            self._last_order, self._last_name = i64(last[0]), last[1]

    def _finish(self) -> None:
        self._cut()
        words = [b"1" if len(self._found) > self._request.count else b"0"]
        for _, name in self._found[: self._request.count]:
            words += self._counts.of(name).words()
        self.receiver.result(words)
