"""How jobs get into queues and out of them (cluster protocol, sections 10.4 and 10.5).

1. A job is queued at once, when its delay is over, when its requeue time has come, or on demand.
2. The first queueing by the node that created the job counts nothing; every later one counts as an
   additional delivery, or as a NACK.
3. A job with RETRY 0 is never queued again once it was delivered: that is its promise.
4. Fetching does not touch the requeue clock, which runs from the moment of queueing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from disque_tx.core.client import BLOCKED_GETJOB, REPLY_OFF, Client
from disque_tx.core.job import HOLD, QUEUE, Job
from disque_tx.core.outbox import Outbox
from disque_tx.core.queues import PAUSE_IN, PAUSE_OUT, Queue, Queues
from disque_tx.core.store import WILLQUEUE_ADVANCE_MS, JobStore
from disque_tx.core.waiters import Waiters
from disque_tx.messages import (
    ACTIVE,
    BCAST_QUEUED,
    BCAST_WILLQUEUE,
    DELIVERED,
    QUEUED,
    JobRecord,
)

_COUNTER_MAX: Final = 65535
#: Requeue times get a uniform jitter of this width around them, so that nodes rarely collide.
_JITTER_MS: Final = 500


class Delivery:
    """Queueing and handing out. ``random``: a number in [0, 1) per call."""

    def __init__(
        self,
        jobs: JobStore,
        queues: Queues,
        waiters: Waiters,
        outbox: Outbox,
        random: Callable[[], float],
    ) -> None:
        self._jobs = jobs
        self._queues = queues
        self._waiters = waiters
        self._outbox = outbox
        self._random = random

    def requeue_ms(self, job: Job, now_ms: i64) -> i64:
        """The next requeue time of a job with RETRY > 0, counted from ``now_ms``."""
        return now_ms + job.retry_s * 1000 + int(self._random() * _JITTER_MS) - _JITTER_MS // 2

    def may_queue(self, job: Job) -> bool:
        """Whether the job can go from this node's hands into its queue."""
        return job.state == ACTIVE and (job.retry_s > 0 or not job.flags & DELIVERED)

    def first_queueing(self, job: Job, now_ms: i64) -> None:
        """Put a job that is not registered yet into its queue; nothing is counted."""
        job.flags |= BCAST_QUEUED
        self._put(job, now_ms)

    def enqueue(self, job: Job, nack: bool, now_ms: i64) -> bool:
        """Put a registered job into its queue; ``False`` when it may not go there."""
        if not self.may_queue(job):
            return False
        if nack:
            job.nacks = min(job.nacks + 1, _COUNTER_MAX)
        elif job.flags & BCAST_QUEUED:
            job.deliveries = min(job.deliveries + 1, _COUNTER_MAX)
        else:
            job.flags |= BCAST_QUEUED
        self._put(job, now_ms)
        self._jobs.reschedule(job)
        return True

    def _put(self, job: Job, now_ms: i64) -> None:
        job.step(QUEUE)
        if job.retry_s > 0:
            job.flags |= BCAST_WILLQUEUE
            job.qtime_ms = self.requeue_ms(job, now_ms)
        else:
            job.qtime_ms = 0
        queue = self._queues.obtain(job.queue, now_ms)
        job.queue = queue.name  # one copy of the name for all jobs of the queue
        queue.jobs.add(job)
        queue.used_ms = now_ms
        queue.jobs_in += 1
        if queue.waiters:
            self._waiters.note_ready(queue)

    def dequeue(self, job: Job) -> None:
        """Take a queued job out of its queue; its requeue clock runs on."""
        job.step(HOLD)
        queue = self._queues.get(job.queue)
        assert queue is not None
        queue.jobs.remove(job)

    def fetch(self, queue: Queue, now_ms: i64) -> Job | None:
        """Take the oldest job out of a queue, to be given to a client."""
        job = queue.jobs.pop()
        if job is None:
            return None
        job.step(HOLD)
        job.flags |= DELIVERED
        queue.used_ms = now_ms
        queue.jobs_out += 1
        return job

    def remove(self, job: Job) -> None:
        """Forget a job, wherever it is."""
        if job.state == QUEUED:
            queue = self._queues.get(job.queue)
            assert queue is not None
            queue.jobs.remove(job)
        self._jobs.discard(job)

    def serve(self, now_ms: i64) -> None:
        """Give jobs of ready queues to the clients in line: oldest job, longest waiting client."""
        ready = self._waiters.ready
        while ready:
            queue = ready.pop()
            queue.ready = False
            while queue.waiters and queue.jobs.size > 0 and not queue.paused & PAUSE_OUT:
                client = next(iter(queue.waiters))
                if client.doomed:  # nobody would read the answer
                    self._waiters.leave(client)
                    continue
                job = self.fetch(queue, now_ms)
                assert job is not None
                self.hand_over(client, job)

    def hand_over(self, client: Client, job: Job) -> None:
        """Answer a blocked GETJOB with one job (client protocol, section 20)."""
        assert client.blocked == BLOCKED_GETJOB
        if client.reply_mode != REPLY_OFF:
            jobs: list[JobRecord] = [job]
            client.replies.jobs(jobs, client.blocked_counters)
        self._waiters.leave(client)
        self._outbox.touch(client)

    def awake(self, job: Job, now_ms: i64) -> None:
        """Do what is due for a job that the schedule let out (section 10.5)."""
        if job.expire_ms <= now_ms:
            self.remove(job)
            return
        if job.flags & BCAST_WILLQUEUE and job.qtime_ms - WILLQUEUE_ADVANCE_MS <= now_ms:
            job.flags &= ~BCAST_WILLQUEUE
        if job.qtime_ms != 0 and job.qtime_ms <= now_ms:
            if job.state == QUEUED:
                self._postpone(job, now_ms)
            elif job.state == ACTIVE:
                if job.retry_s > 0 and self._paused_in(job):
                    self._postpone(job, now_ms)
                elif self.enqueue(job, False, now_ms):
                    return
                else:
                    job.qtime_ms = 0
        self._jobs.reschedule(job)

    def _postpone(self, job: Job, now_ms: i64) -> None:
        job.flags |= BCAST_WILLQUEUE
        job.qtime_ms = self.requeue_ms(job, now_ms)

    def _paused_in(self, job: Job) -> bool:
        queue = self._queues.get(job.queue)
        return queue is not None and queue.paused & PAUSE_IN != 0
