"""Leases: jobs that a client has for a certain time, counted from their delivery.

GETJOB leaves the requeue clock alone, which runs from the moment of queueing. For clients of
protocols with leases it begins with the delivery, at all holders of the job, and without a jitter:
they know to the millisecond when it is over.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.client import Client
from disque_tx.core.delivery.backoff import RetryBackoff
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.getting.getting import Getting
from disque_tx.core.getting.unblocking import leaving
from disque_tx.core.jobs.job import BACKOFF, DELAYED, Job, before
from disque_tx.core.nodes.duplicateids import identity_conflict_error
from disque_tx.core.queues.queues import PAUSE_OUT, Queue
from disque_tx.core.state.state import State
from disque_tx.messages import bustypes, events
from disque_tx.messages.records import ACTIVE, BCAST_QUEUED, BCAST_WILLQUEUE, DELIVERED, QUEUED

#: As good as never: a hundred years, in milliseconds.
NEVER_MS: Final = 100 * 366 * 86_400_000


class ListenerLeases:
    """Jobs for clients of protocols with leases."""

    def __init__(
        self, state: State, delivery: Delivery, getting: Getting, backoff: RetryBackoff
    ) -> None:
        self._turn = state.turn
        self._membership = state.membership
        self._jobs = state.jobs
        self._queues = state.queues
        self._waiters = state.waiters
        self._peers = state.peers
        self._policies = state.policies
        self._matching = state.matching
        self._delivery = delivery
        self._getting = getting
        self._backoff = backoff

    def take(self, client: Client, names: list[bytes]) -> Job | None:
        """Give the client the job that comes first in all of these queues, with a lease. ``None``
        when there is none; ``CommandError`` when this node must not deliver."""
        if self._membership.identity.suspended:
            raise identity_conflict_error()
        while True:
            queue = self._best(names)
            if queue is None:
                self._getting.want(names)
                return None
            job = self._delivery.fetch(queue)
            if job is None:
                continue
            self._delivery.delivered(client, job)
            if self._matching.active:
                self._matching.note_served(queue)
            self.renew(job)
            if self._delivery.emptied:
                self._getting.emptied()
            return job

    def is_ready(self, names: list[bytes]) -> bool:
        """Whether one of these queues has a job that may be delivered now."""
        return self._best(names) is not None

    def _best(self, names: list[bytes]) -> Queue | None:
        """The queue whose first job comes before those of all others."""
        now_ms = self._turn.now_ms
        best: Queue | None = None
        best_job: Job | None = None
        for name in names:
            queue = self._queues.get(name)
            if queue is None or queue.jobs.size == 0 or queue.paused & PAUSE_OUT:
                continue
            if self._policies.limited and not self._getting.limits.allows(name, now_ms):
                continue
            job = queue.jobs.first()
            if job is not None and (best_job is None or before(job, best_job)):
                best, best_job = queue, job
        return best

    def wait(self, client: Client, names: list[bytes], timeout_ms: i64) -> None:
        """Let the client wait for a job of these queues, 0 forever. Whoever gets one calls
        :meth:`renew`."""
        if self._membership.leaving:
            raise leaving()
        for name in names:
            self._queues.check(name)
        self._waiters.wait_for_jobs(client, names, False, timeout_ms)

    def take_this(self, client: Client, job: Job) -> bool:
        """Give the client this very job, with a lease: one that is queued, delayed or held back;
        ``False`` for any other one."""
        if self._membership.identity.suspended:
            raise identity_conflict_error()
        if job.expire_ms <= self._turn.now_ms:
            return False
        if job.state == QUEUED:
            self._delivery.dequeue(job)
        elif job.state != ACTIVE or job.held or (job.place != DELAYED and job.place != BACKOFF):
            return False
        first = not job.flags & BCAST_QUEUED
        job.flags |= BCAST_QUEUED | DELIVERED
        self._delivery.delivered(client, job)
        if first:
            # A restart must not take it for one whose delay is still running.
            self._jobs.record(job)
        if job.retry_s > 0:
            self.renew(job)
        else:
            job.qtime_ms = 0
            self._jobs.reschedule(job)
        return True

    def renew(self, job: Job) -> None:
        """The lease of a job that a client has begins again; one with RETRY 0 has no end."""
        if job.retry_s == 0:
            return
        job.qtime_ms = self._turn.now_ms + job.retry_s * 1000
        if len(job.nodes) > 1:
            job.flags |= BCAST_WILLQUEUE
            self._peers.notify_holders(job, bustypes.WORKING)
        else:
            job.flags &= ~BCAST_WILLQUEUE
        self._jobs.reschedule(job)

    def hold(self, job: Job, until_ms: i64) -> bool:
        """Hold back a job that is in no queue; ``False`` for one that must not be delivered again,
        or is not active here."""
        if not self._delivery.may_queue(job):
            return False
        self._backoff.hold(job, until_ms)
        return True

    def restart(self, job: Job) -> None:
        """Queue a job that comes from the log, at once: nobody has it any more."""
        if job.state == ACTIVE and job.retry_s > 0 and job.place != DELAYED:
            job.flags &= ~BCAST_QUEUED  # it goes back where it was: that counts nothing
            self._delivery.enqueue(job, events.BY_RESTART)
