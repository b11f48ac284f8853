"""How long a job lives and is delayed, when neither the clock of another machine nor this one's
time of day since the job was recorded can be relied on.

1. While a node runs, all this lies on its steady clock.
2. ``ctime`` is the time of day of another machine, or of this one before its clock was set. It
   orders jobs; the difference to a time of day of this machine proves nothing.
3. The ID of a job holds its TTL in minutes, rounded. That bounds what is computed from clocks.
4. After a restart DELAY starts again, as with the original: the job may be late, never early. But
   not so late that its life would end before a client could get it.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.job import Job, life_minutes

_FOREVER_S: Final = 4_294_967_295
#: How much of its life may have passed for a copy when it arrived.
_ARRIVED_S: Final = 10
#: The most that an ID can hold.
_MINUTES_MAX: Final = 65_534


def life_s_min(job_id: bytes) -> i64:
    """The shortest TTL that goes with the ID: the last bit of the minutes is not part of it."""
    return i64(life_minutes(job_id) & ~1) * 60


def life_s_max(job_id: bytes) -> i64:
    """The longest TTL that goes with the ID."""
    minutes: i64 = life_minutes(job_id) | 1
    return _FOREVER_S if minutes > _MINUTES_MAX else 60 * (minutes + 1)


def whole_life_s(job_id: bytes, clocks_s: i64) -> i64:
    """The TTL that a job was added with: ``clocks_s``, by two clocks, but as the ID allows."""
    return max(life_s_min(job_id), min(clocks_s, life_s_max(job_id)))


def delay_left_ms(job: Job, mine: bool, left_ms: i64) -> i64:
    """For how long a job that comes from the log is delayed.

    ``mine``: this node made it, so both ends of its life are by one clock. ``left_ms``: what is
    left of that. Of the time between DELAY and the end of its life, half is kept for its delivery,
    but not more than DELAY.
    """
    delay_ms = job.delay_s * 1000
    if mine:
        life_ms = min(job.life_ms, job.etime_s * 1000 - job.ctime // 1_000_000)
    else:
        life_ms = (life_s_min(job.id) - _ARRIVED_S) * 1000
    reserve_ms = max(0, min(delay_ms, (life_ms - delay_ms) // 2))
    return max(0, min(delay_ms, left_ms - reserve_ms))
