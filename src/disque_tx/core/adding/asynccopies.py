"""ASYNC jobs whose copies are not all confirmed yet (see ``replication``)."""

from __future__ import annotations

from mypy_extensions import i64

from disque_tx.core.jobs.job import Job
from disque_tx.messages.records import Keyed


class AsyncCopies(Keyed):
    """An ASYNC job, by its ID, with ``unconfirmed`` nodes; ``wanted`` answers are still missing;
    ``attempts``: how often they were asked again."""

    __slots__ = ("attempts", "job", "unconfirmed", "wanted")

    def __init__(self, job: Job, unconfirmed: set[bytes], wanted: i64) -> None:
        super().__init__(job.id)
        self.job: Job = job
        self.unconfirmed: set[bytes] = unconfirmed
        self.wanted: i64 = wanted
        self.attempts: i64 = 0
