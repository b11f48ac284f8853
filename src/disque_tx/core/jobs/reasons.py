"""Why consumers returned jobs: the text of the last NACK of each, as long as the job is known here.

Most jobs have none, so this is a table beside them. It is bounded, and its texts count as memory.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from mypy_extensions import i64

from disque_tx.core.jobs.job import Job
from disque_tx.core.jobs.memory import Memory
from disque_tx.core.jobs.observer import JobObserver
from disque_tx.core.lookup.table import Table

#: Bytes of one text.
REASON_BYTES_MAX: Final = 1_024
#: Texts kept; beyond that the oldest is forgotten.
REASONS_MAX: Final = 100_000
#: Bytes of an entry besides its text.
_ENTRY_BYTES: Final = 275
_ONE_LINE: Final = bytes.maketrans(b"\r\n\0", b"   ")


class Reasons(JobObserver):
    """The reasons by job ID. ``kept``: there is at least one. ``limit``: how many at the
    most. ``used``: bytes counted."""

    __slots__ = ("_memory", "_texts", "kept", "limit", "used")

    def __init__(self, memory: Memory) -> None:
        self.kept: bool = False
        self.limit: i64 = REASONS_MAX
        self.used: i64 = 0
        self._memory = memory
        # In the order of time, for an ID is taken out before it is put in.
        self._texts: OrderedDict[bytes, bytes] = OrderedDict()

    def get(self, job_id: bytes) -> bytes:
        """The text for a job, in one line; empty if there is none."""
        return self._texts.get(job_id, b"")

    def put(self, job_id: bytes, text: bytes) -> None:
        """The job was returned, with this text or, if it is empty, without one."""
        self.forget(job_id)
        if not text:
            return
        if len(self._texts) >= self.limit:
            self.forget(next(iter(self._texts)))
        text = text[:REASON_BYTES_MAX].translate(_ONE_LINE)
        self._texts[job_id] = text
        self.used += _ENTRY_BYTES + len(text)
        self._memory.add(_ENTRY_BYTES + len(text))
        self.kept = True

    def forget(self, job_id: bytes) -> None:
        """The job is done or gone."""
        text = self._texts.pop(job_id, None)
        if text is not None:
            self.used -= _ENTRY_BYTES + len(text)
            self._memory.subtract(_ENTRY_BYTES + len(text))
            self.kept = bool(self._texts)

    def job_acknowledged(self, job: Job) -> None:
        if self.kept:
            self.forget(job.id)

    def job_gone(self, job: Job) -> None:
        if self.kept:
            self.forget(job.id)

    def all_forgotten(self, jobs: Table[Job]) -> None:
        self._memory.subtract(self.used)
        self.used = 0
        self._texts.clear()
        self.kept = False
