"""How often a job came back, for the log: NACKs and additional deliveries.

1. A change alone is not worth a write, nor a sync: it goes to the log with what is recorded next,
   or after a second.
2. They are recorded only where a policy makes something of them (``max-deliveries``,
   ``retry-delay``): an original does not load a log with such records.
3. So a crash loses the changes of the last second at most, and a job is delivered once or twice
   more than ``max-deliveries`` allows, but not forever.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.outbox import Outbox
from disque_tx.core.jobs.job import Job
from disque_tx.core.jobs.observer import JobObserver
from disque_tx.core.lookup.table import Table
from disque_tx.core.policies.policies import Policies
from disque_tx.messages.records import ACTIVE, QUEUED

#: For how long a change may be unrecorded.
_LATE_MS: Final = 1_000


class Counters(JobObserver):
    """The changes that are not recorded yet. ``table``: the jobs of the node."""

    __slots__ = ("_changed", "_due_ms", "_outbox", "_policies", "_table")

    def __init__(self, table: Table[Job], outbox: Outbox, policies: Policies) -> None:
        self._changed: set[bytes] = set()
        self._due_ms: i64 = -1
        self._policies = policies
        self._table = table
        self._outbox = outbox

    def changed(self, job: Job) -> None:
        """A counter of the job is another one."""
        if self._outbox.log is None:
            return
        policy = self._policies.of(job.queue)
        if policy is not None and (policy.max_deliveries > 0 or policy.retry_delay_ms > 0):
            self._changed.add(job.id)

    def record(self) -> None:
        """Record all changes; of a job that is gone there is nothing to record."""
        log = self._outbox.log
        if not self._changed or log is None:
            return
        for job_id in self._changed:
            job = self._table.get(job_id)
            if job is not None and (job.state == ACTIVE or job.state == QUEUED):
                log.count_job(job_id, job.nacks, job.deliveries)
        self._clear()

    def record_late(self, now_ms: i64) -> None:
        """Record all changes, if they have waited for a second."""
        if not self._changed:
            return
        if self._due_ms < 0:
            self._due_ms = now_ms + _LATE_MS
        elif now_ms >= self._due_ms:
            self.record()

    def all_forgotten(self, jobs: Table[Job]) -> None:
        self._clear()

    def _clear(self) -> None:
        self._changed.clear()
        self._due_ms = -1
