"""Durations, counted by bounds: how long jobs waited and how long work took."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from mypy_extensions import i64

#: Upper bounds in milliseconds, of which durations have whole ones; what is longer is counted
#: behind the last one.
BOUNDS_MS: Final[tuple[float, ...]] = (
    *(1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 2_500.0, 5_000.0, 10_000.0),
    *(30_000.0, 60_000.0, 300_000.0, 1_800_000.0, 7_200_000.0),
)
_SHORTEST_MS: Final = 1
_SHORT_MS: Final = 1_000
_LONG_MS: Final = 7_200_000
_STEP_MS: Final = 100
# The places of durations in the list of bounds, so that none is searched for: of those up to a
# second by milliseconds, of longer ones, whose bounds are multiples of it, by steps.
_SHORT: Final = bytes([bisect_left(BOUNDS_MS, ms) for ms in range(_SHORT_MS + 1)])
_LONG: Final = bytes([bisect_left(BOUNDS_MS, ms) for ms in range(0, _LONG_MS + _STEP_MS, _STEP_MS)])


def place_of(elapsed_ms: i64) -> i64:
    """The place of the first bound that the duration does not exceed."""
    if elapsed_ms <= _SHORT_MS:
        return _SHORT[elapsed_ms]
    if elapsed_ms <= _LONG_MS:
        return _LONG[(elapsed_ms + _STEP_MS - 1) // _STEP_MS]
    return len(BOUNDS_MS)


class Histogram:
    """Durations by bound. ``sum_ms``: of all."""

    def __init__(self) -> None:
        self.sum_ms: i64 = 0
        # Most durations are the shortest ones: these are counted without an object.
        self._shortest: i64 = 0
        self._counts: list[int] = [0] * (len(BOUNDS_MS) + 1)

    def add(self, elapsed_ms: i64) -> None:
        """Count one duration."""
        self.sum_ms += elapsed_ms
        if elapsed_ms <= _SHORTEST_MS:
            self._shortest += 1
        else:
            at = place_of(elapsed_ms)
            counts = self._counts
            counts[at] = counts[at] + 1

    def counts(self) -> list[int]:
        """How many durations are up to each bound and above the one before; the last: above all."""
        return [int(self._shortest), *self._counts[1:]]

    def clear(self) -> None:
        """Count from zero."""
        self.sum_ms = self._shortest = 0
        self._counts = [0] * len(self._counts)


def quantile_ms(counts: list[int], share: float) -> float:
    """The duration that this share of those counted does not exceed: within the bounds of its
    bucket in proportion, the last bound at most, and 0 if nothing is counted."""
    rank = share * sum(counts)
    if rank == 0:
        return 0.0
    lower_ms, below = 0.0, 0
    for place, bound_ms in enumerate(BOUNDS_MS):
        count = counts[place]
        if below + count >= rank:
            return lower_ms + (bound_ms - lower_ms) * (rank - below) / count
        lower_ms, below = bound_ms, below + count
    return lower_ms
