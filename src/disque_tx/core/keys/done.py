"""Jobs that had keys and are done: what a node tells others whose knowledge is older.

A node that was away comes back with keys of jobs that ended meanwhile. Who knows that they are done
answers so for as long as it can remember. It remembers a bounded number, in two halves: when the
newer one is full, the older one is forgotten, so that neither takes a search. What is forgotten is
found out by asking who holds the jobs (see ``existence``).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.jobs.memory import Memory

#: Jobs that are remembered at the most; half of them at the least.
DONE_MAX: Final = 50_000
#: Bytes for one.
DONE_BYTES: Final = 200


class DoneJobs:
    """IDs of jobs that are done for certain, in the order in which that became known."""

    __slots__ = ("_memory", "_newer", "_older")

    def __init__(self, memory: Memory) -> None:
        self._memory: Memory = memory
        # Since when, by ID.
        self._older: dict[bytes, int] = {}
        self._newer: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._older) + len(self._newer)

    def has(self, job_id: bytes) -> bool:
        """Whether the job is remembered."""
        return job_id in self._newer or job_id in self._older

    def add(self, job_id: bytes, now_ms: i64) -> None:
        """Remember that the job is done."""
        if job_id in self._newer:
            return  # it may be among the older ones, too: looking there takes as long as all this
        if len(self._newer) >= DONE_MAX // 2:
            self._memory.subtract(DONE_BYTES * len(self._older))
            self._older = self._newer
            self._newer = {}
        self._memory.add(DONE_BYTES)
        self._newer[job_id] = int(now_ms)

    def since(self, at_ms: i64) -> list[bytes]:
        """IDs of the jobs that became known as done at this time or later."""
        found: list[bytes] = []
        for half in (self._older, self._newer):
            found += [job_id for job_id, since_ms in half.items() if since_ms >= at_ms]
        return found

    def clear(self) -> None:
        """Forget all of them."""
        self._memory.subtract(DONE_BYTES * len(self))
        self._older.clear()
        self._newer.clear()
