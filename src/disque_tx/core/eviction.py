"""Making room above 95 % of ``maxmemory`` (client protocol, section 13.6; cluster protocol, section
12).

Policy ``acks``: random jobs are removed that are no longer needed: those that are acknowledged, and
those with RETRY 0 that were delivered. Nothing else is ever evicted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from disque_tx.core.jobs.job import Job
from disque_tx.core.node import Node
from disque_tx.messages.events import EVICTED
from disque_tx.messages.records import ACKED, DELIVERED

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
                node.outbox.record_event(EVICTED, job)
            node.delivery.remove(job)
            removals += 1
            misses = 0
        else:
            misses += 1
    return True
