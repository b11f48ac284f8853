"""WAITJOB: clients wait until a job has ended, and get to know how.

1. What ends a job notes how, then the store reports that it has ended; without a note, one that is
   acknowledged counts as that, and one that is removed as deleted.
2. A node answers for what it knows. A job that leaves it, and lives on elsewhere, is not known here
   any more.
3. An acknowledgement that another node sends says that the job is done, not how.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.client import REPLY_OFF
from disque_tx.core.jobs.job import Job
from disque_tx.core.jobs.observer import JobObserver
from disque_tx.core.queues.waiters import Waiters
from disque_tx.messages.records import ACKED

# How a job ended.
ACKNOWLEDGED: Final = 0
DELETED: Final = 1
EXPIRED: Final = 2
DEAD: Final = 3
MOVED: Final = 4
ANSWERS: Final = (b"ACKED", b"DELETED", b"EXPIRED", b"DEAD")
_MOVED: Final = b"NOJOB Job not known any more in the context of this node."


class Endings(JobObserver):
    """Answers the clients. ``watched``: those that wait, by the ID of the job."""

    __slots__ = ("_how", "_waiters", "watched")

    def __init__(self, waiters: Waiters) -> None:
        self.watched = waiters.endings
        self._waiters = waiters
        # How jobs that are watched are about to end.
        self._how: dict[bytes, int] = {}

    def will_end(self, job: Job, how: i64) -> None:
        """The job is about to end in this way."""
        if self.watched and job.id in self.watched:
            self._how[job.id] = int(how)

    def job_acknowledged(self, job: Job) -> None:
        if self.watched:
            self._ended(job.id, ACKNOWLEDGED)

    def job_gone(self, job: Job) -> None:
        if self.watched:
            self._ended(job.id, ACKNOWLEDGED if job.state == ACKED else DELETED)

    def forget_all(self) -> None:
        """All jobs are forgotten here; others may hold them."""
        for job_id in list(self.watched):
            self._answer(job_id, MOVED)

    def _ended(self, job_id: bytes, otherwise: i64) -> None:
        if job_id in self.watched:
            self._answer(job_id, self._how.pop(job_id, int(otherwise)))

    def _answer(self, job_id: bytes, how: i64) -> None:
        for client in list(self.watched[job_id]):
            if client.reply_mode != REPLY_OFF:
                if how == MOVED:
                    client.replies.error(_MOVED)
                else:
                    client.replies.status(ANSWERS[how])
            self._waiters.answered(client)
