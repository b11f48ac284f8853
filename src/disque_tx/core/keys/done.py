"""Jobs that had keys and are done: what a node tells others whose knowledge is older.

A node that was away comes back with keys of jobs that ended meanwhile. Who knows that they are done
answers so for as long as it can remember. It remembers a bounded number; the oldest are forgotten
first. What is forgotten is found out by asking who holds the jobs (see ``existence``).
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.memory import Memory

#: Jobs that are remembered.
DONE_MAX: Final = 50_000
#: Bytes for one.
DONE_BYTES: Final = 200


class DoneJobs:
    """IDs of jobs that are done for certain, in the order in which that became known."""

    __slots__ = ("_memory", "_since_ms")

    def __init__(self, memory: Memory) -> None:
        self._memory: Memory = memory
        self._since_ms: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._since_ms)

    def has(self, job_id: bytes) -> bool:
        """Whether the job is remembered."""
        return job_id in self._since_ms

    def add(self, job_id: bytes, now_ms: i64) -> None:
        """Remember that the job is done."""
        if job_id in self._since_ms:
            return
        if len(self._since_ms) >= DONE_MAX:
            for oldest in self._since_ms:
                del self._since_ms[oldest]
                break
        else:
            self._memory.take(DONE_BYTES)
        self._since_ms[job_id] = int(now_ms)

    def since(self, at_ms: i64) -> list[bytes]:
        """Those of which that has been known since this time, or became known later."""
        return [job_id for job_id, since_ms in self._since_ms.items() if since_ms >= at_ms]

    def clear(self) -> None:
        """Forget all of them."""
        self._memory.give(DONE_BYTES * len(self._since_ms))
        self._since_ms.clear()
