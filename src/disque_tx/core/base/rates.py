"""How many jobs per second enter and leave a queue: the mean of the last ten seconds.

Three marks of the counters, five seconds apart, are moved on when the queue is used or looked at;
between two marks the flow is taken to be even.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

#: Between two marks, and for how long a mean is taken.
MARK_MS: Final = 5_000
_MEAN_MS: Final = 2 * MARK_MS


class Rates:
    """``marked_ms``: when the latest mark was set."""

    __slots__ = ("_in_0", "_in_1", "_in_2", "_out_0", "_out_1", "_out_2", "marked_ms")

    def __init__(self, jobs_in: i64, jobs_out: i64, marked_ms: i64) -> None:
        self.marked_ms: i64 = marked_ms
        self._in_0: i64 = jobs_in
        self._in_1: i64 = 0
        self._in_2: i64 = 0
        self._out_0: i64 = jobs_out
        self._out_1: i64 = 0
        self._out_2: i64 = 0

    def move(self, jobs_in: i64, jobs_out: i64, now_ms: i64) -> None:
        """Set the marks that are due; the counters have not changed since the first of them."""
        marks: i64 = min(3, (now_ms - self.marked_ms) // MARK_MS)
        for _ in range(marks):
            self._in_2, self._in_1, self._in_0 = self._in_1, self._in_0, jobs_in
            self._out_2, self._out_1, self._out_0 = self._out_1, self._out_0, jobs_out
        self.marked_ms = now_ms - (now_ms - self.marked_ms) % MARK_MS

    def in_milli(self, jobs_in: i64, now_ms: i64) -> i64:
        """Jobs in per 1,000 seconds; the marks are set."""
        left_ms = MARK_MS - (now_ms - self.marked_ms)
        whole = (jobs_in - self._in_1) * MARK_MS + (self._in_1 - self._in_2) * left_ms
        return whole * 1_000_000 // (_MEAN_MS * MARK_MS)

    def out_milli(self, jobs_out: i64, now_ms: i64) -> i64:
        """Jobs out per 1,000 seconds; the marks are set."""
        left_ms = MARK_MS - (now_ms - self.marked_ms)
        whole = (jobs_out - self._out_1) * MARK_MS + (self._out_1 - self._out_2) * left_ms
        return whole * 1_000_000 // (_MEAN_MS * MARK_MS)
