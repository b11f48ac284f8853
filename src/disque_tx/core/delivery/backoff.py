"""Jobs that are held back: active, and queued at their due time, not before.

1. A job is held back after a NACK with a delay, or by the policy of its queue, and while another
   job is made that takes its place (see ``replacements``).
2. Every holder of a job queues it when its RETRY is over. So the node that holds it back sends
   WORKING to the others in time, again and again; the original heeds that, too. If this node dies,
   the job comes back after its RETRY: early rather than never.
3. A holder that is about to queue it (WILLQUEUE), or has done so (QUEUED), gets WORKING at once.
   What another node gives (YOURJOBS) of such a job is not queued: this node has it already.
4. Of two nodes that hold one job back, one goes on; which one depends on the job, by the rule for
   two that have it in their queues.
5. Nothing of this is on the disk: after a restart the job comes back after its RETRY.
"""

from __future__ import annotations

from math import log

from mypy_extensions import i64

from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.jobs.job import Job
from disque_tx.core.policies.settings import QueuePolicy
from disque_tx.core.state.state import State
from disque_tx.core.state.store import reminder_ms
from disque_tx.messages import bustypes
from disque_tx.messages.bus import JobSignal
from disque_tx.messages.records import BCAST_QUEUED, BCAST_WILLQUEUE

#: e to this power exceeds every limit.
_LOG_MAX: float = 50.0


def wait_ms(policy: QueuePolicy, retry: i64, chance: float) -> i64:
    """The wait before the ``retry``-th retry, from 1 on. ``chance``: in [0, 1)."""
    whole_ms = float(policy.retry_delay_ms)
    most_ms = float(policy.retry_delay_max_ms)
    factor = float(policy.retry_factor_milli) / 1000.0
    exponent = float(max(0, retry - 1))
    if whole_ms > 0.0 and factor > 1.0:
        grown = exponent * log(factor) < _LOG_MAX
        whole_ms = whole_ms * factor**exponent if grown else most_ms
    whole_ms = min(whole_ms, most_ms)
    return int(whole_ms * (1.0 - float(policy.retry_jitter_milli) / 1000.0 * chance))


class RetryBackoff:
    """Holds jobs back."""

    def __init__(self, state: State, delivery: Delivery) -> None:
        self._turn = state.turn
        self._jobs = state.jobs
        self._peers = state.peers
        self._delivery = delivery

    def hold(self, job: Job, until_ms: i64) -> None:
        """Hold back an active job, or hold it back for longer."""
        if not job.backoff:
            self._jobs.count_backoff(job)
        first = not job.flags & BCAST_QUEUED
        job.flags |= BCAST_QUEUED
        if job.retry_s > 0:
            job.flags |= BCAST_WILLQUEUE
        job.qtime_ms = max(until_ms, self._turn.now_ms + 1)
        self._remind(job)
        self._jobs.reschedule(job)
        if first and job.delay_s > 0:
            # A restart must not take it for one whose delay is still running.
            self._jobs.record(job)

    def _remind(self, job: Job) -> None:
        job.moved_ms = self._turn.now_ms
        if job.retry_s > 0:
            self._peers.notify_holders(job, bustypes.WORKING)

    def awake(self, job: Job) -> None:
        """Before its due time, the other holders have to be notified again."""
        self._delivery.announce(job)
        if self._turn.now_ms >= job.moved_ms + reminder_ms(job.retry_s):
            self._remind(job)
        self._jobs.reschedule(job)

    # -- messages and commands about a job that is held back ----------------------------------

    def claim(self, job: Job, sender: bytes) -> None:
        """WILLQUEUE, QUEUED: the sender must not have it in its queue."""
        self._peers.send(sender, JobSignal(bustypes.WORKING, job.id))

    def worked_on(self, job: Job) -> None:
        """WORKING, of a client, or of a node that does not win: postponed, never advanced."""
        if job.retry_s > 0:
            job.qtime_ms = max(job.qtime_ms, self._delivery.requeue_ms(job, self._turn.now_ms))
            self._jobs.reschedule(job)

    def end(self, job: Job) -> None:
        """End the backoff because another node delivers the job; this node waits for RETRY."""
        self._jobs.count_released(job)
