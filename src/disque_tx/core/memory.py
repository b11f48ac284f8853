"""What a job costs, the levels at 75 and 95 % of ``maxmemory``, and making room above the second
one (client protocol, section 13.6; cluster protocol, section 12).

Memory is counted per job and per queue, not measured: counting is exact to repeat and costs an
addition. The constants were fitted to the size of the process, see docs/explanation/performance.md.

Policy ``acks``: random jobs are removed that are no longer needed: those that are acknowledged, and
those with RETRY 0 that were delivered. Nothing else is ever evicted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from disque_tx.core.job import Job
from disque_tx.events import EVICTED
from disque_tx.messages import ACKED, DELIVERED

if TYPE_CHECKING:
    from disque_tx.core.node import Node

#: Bytes for a job without its body, its queue's name (shared) and further nodes.
JOB_BYTES: Final = 248
#: Bytes for an empty queue without its name.
QUEUE_BYTES: Final = 600
_NODE_BYTES: Final = 16


class Memory:
    """``used``: bytes counted; ``peak``: the most ever counted; ``limit``: ``maxmemory``, 0 for
    none."""

    __slots__ = ("used", "peak", "limit")

    def __init__(self) -> None:
        self.used: i64 = 0
        self.peak: i64 = 0
        self.limit: i64 = 0

    def take(self, size: i64) -> None:
        """Count ``size`` more bytes."""
        self.used += size
        if self.used > self.peak:
            self.peak = self.used

    def give(self, size: i64) -> None:
        """Count ``size`` bytes less."""
        self.used -= size

    def level(self) -> i64:
        """0 below 75 %, 1 above it, 2 above 95 %; always 0 without a limit."""
        percent = self.limit // 100
        if self.limit == 0 or self.used <= percent * 75:
            return 0
        return 1 if self.used <= percent * 95 else 2


def job_bytes(job: Job) -> i64:
    """What a registered job costs."""
    return JOB_BYTES + job.body_bytes + _NODE_BYTES * len(job.nodes)


#: Picks in a row without success after which nothing is worth looking for.
_MISSES: Final = 10
#: Jobs removed per attempt at the most, which keeps an attempt near a millisecond.
_REMOVALS: Final = 500
_QUEUES_PER_SWEEP: Final = 100


def evictable(job: Job) -> bool:
    """Whether the job is no longer needed."""
    return job.state == ACKED or (job.retry_s == 0 and job.flags & DELIVERED != 0)


def evict(node: Node, allowed: bool, random: Callable[[], float]) -> bool:
    """Remove jobs until memory is below 95 %; ``False`` when that was not reached.

    ``allowed``: the policy is not ``noeviction``.
    """
    misses = 0
    removals = 0
    while node.memory.level() == 2:
        if not allowed or misses > _MISSES or removals >= _REMOVALS:
            return False
        job = node.jobs.table.pick(int(random() * (1 << 48)))
        if job is None:
            return node.queues.sweep(node.now_ms, _QUEUES_PER_SWEEP) > 0
        if evictable(job):
            if job.state != ACKED:
                node.totals.evicted += 1
                node.outbox.note(EVICTED, job)
            node.delivery.remove(job)
            removals += 1
            misses = 0
        else:
            misses += 1
    return True
