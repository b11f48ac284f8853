"""How late the process does its periodic work: what keeps it waits for clients, too."""

from __future__ import annotations

from collections import deque
from typing import Final

#: Later than this is a delay, and what is remembered of the delays: those of the last minute, and
#: no more than so many.
DELAY_S: Final = 1.0
_REMEMBERED_S: Final = 60.0
_REMEMBERED_MAX: Final = 120


class Delays:
    """Delays of work that is due every ``period_s`` seconds: the machine is busy, it swaps, or one
    turn took long."""

    def __init__(self) -> None:
        self._last_s: float | None = None
        #: When each ended, and how long it was.
        self._found: deque[tuple[float, float]] = deque(maxlen=_REMEMBERED_MAX)

    def ran(self, now_s: float, period_s: float) -> None:
        """The work was done now, on a clock that only goes forward."""
        if self._last_s is not None:
            late_s = now_s - self._last_s - period_s
            if late_s >= DELAY_S:
                self._found.append((now_s, late_s))
        self._last_s = now_s
        while self._found and now_s - self._found[0][0] > _REMEMBERED_S:
            self._found.popleft()

    def info(self) -> list[tuple[str, str]]:
        """How many there were in the last minute, and the longest, for INFO's CPU section."""
        longest_s = max((late_s for _, late_s in self._found), default=0.0)
        return [
            ("event_loop_delays", str(len(self._found))),
            ("event_loop_delay_seconds", f"{longest_s:.2f}"),
        ]
