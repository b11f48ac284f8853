"""How jobs get into queues and out of them (cluster protocol, sections 10.4 and 10.5).

1. A job is queued at once, when its delay is over, when its requeue time has come, or on demand.
2. The first queueing by the node that created the job counts nothing; every later one counts as an
   additional delivery, or as a NACK.
3. A job with RETRY 0 is never queued again once it was delivered: that is its promise.
4. Fetching does not touch the requeue clock, which runs from the moment of queueing; delivery
   restarts it where the policy of the queue says so (``retry-from``).
5. Half a second before a job is queued again the other holders are asked whether they have it in
   their queues; when it is queued again they get QUEUED, and wait for another RETRY.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.client import Client
from disque_tx.core.delivery.earlycounts import EarlyCounts
from disque_tx.core.jobs.job import HOLD, QUEUE, RESUMING, Job
from disque_tx.core.policies.settings import DROP_OLDEST
from disque_tx.core.queues import endings
from disque_tx.core.queues.queues import PAUSE_IN, Queue
from disque_tx.core.state.state import State
from disque_tx.core.state.store import WILLQUEUE_ADVANCE_MS
from disque_tx.errors import CommandError
from disque_tx.messages import bustypes, events
from disque_tx.messages.bus import BY_RETRY, INCR_DELIV, INCR_NACKS, JobSignal
from disque_tx.messages.events import EventSink
from disque_tx.messages.limits import COUNTER_MAX
from disque_tx.messages.records import (
    ACTIVE,
    BCAST_QUEUED,
    BCAST_WILLQUEUE,
    DELIVERED,
    QUEUED,
    WAIT_REPL,
    JobRecord,
)

#: Why an ADDJOB fails whose job disappears while it waits.
REMOVED: Final = "job removed (expired?) before the requested replication level was achieved"
#: Requeue times get a uniform jitter of this width around them, so that nodes rarely collide.
_JITTER_MS: Final = 500


def worked_ms(job: Job, now_ms: i64) -> i64:
    """How long ago the job was delivered; -1 if it was not delivered here last."""
    if job.state != ACTIVE or not job.flags & DELIVERED or job.moved_ms == 0 or job.backoff:
        return -1
    return now_ms - job.moved_ms


class Delivery:
    """Queueing and handing out.

    ``early_counts``: counts that came with jobs from other nodes.
    ``emptied``: queues that import jobs and whose last job was taken, until this is read.
    ``overfull``: queues that may be longer than their policy allows, until they are shortened.
    """

    def __init__(self, state: State) -> None:
        self._turn = state.turn
        self._jobs = state.jobs
        self._queues = state.queues
        self._waiters = state.waiters
        self._outbox = state.outbox
        self._peers = state.peers
        self._random = state.random
        self._totals = state.totals
        self._flows = state.flows
        self._troubles = state.troubles
        self._reasons = state.reasons
        self._counters = state.counters
        self._endings = state.endings
        self._policies = state.policies
        self._limits = state.limits
        self._matching = state.matching
        self.early_counts = EarlyCounts(state.turn)
        self.emptied: list[Queue] = []
        self.overfull: list[Queue] = []

    def requeue_ms(self, job: Job, now_ms: i64) -> i64:
        """The next requeue time of a job with RETRY > 0, counted from ``now_ms``."""
        return now_ms + job.retry_s * 1000 + int(self._random() * _JITTER_MS) - _JITTER_MS // 2

    def may_queue(self, job: Job) -> bool:
        """Whether the job can go from this node's hands into its queue."""
        if job.state != ACTIVE or job.held:
            return False
        return job.retry_s > 0 or not job.flags & DELIVERED

    def first_queueing(self, job: Job) -> None:
        """Put a job that is not registered yet into its queue; nothing is counted."""
        job.flags |= BCAST_QUEUED
        self._put(job)

    def enqueue(self, job: Job, cause: i64) -> bool:
        """Put a registered job into its queue; ``False`` when it may not go there.

        ``cause``: a reason of :mod:`disque_tx.messages.events`.
        """
        if not self.may_queue(job):
            return False
        if self._outbox.events is not None:
            self._record_queued(self._outbox.events, job, cause)
        if cause == events.BY_NACK:
            self._totals.nacked += 1
            self.came_back(job, INCR_NACKS)
            self.send_queued(job, INCR_NACKS)
        elif job.flags & BCAST_QUEUED:
            self._totals.requeued += 1
            self.count(job, INCR_DELIV)
            if cause == events.BY_RETRY:
                self._failed(job, INCR_DELIV)
            self.send_queued(job, INCR_DELIV, cause == events.BY_RETRY)
        else:
            job.flags |= BCAST_QUEUED
        self._put(job)
        job.retried = cause == events.BY_RETRY
        self._jobs.reschedule(job)
        return True

    def enqueue_counted(self, job: Job, cause: i64) -> None:
        """Put an active job, whose return has been counted and made known, into its queue."""
        kind = events.REQUEUED if job.flags & BCAST_QUEUED else events.QUEUED
        self._outbox.record_event(kind, job, cause)
        job.flags |= BCAST_QUEUED
        if cause == events.BY_RETRY:
            self._totals.requeued += 1
        if cause != events.BY_NACK and cause != events.BY_RETRY:
            self.send_queued(job, 0)
        self._put(job)
        job.retried = cause == events.BY_RETRY
        self._jobs.reschedule(job)

    def _record_queued(self, sink: EventSink, job: Job, cause: i64) -> None:
        if cause == events.BY_NACK:
            sink.job(events.NACKED, job, events.NO_REASON, 0, worked_ms(job, self._turn.now_ms))
        kind = events.REQUEUED if job.flags & BCAST_QUEUED else events.QUEUED
        sink.job(kind, job, cause, 0, -1)

    def count(self, job: Job, why: i64) -> None:
        """Count a delivery to come: ``INCR_NACKS`` or ``INCR_DELIV``, or both."""
        if why & INCR_NACKS:
            job.nacks = min(job.nacks + 1, COUNTER_MAX)
        if why & INCR_DELIV:
            job.deliveries = min(job.deliveries + 1, COUNTER_MAX)
        if why & (INCR_NACKS | INCR_DELIV):
            self._counters.changed(job)

    def came_back(self, job: Job, why: i64) -> None:
        """A delivery by this node, or one that it watches over, has failed."""
        self.count(job, why)
        self._failed(job, why)

    def _failed(self, job: Job, why: i64) -> None:
        self._flows.failed(job.queue)
        self._troubles.failed(job, self._reasons.get(job.id), why == INCR_DELIV)

    def merge_counters(self, job: Job, record: JobRecord) -> None:
        """Merge counters of a job that another node gives and that is known here: they may include
        deliveries and NACKs by nodes that do not know that this one has the job, too."""
        if record.nacks > job.nacks or record.deliveries > job.deliveries:
            self.early_counts.came(
                job.id,
                max(0, record.nacks - job.nacks),
                max(0, record.deliveries - job.deliveries),
            )
            job.nacks = max(job.nacks, record.nacks)
            job.deliveries = max(job.deliveries, record.deliveries)
            self._counters.changed(job)

    def send_queued(self, job: Job, why: i64, by_retry: bool = False) -> None:
        """Notify the other holders that this node has the job in its queue."""
        for node_id in job.nodes:
            reason = BY_RETRY if by_retry and self._peers.is_ours(node_id) else 0
            message = JobSignal(bustypes.QUEUED, job.id, reason)
            message.mflags = why
            self._peers.send(node_id, message)

    def _put(self, job: Job) -> None:
        now_ms = self._turn.now_ms
        job.step(QUEUE)
        self._totals.queued += 1
        self._jobs.count_released(job)
        job.moved_ms = now_ms
        if job.retry_s > 0:
            job.flags |= BCAST_WILLQUEUE
            job.qtime_ms = self.requeue_ms(job, now_ms)
        else:
            job.qtime_ms = 0
        queue = self._queues.obtain(job.queue, now_ms)
        job.queue = queue.name  # one copy of the name for all jobs of the queue
        queue.jobs.add(job)
        if not queue.noted:
            self._queues.note(queue)
        queue.used_ms = now_ms
        if now_ms >= queue.mark_ms:
            queue.mark(now_ms)
        queue.jobs_in += 1
        if queue.waiters or self._matching.active or queue.wanted is not None:
            self._waiters.note_ready(queue)
        if self._policies.bounded:
            self._check_length(queue)

    def _check_length(self, queue: Queue) -> None:
        """Whether the queue is too long is looked at once its clients are served."""
        policy = self._policies.of(queue.name)
        if policy is not None and policy.overflow == DROP_OLDEST and not queue.overfull:
            if 0 < policy.max_length < queue.jobs.size:
                queue.overfull = True
                self.overfull.append(queue)
                self._waiters.look_at(queue)

    def dequeue(self, job: Job) -> None:
        """Take a queued job out of its queue; its requeue clock runs on."""
        job.step(HOLD)
        self._unqueue(job)

    def _unqueue(self, job: Job) -> None:
        queue = self._queues.get(job.queue)
        assert queue is not None
        queue.jobs.remove(job)
        if not queue.noted:
            self._queues.note(queue)
        self._totals.queued -= 1

    def fetch(self, queue: Queue) -> Job | None:
        """Take the oldest job out of a queue, to be given to a client or another node."""
        now_ms = self._turn.now_ms
        if not queue.noted:
            self._queues.note(queue)
        job = queue.jobs.pop()
        while job is not None and job.expire_ms <= now_ms:
            job.step(HOLD)
            self._totals.queued -= 1
            self._expired(job)
            self._jobs.discard(job)
            job = queue.jobs.pop()
        if job is None:
            return None
        job.step(HOLD)
        self._totals.queued -= 1
        job.flags |= DELIVERED
        queue.used_ms = now_ms
        if now_ms >= queue.mark_ms:
            queue.mark(now_ms)
        queue.jobs_out += 1
        queue.fetched_ms = now_ms
        standing = queue.standing
        if standing is not None:
            if standing.surplus > 0:
                standing.surplus -= 1
            self._waiters.note_demand(queue)
        if queue.imports is not None and queue.jobs.size == 0:
            self.emptied.append(queue)
        return job

    def delivered(self, client: Client, job: Job) -> None:
        """A fetched job goes to a client."""
        now_ms = self._turn.now_ms
        self._totals.delivered += 1
        self._jobs.count_delivered(job)
        waited_ms = now_ms - job.moved_ms
        self._flows.delivered(job.queue, waited_ms)
        if self._outbox.events is not None:
            self._outbox.events.job(events.DELIVERED, job, 0, client.id, waited_ms)
        job.moved_ms = now_ms
        if self._policies.delivering:
            self._follow_policy(job)

    def _follow_policy(self, job: Job) -> None:
        """``rate`` counts the delivery; with ``retry-from delivery`` RETRY begins with it, at all
        holders."""
        if self._policies.limited:
            self._limits.delivered(job.queue, self._turn.now_ms)
        policy = self._policies.of(job.queue)
        if policy is not None and policy.retry_from_delivery and job.retry_s > 0:
            self.postpone(job)
            self._peers.notify_holders(job, bustypes.WORKING)

    def remove(self, job: Job) -> None:
        """Forget a job, wherever it is; a client that waits for its copies gets an error."""
        if job.state == QUEUED:
            self._unqueue(job)
        elif job.state == WAIT_REPL:
            self.take_back(job, CommandError("NOREPL", REMOVED))
            return
        self._jobs.discard(job)

    def take_back(self, job: Job, error: CommandError) -> None:
        """Forget a job that waits for copies, here and, as far as possible, on the nodes that got
        one; ``error`` is for its client."""
        self._totals.dropped += 1
        self._outbox.record_event(events.DELETED, job, events.NOT_REPLICATED)
        self._peers.signal_holders(job, bustypes.DELJOB, 0)
        self._jobs.discard(job)
        self._waiters.copies_failed(job, error)

    def awake(self, job: Job) -> None:
        """Do what is due for an active or queued job that the schedule let out (section 10.5)."""
        now_ms = self._turn.now_ms
        if job.expire_ms <= now_ms:
            if job.state != WAIT_REPL:
                self._expired(job)
            self.remove(job)
            return
        self.announce(job)
        if job.qtime_ms != 0 and job.qtime_ms <= now_ms:
            if job.place == RESUMING:
                self.enqueue_counted(job, events.BY_RESTART)
                return
            if job.state == QUEUED or (job.retry_s > 0 and self.is_paused_in(job)):
                self.postpone(job)
                return
            again = job.flags & BCAST_QUEUED
            if self.enqueue(job, events.BY_RETRY if again else events.BY_DELAY):
                if not again:
                    # A restart must not take it for one whose delay is still running.
                    self._jobs.record(job)
                return
            job.qtime_ms = 0
        self._jobs.reschedule(job)

    def announce(self, job: Job) -> None:
        """Ask the other holders of an active job that is nearly due whether they have it."""
        if job.flags & BCAST_WILLQUEUE and job.qtime_ms - WILLQUEUE_ADVANCE_MS <= self._turn.now_ms:
            job.flags &= ~BCAST_WILLQUEUE
            if job.state == ACTIVE:
                self._peers.notify_holders(job, bustypes.WILLQUEUE)

    def _expired(self, job: Job) -> None:
        self._totals.expired += 1
        self._outbox.record_event(events.EXPIRED, job)
        self._endings.will_end(job, endings.EXPIRED)

    def postpone(self, job: Job) -> None:
        """Let a job with RETRY > 0 wait for another RETRY before it is queued again."""
        job.flags |= BCAST_WILLQUEUE
        job.qtime_ms = self.requeue_ms(job, self._turn.now_ms)
        job.retried = False
        self._jobs.reschedule(job)

    def is_paused_in(self, job: Job) -> bool:
        """Whether the queue of the job takes none at present."""
        return self._queues.paused(job.queue) & PAUSE_IN != 0
