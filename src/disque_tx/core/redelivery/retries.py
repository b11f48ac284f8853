"""What becomes of a job that comes back: NACK, RETRY over, the end of a backoff.

1. A job that was delivered as often as ``max-deliveries`` allows becomes a dead letter.
2. Otherwise it is held back, for the time that the NACK names or else by the policy of its queue;
   after a RETRY only with ``retry-on-timeout``.
3. Otherwise, and without a policy, it is queued at once.
4. None of this holds for jobs with RETRY 0, which never come back, nor for ENQUEUE.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.delivery.backoff import RetryBackoff, wait_ms
from disque_tx.core.delivery.delivery import Delivery, worked_ms
from disque_tx.core.jobs.job import RESUMING, Job
from disque_tx.core.policies.settings import QueuePolicy
from disque_tx.core.redelivery.deadletters import DeadLetterMaker
from disque_tx.core.redelivery.replacements import Replacements
from disque_tx.core.state.state import State
from disque_tx.errors import CommandError
from disque_tx.messages import bustypes, events
from disque_tx.messages.bus import INCR_DELIV, INCR_NACKS
from disque_tx.messages.records import ACKED, BCAST_QUEUED, QUEUED, WAIT_REPL

#: A NACK without DELAY: the policy decides.
BY_POLICY: Final = -1


class Retries:
    """Decides about jobs that come back."""

    def __init__(
        self,
        state: State,
        delivery: Delivery,
        backoff: RetryBackoff,
        replacements: Replacements,
        dead_letters: DeadLetterMaker,
    ) -> None:
        self._turn = state.turn
        self._jobs = state.jobs
        self._reasons = state.reasons
        self._outbox = state.outbox
        self._peers = state.peers
        self._policies = state.policies
        self._random = state.random
        self._totals = state.totals
        self._delivery = delivery
        self._backoff = backoff
        self._replacements = replacements
        self._dead_letters = dead_letters

    def enqueue_all(self, ids: list[bytes]) -> int:
        """ENQUEUE: how many jobs went into their queues."""
        count = 0
        for job_id in ids:
            job = self._jobs.get(job_id)
            if job is not None:
                first = not job.flags & BCAST_QUEUED
                if self.enqueue(job):
                    self._returned(job, first)
                    count += 1
        return count

    def dequeue_all(self, ids: list[bytes]) -> int:
        """DEQUEUE: how many jobs were taken out of their queues."""
        count = 0
        for job_id in ids:
            job = self._jobs.get(job_id)
            if job is not None and job.state == QUEUED:
                self._delivery.dequeue(job)
                count += 1
        return count

    def nack_all(self, ids: list[bytes], delay_ms: i64, reason: bytes) -> int:
        """NACK: how many jobs were returned; see :meth:`nack`."""
        count = 0
        for job_id in ids:
            job = self._jobs.get(job_id)
            if job is not None:
                first = not job.flags & BCAST_QUEUED
                if self.nack(job, delay_ms, reason):
                    self._returned(job, first)
                    count += 1
        return count

    def _returned(self, job: Job, first: bool) -> None:
        if first and job.delay_s > 0 and job.state == QUEUED:
            # A restart must not take it for one whose delay is still running.
            self._jobs.record(job)

    def nack(self, job: Job, delay_ms: i64, reason: bytes) -> bool:
        """A consumer returns a job; ``False`` when it was not delivered, or must not be again.

        ``delay_ms``: until the next delivery, ``BY_POLICY`` if the policy of the queue decides.
        """
        if not self._delivery.may_queue(job) or job.backoff:
            return False
        if reason or self._reasons.kept:
            self._reasons.put(job.id, reason)
        repeats = job.retry_s > 0
        policy = self._policies.of(job.queue) if repeats and self._policies.active else None
        if policy is None and (delay_ms <= 0 or not repeats) and not reason:
            return self._delivery.enqueue(job, events.BY_NACK)
        if self._outbox.events is not None:
            worked = worked_ms(job, self._turn.now_ms)
            text = self._reasons.get(job.id)
            self._outbox.events.noted(events.NACKED, job, events.NO_REASON, 0, worked, text)
        self._totals.nacked += 1
        self._delivery.came_back(job, INCR_NACKS)
        self._delivery.send_queued(job, INCR_NACKS)
        if delay_ms < 0 and policy is not None:
            delay_ms = self._wait_ms(job, policy)
        if not repeats:
            delay_ms = 0
        self._return(job, policy, events.BY_NACK, delay_ms)
        return True

    def enqueue(self, job: Job) -> bool:
        """ENQUEUE: into the queue at once; ``False`` when the job must not go there."""
        if job.backoff:
            self._delivery.enqueue_counted(job, events.BY_COMMAND)
            return True
        return self._delivery.enqueue(job, events.BY_COMMAND)

    def awake(self, job: Job) -> None:
        """Do what is due for an active or queued job; it is held back, or there are policies."""
        now_ms = self._turn.now_ms
        due = job.qtime_ms != 0 and job.qtime_ms <= now_ms and job.expire_ms > now_ms
        if job.backoff and job.expire_ms > now_ms:
            if due:
                self._backoff_over(job)
            else:
                self._backoff.awake(job)
        elif not due or not self._is_back(job) or not self._timed_out(job):
            self._delivery.awake(job)

    def _is_back(self, job: Job) -> bool:
        """Whether the RETRY of the job is over, and it would be queued again."""
        return (
            job.retry_s > 0
            and job.place != RESUMING
            and job.flags & BCAST_QUEUED != 0
            and self._delivery.may_queue(job)
            and not self._delivery.is_paused_in(job)
        )

    def _timed_out(self, job: Job) -> bool:
        """RETRY ran out; ``False`` when the job is just to be queued again."""
        policy = self._policies.of(job.queue)
        if policy is None:
            return False
        delay_ms: i64 = 0
        self._delivery.came_back(job, INCR_DELIV)
        if policy.retry_on_timeout:
            delay_ms = self._wait_ms(job, policy)
        self._delivery.announce(job)
        self._delivery.send_queued(job, INCR_DELIV, by_retry=True)
        self._return(job, policy, events.BY_RETRY, delay_ms)
        return True

    def _backoff_over(self, job: Job) -> None:
        if self._replacements.is_pending(job):
            self._replacements.give_up(job)
        elif job.retry_s > 0 and self._delivery.is_paused_in(job):
            self._backoff.hold(job, self._delivery.requeue_ms(job, self._turn.now_ms))
        else:
            self._delivery.announce(job)
            policy = self._policies.of(job.queue)
            self._return(job, policy, events.BY_BACKOFF, 0)

    def _return(
        self,
        job: Job,
        policy: QueuePolicy | None,
        cause: i64,
        delay_ms: i64,
    ) -> None:
        """A job comes back, which has been counted: as a dead letter, later, or now."""
        by_nack = cause == events.BY_NACK
        if (
            policy is not None
            and 0 < policy.max_deliveries <= job.nacks + job.deliveries
            and job.retry_s > 0
            and self._dead_letters.dead_letter(job, policy, by_nack)
        ):
            return
        if delay_ms > 0:
            self._totals.backoffs += 1
            text = self._reasons.get(job.id)
            self._outbox.record_event_text(events.DELAYED, job, cause, delay_ms, text)
            self._backoff.hold(job, self._turn.now_ms + delay_ms)
            return
        self._delivery.enqueue_counted(job, cause)

    def _wait_ms(self, job: Job, policy: QueuePolicy) -> i64:
        if policy.retry_delay_ms == 0:
            return 0
        return wait_ms(policy, job.nacks + job.deliveries, self._random())

    def working(self, job_id: bytes) -> int:
        """See ``Node.working``."""
        now_ms = self._turn.now_ms
        job = self._jobs.get(job_id)
        if job is None or job.dummy or job.state == WAIT_REPL:
            raise CommandError("NOJOB", "Job not known in the context of this node.")
        if job.state == ACKED:
            raise CommandError("ACKED", "The job was acknowledged: there is nothing to postpone.")
        if 2 * (job.expire_ms - now_ms) < job.life_ms:
            raise CommandError(
                "TOOLATE",
                "Half of job TTL already elapsed, you are no longer allowed to postpone"
                " the next delivery.",
            )
        if self._outbox.events is not None:
            worked = worked_ms(job, now_ms)
            self._outbox.events.job(events.WORKING, job, events.NO_REASON, job.retry_s, worked)
        if job.retry_s == 0:
            # A queued one was never delivered: no consumer has it, and it could not come back.
            return 0
        if job.backoff:
            self._backoff.worked_on(job)
        else:
            if job.state == QUEUED:
                self._delivery.dequeue(job)
            self._delivery.postpone(job)
        self._peers.notify_holders(job, bustypes.WORKING)
        return job.retry_s
