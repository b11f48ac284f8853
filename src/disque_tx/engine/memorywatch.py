"""Log lines when memory crosses the thresholds at 75 and 95 % of ``maxmemory``, both ways.

Above the first one ADDJOB behaves differently, above the second one it may fail: an operator must
not have to learn that from the programs that add jobs (client protocol, section 13.6).
"""

from __future__ import annotations

from typing import Final

from disque_tx.core.memory import Memory
from disque_tx.engine.interfaces import Reports

#: Memory that goes up and down around a threshold is reported once in so many milliseconds.
PAUSE_MS: Final = 10_000
_MEANINGS: Final = (
    "below 75 %: new jobs are kept on this node again",
    "above 75 %: this node keeps no new jobs. ADDJOB places them on other nodes, and fails with"
    " NOREPL if there are too few. Let workers catch up, or raise maxmemory",
    "above 95 %: ADDJOB fails with OOM when no acknowledged job is left to be evicted. Let workers"
    " catch up, or raise maxmemory",
)


class MemoryWatch:
    """Compares the level of memory with what was last logged."""

    def __init__(self, memory: Memory, reports: Reports) -> None:
        self._memory = memory
        self._reports = reports
        self._logged = 0
        self._next_ms = 0

    def look(self, now_ms: int) -> None:
        """Log the level if it is another one; ``now_ms``: the steady clock."""
        level = int(self._memory.level())
        if level == self._logged or now_ms < self._next_ms:
            return
        self._logged = level
        self._next_ms = now_ms + PAUSE_MS
        write = self._reports.warning if level else self._reports.notice
        if not self._memory.limit:
            write("Memory is no longer limited: new jobs are kept on this node again")
            return
        used, limit = int(self._memory.used), int(self._memory.limit)
        percent = used * 100 // limit
        write(f"{percent} % of maxmemory is used ({used} of {limit} bytes), {_MEANINGS[level]}.")
