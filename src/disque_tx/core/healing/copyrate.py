"""How fast copies are made again: jobs per second, and few per turn, so that clients come first."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.part import Turn
from disque_tx.core.jobs.job import Job

#: Jobs per second, unless configured.
RATE: Final = 2_000
#: Jobs per turn at most. One with a large body counts as several.
_PER_TURN_MAX: Final = 200
_LARGE_BYTES: Final = 16 * 1024
#: Jobs that may be waiting for confirmations: what the rate allows in two seconds, or this many.
_UNDER_WAY_S: Final = 2
_UNDER_WAY_MIN: Final = 100
#: For how long a rate of more than ten may be saved up.
_BURST_US: Final = 100_000


def shares(job: Job) -> i64:
    """How much of the budget of a turn the copies of a job take."""
    return 1 + job.body_bytes // _LARGE_BYTES


class CopyRate:
    """``per_s``: jobs per second that get copies; 0 for none."""

    __slots__ = ("per_s", "_paid_us", "_turn")

    def __init__(self, turn: Turn) -> None:
        self.per_s: i64 = RATE
        self._turn: Turn = turn
        #: Until when, on the steady clock, the copies made so far use up the rate.
        self._paid_us: i64 = 0

    def set(self, per_s: i64) -> None:
        """Begin with another rate."""
        self.per_s = per_s
        self._paid_us = 0

    def pay(self, jobs: i64) -> None:
        """This many jobs got copies."""
        if self.per_s > 0:
            self._paid_us += jobs * max(1, 1_000_000 // self.per_s)

    def budget(self, under_way: i64) -> i64:
        """For how many small jobs copies may be made now, while those of ``under_way`` jobs are not
        confirmed yet."""
        if self.per_s <= 0 or under_way >= max(_UNDER_WAY_MIN, self.per_s * _UNDER_WAY_S):
            return 0
        now_us = self._turn.now_ms * 1000
        # At least one job; rounded up, or else rates that divide no second would make none ever.
        saved_us = max(_BURST_US, (1_000_000 + self.per_s - 1) // self.per_s)
        self._paid_us = max(self._paid_us, now_us - saved_us)
        return min(_PER_TURN_MAX, max(0, now_us - self._paid_us) * self.per_s // 1_000_000)
