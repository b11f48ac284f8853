"""What becomes of the jobs of a leaving node, one by one.

1. A queued job moves to another node, which is asked to confirm it.
2. About any other job its other holders are asked. What this node alone waits for, the end of a
   DELAY or of a backoff, one of them takes over.
3. Jobs with RETRY 0 move without a confirmation.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.adding.replication import life_s
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.getting.federation import Federation
from disque_tx.core.healing.healing import Healing
from disque_tx.core.jobs.job import BACKOFF, DELAYED, NOWHERE, RESUMING, Job
from disque_tx.core.leaving.confirmations import QUEUE, Confirmations, Promise
from disque_tx.core.leaving.moving import Moving
from disque_tx.core.queues.endings import MOVED
from disque_tx.core.redelivery.replacements import Replacements
from disque_tx.core.state.state import State
from disque_tx.messages import handover
from disque_tx.messages.bus import JobCopy, JobSignal
from disque_tx.messages.bustypes import CAN_HAND_OVER, ENQUEUE
from disque_tx.messages.handover import KEEP
from disque_tx.messages.holders import AGAIN
from disque_tx.messages.limits import U32_MAX
from disque_tx.messages.nodes import FAIL, NodeEntry
from disque_tx.messages.records import BCAST_QUEUED, BCAST_WILLQUEUE, DELIVERED

#: A wait that is over so soon is not worth handing over.
_SOON_MS: Final = 1_000


class Giving:
    """``moved``, ``asked``: jobs that were sent, and asked about, in this part of a walk.
    ``lacking``: jobs that have too few copies elsewhere, in this walk."""

    def __init__(
        self,
        state: State,
        confirmations: Confirmations,
        delivery: Delivery,
        federation: Federation,
        healing: Healing,
        replacements: Replacements,
    ) -> None:
        self.moved: i64 = 0
        self.asked: i64 = 0
        self.lacking: i64 = 0
        self.moving = Moving(state, delivery, federation, healing.shortages)
        self._turn = state.turn
        self._jobs = state.jobs
        self._queues = state.queues
        self._peers = state.peers
        self._endings = state.endings
        self._unconfirmed = state.unconfirmed
        self._delivery = delivery
        self._shortages = healing.shortages
        self._repairs = healing.repairs
        self._confirmations = confirmations
        self._replacements = replacements

    def begin_part(self) -> None:
        """A part of a walk begins."""
        self.moved = 0
        self.asked = 0
        self.moving.begin_part()

    def queued(self, job: Job) -> None:
        """A job is in a queue: the oldest job there goes to another node."""
        queue = self._queues.get(job.queue)
        oldest = queue.jobs.first() if queue is not None else None
        if queue is None or oldest is None or self._is_busy(oldest):
            return
        receiver = self.moving.receiver(oldest)
        moved = self.moving.move(queue, receiver) if receiver is not None else None
        if moved is None:
            return
        self.moved += 1
        if moved.retry_s == 0:
            self._confirmations.count()
            return
        if receiver is not None:
            self._confirmations.promises[moved.id] = Promise(receiver.id, QUEUE)
        holders = self.moving.confirming(moved, receiver)
        if holders:
            self._confirmations.ask(moved, holders)

    def delayed_once(self, job: Job) -> None:
        """A job with RETRY 0 that waits for its DELAY goes to another node, which waits on."""
        left_ms = job.qtime_ms - self._turn.now_ms
        if left_ms < _SOON_MS:
            return
        able = self.moving.holders(job) or self.moving.able
        if not able:
            return
        receiver = able[0]
        self.moved += 1
        self._peers.copy(receiver.id, JobCopy(job, life_s(job, self._turn.now_ms)), AGAIN)
        self._order(job, receiver, left_ms)
        self._confirmations.count()
        job.flags |= DELIVERED
        self._endings.will_end(job, MOVED)
        self._unconfirmed.left(job.id)
        self._jobs.discard(job)

    def _order(self, job: Job, receiver: NodeEntry, left_ms: i64) -> None:
        """Have a node wait for the rest of the job's DELAY; whole seconds, not fewer."""
        seconds = min((left_ms + 999) // 1000, U32_MAX)
        self._peers.send_once(receiver, JobSignal(ENQUEUE, job.id, seconds))

    def other(self, job: Job) -> None:
        """A job that is not in a queue here: others have it, or are to have it."""
        if self._is_busy(job):
            return
        promises = self._confirmations.promises
        promise = promises.get(job.id) if promises else None
        if promise is not None:
            self._remind(job, promise)
            return
        successor: NodeEntry | None = None
        due_ms: i64 = 0
        what: i64 = KEEP
        if job.place == DELAYED or job.place == BACKOFF:
            due_ms = job.qtime_ms
            if due_ms - self._turn.now_ms < _SOON_MS:
                return
            what = handover.DELAY if job.place == DELAYED else handover.BACKOFF
            successor = self._successor(job, what)
            if successor is None:
                self.lacking += 1
                return
        holders = self.moving.confirming(job, successor)
        if not holders or self._shortages.of(job) is not None:
            self.lacking += 1
            return
        self.asked += 1
        if successor is not None:
            promises[job.id] = Promise(successor.id, what, due_ms)
            self._hand_over(job, successor, due_ms)
        self._confirmations.ask(job, holders)

    def _remind(self, job: Job, promise: Promise) -> None:
        """Another node has not confirmed yet what it is to do with the job."""
        entry = self._peers.entry(promise.receiver)
        if entry is None or entry.flags & FAIL or promise.receiver not in job.nodes:
            self._confirmations.take_back(job, promise)
        elif entry in self.moving.holders(job):
            holders = self.moving.confirming(job, entry)
            if holders:
                self.asked += 1
                self._confirmations.ask(job, holders)

    def _is_busy(self, job: Job) -> bool:
        """Whether something else is being done with the job, or will be soon."""
        if job.id in self._confirmations.pending or job.id in self._repairs.by_job:
            return True
        return job.place == RESUMING or self._replacements.is_pending(job)

    def _successor(self, job: Job, what: i64) -> NodeEntry | None:
        """A holder that can wait in the place of this node: for a DELAY, an original can, too."""
        holders = self.moving.holders(job)
        for entry in holders:
            if entry.link is not None and entry.link.features & CAN_HAND_OVER:
                return entry
        return holders[0] if holders and what == handover.DELAY else None

    def _hand_over(self, job: Job, successor: NodeEntry, due_ms: i64) -> None:
        """Another node waits from now on; this one would queue the job a RETRY after that."""
        link = successor.link
        if link is not None and not link.features & CAN_HAND_OVER:
            self._order(job, successor, due_ms - self._turn.now_ms)
        self._jobs.set_whereabouts(job, NOWHERE)
        job.flags |= BCAST_QUEUED | BCAST_WILLQUEUE
        job.qtime_ms = self._delivery.requeue_ms(job, due_ms)
        self._jobs.reschedule(job)
