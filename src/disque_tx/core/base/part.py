"""A part of the node: something that has deadlines, or that is forgotten with all jobs; and the
time of the turn, at which everything in it happens.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

#: A node that has no turn for so long stood still: else there are several in a second.
STILL_MS: Final = 1_000
#: What a part returns that has nothing to do at any time.
NEVER_MS: Final = -1


class Turn:
    """``now_ms``: a steady clock, on which all deadlines lie. ``wall_us``: the time of day, in
    microseconds since 1970, of which creation times and expiry times on disk are made.
    ``woken_ms``: when the first turn began after :data:`STILL_MS` without one, 0 for never."""

    __slots__ = ("now_ms", "wall_us", "woken_ms")

    def __init__(self) -> None:
        self.now_ms: i64 = 0
        self.wall_us: i64 = 0
        self.woken_ms: i64 = 0

    def begin(self, now_ms: i64, wall_us: i64) -> None:
        """A turn begins at this time."""
        if now_ms - self.now_ms >= STILL_MS and self.now_ms > 0:
            self.woken_ms = now_ms
        self.now_ms = now_ms
        self.wall_us = wall_us


class Part:
    """``Node`` has one list of its parts; a new one is entered there, in one line. ``next_part``:
    which has its turn after this one (see ``parts``)."""

    next_part: Part | None = None

    def run_due(self) -> None:
        """Do what is due by now, a bounded part of it; the rest stays due."""

    def next_due_ms(self) -> i64:
        """When :meth:`run_due` has something to do next, on the steady clock, -1 for never."""
        return NEVER_MS

    def forget_all(self) -> None:
        """All jobs and queues are about to be forgotten, or are gone."""
