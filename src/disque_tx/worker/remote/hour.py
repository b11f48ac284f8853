"""How many jobs a worker did in the last hour, and how many failed, in minutes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

_MINUTES: Final = 60


class LastHour:
    """``seconds``: a steady clock."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        # Minute, done and failed.
        self._minutes: deque[list[int]] = deque(maxlen=_MINUTES)

    def count(self, done: int, failed: int) -> None:
        """Count jobs that have ended now."""
        minute = int(self._seconds() // 60)
        if not self._minutes or self._minutes[-1][0] != minute:
            self._minutes.append([minute, 0, 0])
        self._minutes[-1][1] += done
        self._minutes[-1][2] += failed

    def sums(self) -> tuple[int, int]:
        """Done and failed."""
        first = int(self._seconds() // 60) - _MINUTES
        recent = [row for row in self._minutes if row[0] > first]
        return sum(row[1] for row in recent), sum(row[2] for row in recent)
