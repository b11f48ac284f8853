"""``max-length`` with ``overflow drop-oldest``: the oldest jobs of a queue that is too long end.

1. The limit holds for the jobs queued at this node, however they got there: what is added, what
   comes back, what other nodes give. Clients in line are served first.
2. A job that is dropped ends as if it had been acknowledged, so that its copies end, too.
3. A queue that is far too long, because its policy is new, is shortened in slices.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.slices import SlicedTask
from disque_tx.core.delivery.acks import Acks
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.policies.settings import DROP_OLDEST
from disque_tx.core.queues.endings import DELETED
from disque_tx.core.queues.queues import Queue
from disque_tx.core.state.state import State
from disque_tx.messages import events

#: Jobs dropped per slice.
_JOBS_PER_SLICE: Final = 500


class Overflow(SlicedTask):
    """Shortens queues."""

    __slots__ = (
        "_acks",
        "_delivery",
        "_endings",
        "_left",
        "_outbox",
        "_policies",
        "_slices",
        "_totals",
        "_turn",
    )

    def __init__(self, state: State, delivery: Delivery, acks: Acks) -> None:
        self._turn = state.turn
        self._policies = state.policies
        self._outbox = state.outbox
        self._totals = state.totals
        self._slices = state.slices
        self._delivery = delivery
        self._acks = acks
        self._endings = state.endings
        self._left: i64 = 0

    def run(self) -> None:
        """Shorten the queues that became too long; what is left is done later."""
        if not self.step(self._turn.now_ms):
            self._slices.add(self)

    def step(self, now_ms: i64) -> bool:
        """Shorten them by a bounded number of jobs in all."""
        self._left = _JOBS_PER_SLICE
        overfull = self._delivery.overfull
        while overfull and self._left > 0:
            if self._shorten(overfull[len(overfull) - 1]):
                overfull.pop().overfull = False
        return not overfull

    def _shorten(self, queue: Queue) -> bool:
        """Whether the queue is short enough now."""
        policy = self._policies.of(queue.name)
        if policy is None or policy.max_length == 0 or policy.overflow != DROP_OLDEST:
            return True
        while queue.jobs.size > policy.max_length:
            if self._left == 0:
                return False
            self._left -= 1
            job = queue.jobs.first()
            assert job is not None
            self._totals.overflowed += 1
            self._outbox.record_event(events.DELETED, job, events.OVERFLOW)
            self._endings.will_end(job, DELETED)
            self._acks.end(job)
        return True
