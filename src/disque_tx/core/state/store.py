"""The registered jobs: by ID, by time, by memory; what is recorded about them.

Every change of a job's life goes through here, so that table, schedule, count of memory and log
never disagree.
"""

from __future__ import annotations

from mypy_extensions import i64, u8

from disque_tx.core.base.outbox import Outbox
from disque_tx.core.base.part import Part
from disque_tx.core.base.schedule import Schedule
from disque_tx.core.base.table import Table
from disque_tx.core.base.totals import Totals
from disque_tx.core.jobs.counters import Counters
from disque_tx.core.jobs.job import ACK, BACKOFF, DELAYED, IN_HAND, LOADED, NOWHERE, Job
from disque_tx.core.jobs.memory import Memory, job_bytes
from disque_tx.core.jobs.notes import Note, Notes, checked
from disque_tx.core.jobs.reasons import Reasons
from disque_tx.core.jobs.tallies import Tallies
from disque_tx.core.keys.keysbyjob import KeysByJob
from disque_tx.core.policies.policies import Policies
from disque_tx.core.queues.endings import Endings
from disque_tx.core.queues.waiters import Waiters
from disque_tx.messages.records import (
    ACKED,
    ACTIVE,
    BCAST_WILLQUEUE,
    JOB_ID_LENGTH,
    QUEUED,
    WAIT_REPL,
)

#: How long before its requeue time a job announces it to the other holders (milliseconds).
WILLQUEUE_ADVANCE_MS = 500


class JobStore(Part):
    """``table``: every job known here, dummy acknowledgements included. ``acked``: how many of them
    are acknowledged and wait until all holders know it. ``tallies``: how many are active, by queue.
    ``endings``: clients that wait for the end of jobs. ``reasons``: why consumers returned jobs.
    ``delayed``: how many wait for their DELAY. ``keys_by_job``: which jobs have keys. ``notes``:
    what protocols of listeners noted about jobs. ``counters``: how often jobs came back, for the
    log."""

    def __init__(
        self,
        memory: Memory,
        outbox: Outbox,
        totals: Totals,
        waiters: Waiters,
        tallies: Tallies,
        policies: Policies,
    ) -> None:
        self.table: Table[Job] = Table(JOB_ID_LENGTH)
        self.schedule: Schedule[Job] = Schedule()
        self.acked: i64 = 0
        self.delayed: i64 = 0
        self.tallies = tallies
        self.endings = Endings(waiters)
        self.reasons = Reasons(memory)
        self.keys_by_job = KeysByJob()
        self.notes = Notes(memory)
        self.counters = Counters(self.table, outbox, policies)
        self._memory = memory
        self._outbox = outbox
        self._totals = totals
        self._waiters = waiters
        self._matching = waiters.matching
        self._policies = policies

    def __len__(self) -> int:
        return self.table.count

    def get(self, job_id: bytes) -> Job | None:
        """The job with this ID, if it is known here."""
        return self.table.get(job_id)

    def add(self, job: Job) -> None:
        """Register a job that is not known yet, and schedule it."""
        self.table.put(job)
        self._memory.take(job_bytes(job))
        self.schedule.add(job, awake_ms(job))

    def reschedule(self, job: Job) -> None:
        """Wake the job when it matters next, after a change of its times or state."""
        self.schedule.remove(job)
        self.schedule.add(job, awake_ms(job))

    def set_holders(self, job: Job, nodes: tuple[bytes, ...]) -> None:
        """Replace the nodes that may hold a copy of a registered job."""
        self._memory.give(job_bytes(job))
        job.nodes = nodes
        self._memory.take(job_bytes(job))

    def merge_holders(self, job: Job, nodes: tuple[bytes, ...]) -> None:
        """Add nodes that may hold a copy of a registered job."""
        listed = set(job.nodes)
        more = tuple([node for node in nodes if node not in listed])
        if more:
            self.set_holders(job, job.nodes + more)

    def acknowledge(self, job: Job) -> None:
        """The job, in no queue, will not be delivered any more; other nodes must learn of it."""
        if job.state != WAIT_REPL:
            self.record_end(job)
        job.step(ACK)
        job.confirmed = None
        self.acked += 1
        self.count_released(job)
        if self.endings.watched:
            self.endings.acknowledged(job)
        if self.reasons.kept:
            self.reasons.forget(job.id)
        if self.keys_by_job.by_job:
            self.keys_by_job.acknowledged(job.id)
        if self.notes.by_job:
            self.notes.ended(job)

    def count_delivered(self, job: Job) -> None:
        """A client of this node works on the job from now on."""
        self.set_whereabouts(job, IN_HAND)

    def count_released(self, job: Job) -> None:
        """No client of this node works on the job any more, as far as this node knows, and it
        waits here neither for its DELAY nor for another attempt."""
        if job.place != NOWHERE:
            self.set_whereabouts(job, NOWHERE)

    def count_backoff(self, job: Job) -> None:
        """A job that no client works on waits here for the end of a backoff."""
        self.set_whereabouts(job, BACKOFF)

    def set_whereabouts(self, job: Job, place: i64) -> None:
        """The job is delayed, in backoff, in hand, loaded, or nothing of these, from now on: the
        one place where that is counted."""
        was = i64(job.place)
        if was == place:
            return
        if was != NOWHERE:
            self.tallies.change(job.queue, was, -1)
        if place != NOWHERE:
            self.tallies.change(job.queue, place, 1)
        if was == IN_HAND:
            self._totals.in_hand -= 1
            if self._matching.active or self._policies.limited:
                self._waiters.note_fewer_in_hand(job.queue)
        elif place == IN_HAND:
            self._totals.in_hand += 1
        if was == BACKOFF:
            self._totals.in_backoff -= 1
        elif place == BACKOFF:
            self._totals.in_backoff += 1
        if was == DELAYED:
            self.delayed -= 1
        elif place == DELAYED:
            self.delayed += 1
        if was >= LOADED:
            self._totals.loaded -= 1
        if place >= LOADED:
            self._totals.loaded += 1
        job.place = u8(place)
        if self.notes.by_job:
            self.notes.moved(job, was)

    def record(self, job: Job) -> None:
        """Write down that the job exists as it is now (cluster protocol, section 14.3)."""
        if self._outbox.log is not None:
            self._outbox.log.load_job(job)
            if self.notes.by_job:
                note = self.notes.get(job.id)
                if note is not None:
                    self.record_note(job.id, note)

    def record_note(self, job_id: bytes, note: Note) -> None:
        """Write down what a note about a recorded job says now."""
        if self._outbox.log is not None:
            self._outbox.log.note_job(job_id, note.owner, checked(note))

    def record_end(self, job: Job) -> None:
        """Write down that the job will not be delivered any more."""
        if self._outbox.log is not None:
            self._outbox.log.delete_job(job.id)

    def discard(self, job: Job) -> None:
        """Forget a job that is in no queue; recorded when it could still have been delivered."""
        if job.state == ACTIVE or job.state == QUEUED:
            self.record_end(job)
        elif job.state == ACKED:
            self.acked -= 1
        self.count_released(job)
        if self.endings.watched:
            self.endings.gone(job)
        if self.reasons.kept:
            self.reasons.forget(job.id)
        if self.keys_by_job.by_job:
            self.keys_by_job.gone(job)
        if self.notes.by_job:
            self.notes.ended(job)
        self.schedule.remove(job)
        self.table.remove(job)
        self._memory.give(job_bytes(job))

    def forget_all(self) -> None:
        """Forget every job; those that could still have been delivered are recorded."""
        if self._outbox.events is not None:
            self._outbox.events.flushed(len(self.table))
        for job in self.table.values():
            if job.state == ACTIVE or job.state == QUEUED:
                self.record_end(job)
            if self.notes.by_job:
                self.notes.ended(job)
            self._memory.give(job_bytes(job))
        self.table.clear()
        self.tallies.clear()
        self.schedule.clear()
        self.acked = self.delayed = 0
        self._totals.queued = 0
        self.reasons.clear()
        self.counters.clear()
        self._totals.in_hand = 0
        self._totals.in_backoff = 0
        self._totals.loaded = 0


def reminder_ms(retry_s: i64) -> i64:
    """How often the other holders of a job that is held back are notified, in milliseconds: at 80 %
    of RETRY, but half a second before its end at the latest, for their timers have a jitter."""
    return min(retry_s * 800, retry_s * 1000 - 500)


def awake_ms(job: Job) -> i64:
    """When the node next has to look at a job (cluster protocol, section 10.3)."""
    at = job.expire_ms
    if job.qtime_ms != 0:
        next_ms = job.qtime_ms
        if job.flags & BCAST_WILLQUEUE and (job.state == ACTIVE or job.state == QUEUED):
            next_ms -= WILLQUEUE_ADVANCE_MS
        if job.backoff and len(job.nodes) > 1 and job.retry_s > 0:
            next_ms = min(next_ms, job.moved_ms + reminder_ms(job.retry_s))
        if next_ms < at:
            at = next_ms
    return at
