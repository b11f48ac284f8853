"""The registered jobs: by ID, by time, by memory; what is recorded about them.

Every change of a job's life goes through here, so that table, schedule, count of memory and log
never disagree.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, u8

from disque_tx.core.base.outbox import Outbox
from disque_tx.core.base.part import Part
from disque_tx.core.base.schedule import Schedule
from disque_tx.core.jobs.job import ACK, BACKOFF, IN_FLIGHT, NOWHERE, Job
from disque_tx.core.jobs.memory import Memory, job_bytes
from disque_tx.core.jobs.observer import ENDS, MOVES, RECORDS, JobObserver
from disque_tx.core.lookup.jobtable import JobTable
from disque_tx.messages.records import (
    ACKED,
    ACTIVE,
    BCAST_WILLQUEUE,
    QUEUED,
    WAIT_REPL,
)

#: How long before its requeue time a job announces it to the other holders (milliseconds).
WILLQUEUE_ADVANCE_MS = 500
#: By how much a copy may outlive another one: lives travel in whole seconds, rounded down, and a
#: job goes through four nodes at the most while it is delivered. An acknowledgement outlives all.
_UNEVEN_MS: Final = 4_000


class JobStore(Part):
    """``table``: every job known here, dummy acknowledgements included. ``acked``: how many of them
    are acknowledged and wait until all holders know it."""

    def __init__(self, memory: Memory, outbox: Outbox) -> None:
        self.table: JobTable[Job] = JobTable()
        self.schedule: Schedule[Job] = Schedule()
        self.acked: i64 = 0
        self._memory = memory
        self._outbox = outbox
        self._observers: list[JobObserver] = []
        self._first_on_end: JobObserver | None = None
        self._first_on_move: JobObserver | None = None
        self._first_on_record: JobObserver | None = None

    def subscribe(self, observer: JobObserver, kinds: i64 = 0) -> None:
        """Notify ``observer`` of these kinds of events, before those that subscribed earlier."""
        self._observers.append(observer)
        if kinds & ENDS:
            observer.next_on_end, self._first_on_end = self._first_on_end, observer
        if kinds & MOVES:
            observer.next_on_move, self._first_on_move = self._first_on_move, observer
        if kinds & RECORDS:
            observer.next_on_record, self._first_on_record = self._first_on_record, observer

    def __len__(self) -> int:
        return self.table.count

    def get(self, job_id: bytes) -> Job | None:
        """The job with this ID, if it is known here."""
        return self.table.get(job_id)

    def add(self, job: Job) -> None:
        """Register a job that is not known yet, and schedule it."""
        self.table.put(job)
        self._memory.add(job_bytes(job))
        self.schedule.add(job, awake_ms(job))

    def reschedule(self, job: Job) -> None:
        """Wake the job when it matters next, after a change of its times or state."""
        self.schedule.remove(job)
        self.schedule.add(job, awake_ms(job))

    def set_holders(self, job: Job, nodes: tuple[bytes, ...]) -> None:
        """Replace the nodes that may hold a copy of a registered job."""
        self._memory.subtract(job_bytes(job))
        job.nodes = nodes
        self._memory.add(job_bytes(job))

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
        job.expire_ms += _UNEVEN_MS
        job.confirmed = None
        self.acked += 1
        self.count_released(job)
        observer = self._first_on_end
        while observer is not None:
            observer.job_acknowledged(job)
            observer = observer.next_on_end

    def count_delivered(self, job: Job) -> None:
        """A client of this node works on the job from now on."""
        self.set_whereabouts(job, IN_FLIGHT)

    def count_released(self, job: Job) -> None:
        """No client of this node works on the job any more, as far as this node knows, and it
        waits here neither for its DELAY nor for another attempt."""
        if job.place != NOWHERE:
            self.set_whereabouts(job, NOWHERE)

    def count_backoff(self, job: Job) -> None:
        """A job that no client works on waits here for the end of a backoff."""
        self.set_whereabouts(job, BACKOFF)

    def set_whereabouts(self, job: Job, place: i64) -> None:
        """The job is delayed, in backoff, in flight, loaded, or nothing of these, from now on."""
        was = i64(job.place)
        if was == place:
            return
        job.place = u8(place)
        observer = self._first_on_move
        while observer is not None:
            observer.job_moved(job, was)
            observer = observer.next_on_move

    def record(self, job: Job) -> None:
        """Write down that the job exists as it is now (cluster protocol, section 14.3)."""
        if self._outbox.log is not None:
            self._outbox.log.load_job(job)
            observer = self._first_on_record
            while observer is not None:
                observer.job_recorded(job)
                observer = observer.next_on_record

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
        observer = self._first_on_end
        while observer is not None:
            observer.job_gone(job)
            observer = observer.next_on_end
        self.schedule.remove(job)
        self.table.remove(job)
        self._memory.subtract(job_bytes(job))

    def forget_all(self) -> None:
        """Forget every job; those that could still have been delivered are recorded."""
        if self._outbox.events is not None:
            self._outbox.events.flushed(len(self.table))
        for job in self.table.values():
            if job.state == ACTIVE or job.state == QUEUED:
                self.record_end(job)
            self._memory.subtract(job_bytes(job))
        for observer in self._observers:
            observer.all_forgotten(self.table)
        self.table.clear()
        self.schedule.clear()
        self.acked = 0


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
