"""Parts that want to know what happens to jobs subscribe to :class:`JobStore` once, when a node is
created; the store knows none of them by name.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr

from disque_tx.core.jobs.job import Job
from disque_tx.core.lookup.table import Table

# What an observer subscribes to: bits.
ENDS: Final = 1
MOVES: Final = 2
RECORDS: Final = 4


@mypyc_attr(allow_interpreted_subclasses=True)
class JobObserver:
    """Each method does nothing unless a subclass overrides it. The store calls them for every job,
    so an observer that keeps nothing about any job returns after one test.

    ``next_on_end``, ``next_on_move``, ``next_on_record``: who is notified of the same after this
    observer. Where it is compiled, a chain costs half of a list, whose elements must be checked.
    """

    next_on_end: JobObserver | None = None
    next_on_move: JobObserver | None = None
    next_on_record: JobObserver | None = None

    def job_acknowledged(self, job: Job) -> None:
        """``ENDS``: no client gets the job any more; other nodes must learn of that."""

    def job_gone(self, job: Job) -> None:
        """``ENDS``: the node is about to forget the job."""

    def job_moved(self, job: Job, was: i64) -> None:
        """``MOVES``: ``job.place`` has changed; it was ``was``."""

    def job_recorded(self, job: Job) -> None:
        """``RECORDS``: a record of the job was written to the log, which exists."""

    def all_forgotten(self, jobs: Table[Job]) -> None:
        """The node is about to forget all its jobs. Every observer is notified of this."""
