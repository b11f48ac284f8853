"""How far the jobs in flight are, as their consumers report it with WORKING: the last report.

Few jobs have one, so this is a table beside them. It is bounded, its notes count as memory, and it
is in no log and on no other node: a report is worth nothing after a restart.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.part import Turn
from disque_tx.core.jobs.job import BACKOFF, DELAYED, Job
from disque_tx.core.jobs.memory import Memory
from disque_tx.core.jobs.observer import JobObserver
from disque_tx.core.lookup.table import Table
from disque_tx.messages.records import ACTIVE

#: A fraction of 1, in thousandths.
DONE_MILLI: Final = 1_000
#: Bytes of one note.
NOTE_BYTES_MAX: Final = 256
#: Reports kept; beyond that the oldest is forgotten.
REPORTS_MAX: Final = 10_000
#: Bytes of an entry besides its note.
_ENTRY_BYTES: Final = 300


class Progress:
    """``milli``: thousandths of the work. ``note``: what the consumer works on, as it wrote it.
    ``at_ms``: when it was reported, by the steady clock. ``moved_ms``: when the job was delivered,
    as far as this node knows: a report ends with the delivery that it belongs to."""

    __slots__ = ("at_ms", "milli", "moved_ms", "note")

    def __init__(self, milli: i64, note: bytes, at_ms: i64, moved_ms: i64) -> None:
        self.milli: i64 = milli
        self.note = note
        self.at_ms: i64 = at_ms
        self.moved_ms: i64 = moved_ms


class ProgressReports(JobObserver):
    """The reports by job ID. ``limit``: how many at the most. ``used``: bytes counted."""

    __slots__ = ("_kept", "_memory", "_turn", "limit", "used")

    def __init__(self, turn: Turn, memory: Memory) -> None:
        self.limit: i64 = REPORTS_MAX
        self.used: i64 = 0
        self._turn = turn
        self._memory = memory
        # In the order of time, for an ID is taken out before it is put in.
        self._kept: OrderedDict[bytes, Progress] = OrderedDict()

    def put(self, job: Job, milli: i64, note: bytes) -> None:
        """A consumer works on this job; one that nobody can work on at present has no progress."""
        self.forget(job.id)
        if not _is_worked_on(job):
            return
        if len(self._kept) >= self.limit:
            self.forget(next(iter(self._kept)))
        self._kept[job.id] = Progress(milli, note, self._turn.now_ms, job.moved_ms)
        self._count(_ENTRY_BYTES + len(note))

    def of(self, job: Job) -> Progress | None:
        """What was reported about the delivery that goes on, ``None`` if nothing. A consumer whose
        RETRY is over may be gone."""
        if not self._kept:
            return None
        found = self._kept.get(job.id)
        if found is None:
            return None
        late = job.retry_s > 0 and self.age_ms(found) > job.retry_s * 1000
        if late or found.moved_ms != job.moved_ms or not _is_worked_on(job):
            self.forget(job.id)
            return None
        return found

    def age_ms(self, progress: Progress) -> int:
        """How long ago this was reported."""
        return self._turn.now_ms - progress.at_ms

    def newest(self) -> Iterator[bytes]:
        """The IDs of jobs with a report, those that reported last first."""
        return reversed(self._kept)

    def forget(self, job_id: bytes) -> None:
        """The job is done or gone, or reports again."""
        found = self._kept.pop(job_id, None)
        if found is not None:
            self._count(-_ENTRY_BYTES - len(found.note))

    def _count(self, size: i64) -> None:
        self.used += size
        self._memory.add(size)

    def job_acknowledged(self, job: Job) -> None:
        if self._kept:
            self.forget(job.id)

    def job_gone(self, job: Job) -> None:
        if self._kept:
            self.forget(job.id)

    def all_forgotten(self, jobs: Table[Job]) -> None:
        self._kept.clear()
        self._count(-self.used)


def _is_worked_on(job: Job) -> bool:
    """Whether a consumer may have the job: here, or delivered by another holder."""
    return job.state == ACTIVE and job.place != DELAYED and job.place != BACKOFF
