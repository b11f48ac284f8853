"""Demand of one queue: which nodes to ask for jobs, when, and for how many.

Cluster protocol, sections 11.1 to 11.3. All times are milliseconds of the steady clock.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

#: For how long a node that gave jobs is asked first.
GIVER_MS: Final = 5_000
_WINDOW_MS: Final = 5_000
_PERIOD_MS: Final = 1_000
_INTERVAL_MS_MIN: Final = 50
#: First delay between two requests, how often it doubles, and the longest one.
_ALL_MS: Final = 2_000
_ALL_DOUBLINGS: Final = 4
_ALL_MS_MAX: Final = 30_000
_GIVERS_MS: Final = 25
_GIVERS_DOUBLINGS: Final = 7
_GIVERS_MS_MAX: Final = 2_000
#: Jobs asked of one giver.
_REQUEST_MIN: Final = 5
_REQUEST_MAX: Final = 100


class QueueDemand:
    """``givers``: node ID → when it last gave. ``asked_all_ms``, ``asked_givers_ms``: the last
    requests, -1 before the first; ``all_attempts``, ``givers_attempts``: how many in a row."""

    __slots__ = (
        "givers",
        "asked_all_ms",
        "all_attempts",
        "asked_givers_ms",
        "givers_attempts",
        "_current_ms",
        "_current",
        "_previous_ms",
        "_previous",
    )

    def __init__(self, now_ms: i64) -> None:
        self.givers: dict[bytes, int] = {}
        self.asked_all_ms: i64 = -1
        self.all_attempts: i64 = 0
        self.asked_givers_ms: i64 = -1
        self.givers_attempts: i64 = 0
        self._current_ms: i64 = now_ms
        self._current: i64 = 0
        self._previous_ms: i64 = now_ms
        self._previous: i64 = 0

    def note(self, giver: bytes, now_ms: i64) -> None:
        """A job came."""
        if giver not in self.givers:
            self.all_attempts = 0
        self.givers[giver] = now_ms
        self.givers_attempts = 0
        if now_ms - self._current_ms > _PERIOD_MS:
            self._previous_ms = self._current_ms
            self._previous = self._current
            self._current_ms = now_ms
            self._current = 0
        self._current += 1

    def rate(self, now_ms: i64) -> i64:
        """Jobs per second, rounded up; 0 when none came for five seconds."""
        if now_ms - self._current_ms > _WINDOW_MS:
            return 0
        interval_ms = max(now_ms - self._previous_ms, _INTERVAL_MS_MIN)
        return ((self._previous + self._current) * 1000 + interval_ms - 1) // interval_ms

    def recent_givers(self, now_ms: i64) -> list[bytes]:
        """Who gave within the last five seconds; the others are forgotten."""
        for giver in [g for g, at_ms in self.givers.items() if now_ms - at_ms > GIVER_MS]:
            del self.givers[giver]
        return list(self.givers)

    def request(self, givers: i64, now_ms: i64) -> i64:
        """How many jobs to ask of each giver."""
        if givers == 0:
            return _REQUEST_MIN
        return max(_REQUEST_MIN, min(self.rate(now_ms) // givers, _REQUEST_MAX))

    def _all_pause_ms(self) -> i64:
        doublings = min(self.all_attempts, _ALL_DOUBLINGS)
        return min(_ALL_MS * (i64(1) << doublings), _ALL_MS_MAX)

    def _givers_pause_ms(self) -> i64:
        doublings = min(self.givers_attempts, _GIVERS_DOUBLINGS)
        return min(_GIVERS_MS * (i64(1) << doublings), _GIVERS_MS_MAX)

    def may_ask_all(self, now_ms: i64) -> bool:
        """Whether it is time to ask all nodes."""
        return self.asked_all_ms < 0 or now_ms - self.asked_all_ms > self._all_pause_ms()

    def may_ask_givers(self, now_ms: i64) -> bool:
        """Whether it is time to ask the givers again."""
        return self.asked_givers_ms < 0 or now_ms - self.asked_givers_ms > self._givers_pause_ms()

    def next_ms(self, now_ms: i64) -> i64:
        """When a node may be asked next, if all goes on as it is; whoever is a giver was asked
        before."""
        at_ms = now_ms + 1
        if self.asked_all_ms >= 0:
            at_ms = self.asked_all_ms + self._all_pause_ms() + 1
        if self.givers:
            at_ms = min(at_ms, self.asked_givers_ms + self._givers_pause_ms() + 1)
        return max(at_ms, now_ms + 1)
