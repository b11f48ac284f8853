"""A new selector looks at the queues that there are, a part per turn."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.client import REPLY_OFF
from disque_tx.core.base.slices import SlicedTask, SlicedWork
from disque_tx.core.queues.queues import Queues
from disque_tx.core.queues.selector import Selector
from disque_tx.core.queues.waiters import Waiters

#: Queues with short names looked at per part, and by a request at once.
QUEUES_PER_PART: Final = 500
_QUEUES_AT_ONCE: Final = 2_000


class Filling(SlicedTask):
    """Fills a new selector. Queues that get jobs meanwhile are offered to the selector anyway; when
    the fill ends, NOHANG clients that waited for it are answered."""

    __slots__ = ("_cursor", "_queues", "_selector", "_waiters")

    def __init__(self, queues: Queues, waiters: Waiters, selector: Selector) -> None:
        self._queues: Queues = queues
        self._waiters: Waiters = waiters
        self._selector: Selector = selector
        self._cursor: int = 0

    def step(self, now_ms: i64) -> bool:
        selector = self._selector
        if selector.dropped:
            return True
        if not selector.filled:
            self.scan(QUEUES_PER_PART)
            # Whoever only waits for this may get a job that was found just now.
            return selector.filled and not selector.passing
        for client in list(selector.passing):
            if client.reply_mode != REPLY_OFF:
                client.replies.null_array()
            self._waiters.answered(client)
        return True

    def scan(self, count: i64) -> None:
        """Offer the selector about this number of queues with short names, fewer with longer
        ones."""
        selector = self._selector
        seen: i64 = 0
        while seen < count:
            self._cursor, queues = self._queues.table.scan(self._cursor)
            seen += 1
            for queue in queues:
                if queue.jobs.size == 0:
                    seen += 1
                    continue
                seen += selector.price(queue.name)
                if selector.matches(queue.name):
                    self._waiters.note_ready(queue)
            if self._cursor == 0:
                selector.filled = True
                return


def fill(
    selector: Selector, queues: Queues, waiters: Waiters, slices: SlicedWork, now_ms: i64
) -> None:
    """Let a new selector look at the queues: the first of them at once, the others in slices."""
    if selector.filled or selector.filling:
        return
    selector.filling = True
    task = Filling(queues, waiters, selector)
    task.scan(_QUEUES_AT_ONCE)
    if not selector.filled:
        slices.add(task)
