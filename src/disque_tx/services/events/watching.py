"""Plugins' watchers of events, in compiled code: an event that interests none of them costs the
same however many there are, and reaches no interpreted code.

Events are collected while the node acts, and handed over at the end of the turn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disque_tx.messages.events import ADDED, QUEUED, EventSink
from disque_tx.messages.limits import QUEUE_BYTES_MAX
from disque_tx.messages.records import JobRecord
from disque_tx.plugins.values import JobEvent

#: Queues of which it is remembered who watches them.
_QUEUES_MAX: Final = 16_384
_ONE: Final[i64] = 1
_ALL: Final[i64] = -1


class Watch:
    """One watcher. ``kinds``: of the events it wants, none for all. ``wants``: whether it wants
    those of a queue, ``None`` for all. ``take``: called with the events of a turn. ``failed``:
    called while an error of one of the two is handled; it gets no more events then."""

    __slots__ = ("ended", "events", "failed", "kinds", "take", "wants")

    def __init__(
        self,
        kinds: list[int],
        wants: Callable[[bytes], bool] | None,
        take: Callable[[list[JobEvent]], object],
        failed: Callable[[Watch], object],
    ) -> None:
        self.wants: Callable[[bytes], bool] | None = wants
        self.take: Callable[[list[JobEvent]], object] = take
        self.failed: Callable[[Watch], object] = failed
        self.events: list[JobEvent] = []
        self.ended: bool = False
        bits: i64 = 0 if kinds else _ALL
        for kind in kinds:
            bits |= _ONE << kind
        self.kinds: i64 = bits

    def fail(self) -> None:
        """An error of the watcher is being handled."""
        self.ended = True
        self.failed(self)


class Watchers(EventSink):
    """All watchers of one node."""

    def __init__(self) -> None:
        super().__init__()
        self.watches: list[Watch] = []
        self._kinds: i64 = 0
        self._of_queue: dict[bytes, list[Watch]] = {}
        self._touched: list[Watch] = []

    def change(self, watches: list[Watch]) -> None:
        """From now on report to these."""
        self.watches = watches
        self._of_queue = {}
        self._kinds = 0
        for watch in watches:
            self._kinds |= watch.kinds

    def added(self, job: JobRecord, ttl_s: i64, reason: i64, client_id: i64, queued: bool) -> None:
        """ADDED, and QUEUED."""
        self._happened(ADDED, job, reason, -1)
        if queued:
            self._happened(QUEUED, job, 0, -1)

    def job(self, kind: i64, job: JobRecord, reason: i64, number: i64, elapsed_ms: i64) -> None:
        """Any other event of a job."""
        self._happened(kind, job, reason, elapsed_ms)

    def moved(self, kind: i64, job: JobRecord, node_id: bytes) -> None:
        """IMPORTED, EXPORTED."""
        self._happened(kind, job, 0, -1)

    def paused(self, queue: bytes, flags: i64) -> None:
        """Ignored: a pause is not an event of a job."""

    def flushed(self, jobs: i64) -> None:
        """Ignored: a flush is reported by the events of its jobs."""

    def _happened(self, kind: i64, job: JobRecord, reason: i64, elapsed_ms: i64) -> None:
        bit = _ONE << kind
        if self._kinds & bit == 0:
            return
        queue = job.queue
        watches = self._of_queue.get(queue)
        if watches is None:
            watches = self._who_watches(queue)
        event: JobEvent | None = None
        for watch in watches:
            if watch.kinds & bit == 0 or watch.ended:
                continue
            if event is None:
                event = JobEvent(
                    int(kind), int(self.wall_us), queue, job.id, int(reason), int(elapsed_ms)
                )
            if not watch.events:
                self._touched.append(watch)
            watch.events.append(event)

    def _who_watches(self, queue: bytes) -> list[Watch]:
        """Ask each watcher, once as long as the queue is remembered."""
        found: list[Watch] = []
        for watch in self.watches:
            wants = watch.wants
            try:
                if not watch.ended and (wants is None or wants(queue)):
                    found.append(watch)
            except BaseException:
                watch.fail()
        if len(queue) <= QUEUE_BYTES_MAX:
            if len(self._of_queue) >= _QUEUES_MAX:
                self._of_queue = {}
            self._of_queue[queue] = found
        return found

    def hand_over(self) -> None:
        """The turn has ended: each watcher gets what it wants of it."""
        touched, self._touched = self._touched, []
        for watch in touched:
            events, watch.events = watch.events, []
            if not watch.ended:
                try:
                    watch.take(events)
                except BaseException:
                    watch.fail()
