"""Queues whose jobs fail at present: how many, since when, why, and the job that failed most often.

Nothing is done here for a job that does not fail.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.table import Table
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
    ``attempts``, ``job_id``: of the job that failed most often, of these."""

    __slots__ = (
        "_earlier",
        "_earlier_timed_out",
        "_half_ms",
        "_now",
        "_now_timed_out",
        "attempts",
        "error",
        "job_id",
        "last_ms",
        "since_us",
    )

    def __init__(self, name: bytes, now_ms: i64, wall_us: i64) -> None:
        super().__init__(name)
        self.since_us: i64 = wall_us
        self.last_ms: i64 = now_ms
        self.error: bytes = b""
        self.attempts: i64 = 0
        self.job_id: bytes = b""
        self._half_ms: i64 = now_ms
        self._now: i64 = 0
        self._now_timed_out: i64 = 0
        self._earlier: i64 = 0
        self._earlier_timed_out: i64 = 0

    def add(self, job: JobRecord, reason: bytes, timed_out: bool, now_ms: i64) -> None:
        """A delivery of this job, which has been counted, failed."""
        self.move(now_ms)
        self.last_ms = now_ms
        self._now += 1
        if timed_out:
            self._now_timed_out += 1
        if reason:
            self.error = reason[:_ERROR_BYTES_MAX]
        attempts = job.nacks + job.deliveries
        if attempts >= self.attempts:
            self.attempts, self.job_id = attempts, job.id

    def move(self, now_ms: i64) -> None:
        """Forget what is older than a minute, half a minute at a time."""
        half_ms = RECENT_MS // 2
        halves = (now_ms - self._half_ms) // half_ms
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

    def __init__(self) -> None:
        self._table: Table[Trouble] = Table()

    def failed(
        self, job: JobRecord, reason: bytes, timed_out: bool, now_ms: i64, wall_us: i64
    ) -> None:
        """A delivery of a job failed."""
        trouble = self._table.get(job.queue)
        if trouble is not None and now_ms - trouble.last_ms > RECENT_MS:
            self._table.remove(trouble)
            trouble = None
        if trouble is None:
            if self._table.count >= TROUBLES_MAX:
                self._forget_old(now_ms)
            if self._table.count >= TROUBLES_MAX:
                return
            trouble = Trouble(job.queue, now_ms, wall_us)
            self._table.put(trouble)
        trouble.add(job, reason, timed_out, now_ms)

    def _forget_old(self, now_ms: i64) -> None:
        for trouble in list(self._table.values()):
            if now_ms - trouble.last_ms > RECENT_MS:
                self._table.remove(trouble)

    def recent(self, now_ms: i64, limit: i64) -> list[Trouble]:
        """Those with trouble now, the one with most failures first."""
        self._forget_old(now_ms)
        found = list(self._table.values())
        for trouble in found:
            trouble.move(now_ms)
        order = sorted([(-int(one.failed), place) for place, one in enumerate(found)])
        return [found[place] for _failed, place in order[:limit]]

    def clear(self) -> None:
        """Forget everything."""
        self._table.clear()
