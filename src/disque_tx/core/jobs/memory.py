"""What a job costs, and the levels at 75 and 95 % of ``maxmemory`` (client protocol, section 13.6;
cluster protocol, section 12).

Memory is counted per job and per queue, not measured: counting is exact to repeat and costs an
addition. The constants were fitted to the size of the process, see docs/explanation/performance.md.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.jobs.job import Job

#: Bytes for a job without its body, its queue's name (shared) and further nodes.
JOB_BYTES: Final = 248
#: Bytes for an empty queue without its name.
QUEUE_BYTES: Final = 600
_NODE_BYTES: Final = 16
#: The level above 95 %.
FULL: Final = 2


class Memory:
    """``used``: bytes counted; ``peak``: the most ever counted; ``limit``: ``maxmemory``, 0 for
    none."""

    __slots__ = ("used", "peak", "limit")

    def __init__(self) -> None:
        self.used: i64 = 0
        self.peak: i64 = 0
        self.limit: i64 = 0

    def add(self, size: i64) -> None:
        """Count ``size`` more bytes."""
        self.used += size
        if self.used > self.peak:
            self.peak = self.used

    def subtract(self, size: i64) -> None:
        """Count ``size`` bytes less."""
        self.used -= size

    def level(self) -> i64:
        """0 below 75 %, 1 above it, 2 above 95 %; always 0 without a limit."""
        percent = self.limit // 100
        if self.limit == 0 or self.used <= percent * 75:
            return 0
        return 1 if self.used <= percent * 95 else 2

    def is_full(self) -> bool:
        """Whether the level is 2."""
        return self.limit != 0 and self.level() == FULL


def job_bytes(job: Job) -> i64:
    """What a registered job costs."""
    return JOB_BYTES + job.body_bytes + _NODE_BYTES * len(job.nodes)
