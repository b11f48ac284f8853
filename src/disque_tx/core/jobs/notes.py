"""Notes about jobs: what the protocol of a listener has to remember about a job besides the job.

1. A note belongs to a job as this node knows it: it ends with the job, and is not sent to other
   nodes. A job has one note at most, and that one is small.
2. A note is recorded in the log behind each record of its job, and when it changes.
3. A note that comes from the log is given to the protocol that made it. If there is no listener of
   this protocol, it is kept as it is, for a later start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64, mypyc_attr

from disque_tx.core.base.outbox import Outbox
from disque_tx.core.jobs.job import Job
from disque_tx.core.jobs.memory import Memory
from disque_tx.core.jobs.observer import JobObserver
from disque_tx.core.lookup.table import Table
from disque_tx.errors import LocalError
from disque_tx.messages.records import NOTE_BYTES_MAX, OWNER_BYTES_MAX

#: Bytes of a note that are counted as memory.
_ENTRY_BYTES: Final = 400


@mypyc_attr(allow_interpreted_subclasses=True)
class Note:
    """What a protocol remembers about a job. ``owner``: the name of the protocol, 1 to 32 bytes.
    Protocols make classes of their own of it; this one keeps what came from the log."""

    def __init__(self, owner: bytes, text: bytes) -> None:
        self.owner: bytes = owner
        self._text: bytes = text

    def data(self) -> bytes:
        """What is recorded: up to 512 bytes."""
        return self._text

    def begins(self, job: Job) -> None:
        """The job was made with this note, and is about to be kept here."""

    def moved(self, job: Job, was: i64) -> None:
        """The place of the job (see :mod:`disque_tx.core.jobs.job`) changed; it was ``was``."""

    def ended(self, job: Job) -> None:
        """The job is done, or not known here any more."""


#: Makes a note of a job that comes from the log, and of its data; ``None``: it is not wanted.
NoteReader = Callable[[Job, bytes], Note | None]


class Notes(JobObserver):
    """The notes about jobs. ``by_job``: all of them, by job ID."""

    __slots__ = ("_memory", "_outbox", "_readers", "by_job")

    def __init__(self, memory: Memory, outbox: Outbox) -> None:
        self.by_job: dict[bytes, Note] = {}
        self._memory = memory
        self._outbox = outbox
        self._readers: dict[bytes, NoteReader] = {}

    def get(self, job_id: bytes) -> Note | None:
        """The note about a job."""
        return self.by_job.get(job_id)

    def put(self, job_id: bytes, note: Note) -> None:
        """Keep a note about a job, instead of any other one."""
        if job_id not in self.by_job:
            self._memory.add(_ENTRY_BYTES)
        self.by_job[job_id] = note

    def drop(self, job_id: bytes) -> None:
        """Keep no note about this job."""
        if self.by_job.pop(job_id, None) is not None:
            self._memory.subtract(_ENTRY_BYTES)

    def record(self, job_id: bytes, note: Note) -> None:
        """Write down what a note about a recorded job says now."""
        if self._outbox.log is not None:
            self._outbox.log.note_job(job_id, note.owner, checked(note))

    def job_recorded(self, job: Job) -> None:
        if self.by_job:
            note = self.by_job.get(job.id)
            if note is not None:
                self.record(job.id, note)

    def job_moved(self, job: Job, was: i64) -> None:
        if self.by_job:
            note = self.by_job.get(job.id)
            if note is not None:
                note.moved(job, was)

    def job_acknowledged(self, job: Job) -> None:
        self._end(job)

    def job_gone(self, job: Job) -> None:
        self._end(job)

    def all_forgotten(self, jobs: Table[Job]) -> None:
        if self.by_job:
            for job in jobs.values():
                self._end(job)

    def _end(self, job: Job) -> None:
        if self.by_job:
            note = self.by_job.pop(job.id, None)
            if note is not None:
                self._memory.subtract(_ENTRY_BYTES)
                note.ended(job)

    def read_by(
        self, owner: bytes, reader: NoteReader, find: Callable[[bytes], Job | None]
    ) -> None:
        """Give the notes of this protocol to ``reader``: those that are here, and those that come
        from the log later. ``find``: finds a job by its ID."""
        self._readers[owner] = reader
        for job_id, note in list(self.by_job.items()):
            if note.owner == owner:
                job = find(job_id)
                if job is not None:
                    self.load(job, owner, note.data())

    def load(self, job: Job, owner: bytes, data: bytes) -> None:
        """A note comes from the log; its job is here."""
        reader = self._readers.get(owner)
        note: Note | None = Note(owner, data)
        if reader is not None:
            note = reader(job, data)
        if note is None:
            self.drop(job.id)
        else:
            self.put(job.id, note)


def checked(note: Note) -> bytes:
    """The data of a note; ``LocalError`` if it is too long to be read again."""
    data = note.data()
    if len(data) > NOTE_BYTES_MAX or not 1 <= len(note.owner) <= OWNER_BYTES_MAX:
        raise LocalError(f"a note of {len(data)} bytes by {note.owner[:40]!r}")
    return data
