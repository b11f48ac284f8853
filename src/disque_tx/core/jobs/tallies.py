"""How many jobs of each queue, and of all queues, are at this node but not queued: kept with every
change.

Tallies are kept apart from queues, because an idle queue is forgotten even while jobs of it are
delayed, or delivered and not acknowledged. A tally of nothing is kept for a while: most queues are
in use again and again.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.totals import Totals
from disque_tx.core.jobs.job import BACKOFF, DELAYED, IN_FLIGHT, LOADED, NOWHERE, Job
from disque_tx.core.jobs.observer import JobObserver
from disque_tx.core.lookup.namedtable import NamedTable
from disque_tx.core.lookup.table import Table
from disque_tx.messages.records import Keyed

#: Tallies of nothing that are kept.
_EMPTY_MAX: Final = 1_000


class Tally(Keyed):
    """One queue. ``delayed``: jobs whose DELAY this node waits for. ``backoff``: jobs that wait
    here for another attempt. ``in_flight``: jobs that a client of this node fetched, and that are
    neither done nor queued here again. ``loaded``: jobs that came from the log, and of which
    nothing else is known yet. ``listed``: stands among the tallies of nothing."""

    __slots__ = ("backoff", "delayed", "in_flight", "listed", "loaded")

    def __init__(self, name: bytes) -> None:
        super().__init__(name)
        self.delayed: i64 = 0
        self.backoff: i64 = 0
        self.in_flight: i64 = 0
        self.loaded: i64 = 0
        self.listed: bool = False

    def of(self, place: i64) -> i64:
        """How many jobs are in one of the places of :mod:`disque_tx.core.jobs.job`; those that are
        resuming are among the loaded ones."""
        if place == IN_FLIGHT:
            return self.in_flight
        if place == DELAYED:
            return self.delayed
        if place == BACKOFF:
            return self.backoff
        return self.loaded if place == LOADED else 0

    def is_empty(self) -> bool:
        """Whether there is nothing to count."""
        held = self.in_flight + self.delayed + self.backoff + self.loaded
        return held == 0


class Tallies(JobObserver):
    """``table``: the tallies of all queues, by the name of the queue. ``totals`` has the sums."""

    __slots__ = ("_empty", "_totals", "table")

    def __init__(self, totals: Totals) -> None:
        self.table: NamedTable[Tally] = NamedTable()
        self._totals = totals
        self._empty: deque[Tally] = deque()

    def get(self, name: bytes) -> Tally | None:
        """The tally of a queue, if there is one."""
        return self.table.get(name)

    def job_moved(self, job: Job, was: i64) -> None:
        if was != NOWHERE:
            self.change(job.queue, was, -1)
        place = i64(job.place)
        if place != NOWHERE:
            self.change(job.queue, place, 1)

    def change(self, name: bytes, place: i64, by: i64) -> None:
        """``by`` jobs more are in this place."""
        tally = self.table.get(name)
        if tally is None:
            tally = Tally(name)
            self.table.put(tally)
        if place == IN_FLIGHT:
            tally.in_flight += by
            self._totals.in_flight += by
        elif place == DELAYED:
            tally.delayed += by
            self._totals.delayed += by
        elif place == BACKOFF:
            tally.backoff += by
            self._totals.in_backoff += by
        elif place >= LOADED:
            tally.loaded += by
            self._totals.loaded += by
        if by < 0 and not tally.listed and tally.is_empty():
            self._keep_empty(tally)

    def _keep_empty(self, tally: Tally) -> None:
        tally.listed = True
        self._empty.append(tally)
        if len(self._empty) > _EMPTY_MAX:
            oldest = self._empty.popleft()
            oldest.listed = False
            if oldest.is_empty():
                self.table.remove(oldest)

    def all_forgotten(self, jobs: Table[Job]) -> None:
        self.table.clear()
        self._empty.clear()
        self._totals.clear()
