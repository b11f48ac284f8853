"""Queues whose jobs fail at present: how many, since when, why, and the job that failed most often.

Nothing is done here for a job that does not fail.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.part import Turn
from disque_tx.core.lookup.namedtable import NamedTable
from disque_tx.messages.records import JobRecord, Keyed

#: Failures of so long ago are of the present; a queue without any for this time has no trouble.
RECENT_MS: Final = 60_000
#: Queues that are remembered.
TROUBLES_MAX: Final = 1_000
_ERROR_BYTES_MAX: Final = 200


class Trouble(Keyed):
    """One queue. ``failed``: deliveries that failed in about the last minute; ``timed_out``: those
    of them whose RETRY passed without a word of the worker. ``since_us``: when the first one
    failed, of those without a minute in between. ``error``: the latest reason that was given.
    ``attempts``, ``job_id``: of the job that failed most often, of these. ``client``: the name of
    the connection that gave a job back last, if it had one."""

    __slots__ = (
        "_earlier",
        "_earlier_timed_out",
        "_half_ms",
        "_now",
        "_now_timed_out",
        "_turn",
        "attempts",
        "client",
        "error",
        "job_id",
        "last_ms",
        "since_us",
    )

    def __init__(self, name: bytes, turn: Turn) -> None:
        super().__init__(name)
        self._turn = turn
        self.since_us: i64 = turn.wall_us
        self.last_ms: i64 = turn.now_ms
        self.error: bytes = b""
        self.attempts: i64 = 0
        self.job_id: bytes = b""
        self.client: bytes = b""
        self._half_ms: i64 = turn.now_ms
        self._now: i64 = 0
        self._now_timed_out: i64 = 0
        self._earlier: i64 = 0
        self._earlier_timed_out: i64 = 0

    def add(self, job: JobRecord, reason: bytes, timed_out: bool) -> None:
        """A delivery of this job, which has been counted, failed."""
        self.move()
        self.last_ms = self._turn.now_ms
        self._now += 1
        if timed_out:
            self._now_timed_out += 1
        if reason:
            self.error = reason[:_ERROR_BYTES_MAX]
        attempts = job.nacks + job.deliveries
        if attempts >= self.attempts:
            self.attempts, self.job_id = attempts, job.id

    def is_over(self) -> bool:
        """Whether nothing failed for a minute."""
        return self._turn.now_ms - self.last_ms > RECENT_MS

    def move(self) -> None:
        """Forget what is older than a minute, half a minute at a time."""
        half_ms: i64 = RECENT_MS // 2
        halves = (self._turn.now_ms - self._half_ms) // half_ms
        if halves <= 0:
            return
        self._earlier = self._now if halves == 1 else 0
        self._earlier_timed_out = self._now_timed_out if halves == 1 else 0
        self._now = self._now_timed_out = 0
        self._half_ms += halves * half_ms

    @property
    def failed(self) -> i64:
        """See above."""
        return self._now + self._earlier

    @property
    def timed_out(self) -> i64:
        """See above."""
        return self._now_timed_out + self._earlier_timed_out


class Troubles:
    """All queues with trouble."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._table: NamedTable[Trouble] = NamedTable()

    def failed(self, job: JobRecord, reason: bytes, timed_out: bool) -> None:
        """A delivery of a job failed."""
        trouble = self._table.get(job.queue)
        if trouble is not None and trouble.is_over():
            self._table.remove(trouble)
            trouble = None
        if trouble is None:
            if self._table.count >= TROUBLES_MAX:
                self._forget_old()
            if self._table.count >= TROUBLES_MAX:
                return
            trouble = Trouble(job.queue, self._turn)
            self._table.put(trouble)
        trouble.add(job, reason, timed_out)

    def given_back(self, queue: bytes, client: bytes) -> None:
        """A client of this name has given a job of the queue back, which failed."""
        trouble = self._table.get(queue)
        if trouble is not None and client:
            trouble.client = client

    def _forget_old(self) -> None:
        for trouble in list(self._table.values()):
            if trouble.is_over():
                self._table.remove(trouble)

    def recent(self, limit: i64) -> list[Trouble]:
        """The queues with trouble now, that with most failures first."""
        self._forget_old()
        found = list(self._table.values())
        for trouble in found:
            trouble.move()
        order = sorted([(-int(one.failed), place) for place, one in enumerate(found)])
        return [found[place] for _failed, place in order[:limit]]
