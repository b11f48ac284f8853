"""Which jobs have keys: what the store of jobs has to know, to report their ends.

Every job that ends comes here, so without keys that costs one test of ``by_job``.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64, mypyc_attr, u8

from disque_tx.core.jobs.job import Job
from disque_tx.core.jobs.observer import JobObserver
from disque_tx.core.nodes.membership import Membership
from disque_tx.messages.records import ACKED, DELIVERED, Linked

# How certain it is that a job has ended.
DOUBTFUL: Final = 0  # it may live on elsewhere
CERTAIN: Final = 1
ANNOUNCED: Final = 2  # certain, and the node that made it may not get to know


@mypyc_attr(acyclic=True)
class Reservation(Linked):
    """A key that a job has, or shall have.

    ``state``: see :mod:`disque_tx.messages.keys`. ``maker``: this node makes, or made, the job. Of
    the steady clock: ``expire_ms``, when the life of the job ends; ``keep_ms``, until when the key
    is kept at least, 0 for no longer than the job; ``check_ms``: when to look whether the job
    exists, 0 for never. ``born_ms``: when it was reserved, unix time. ``checks``: how often that
    was looked at; ``misses``: how often in a row no node had the job.
    """

    __slots__ = (
        "born_ms",
        "check_ms",
        "checks",
        "expire_ms",
        "job_id",
        "keep_ms",
        "key",
        "maker",
        "misses",
        "state",
    )

    def __init__(self, key: bytes, job_id: bytes, state: i64, maker: bool) -> None:
        super().__init__()
        self.key: bytes = key
        self.job_id: bytes = job_id
        self.state: u8 = u8(state)
        self.maker: bool = maker
        self.checks: u8 = 0
        self.misses: u8 = 0
        self.expire_ms: i64 = 0
        self.keep_ms: i64 = 0
        self.check_ms: i64 = 0
        self.born_ms: i64 = 0


class KeysByJob(JobObserver):
    """``by_job``: keys by the IDs of their jobs. ``ended``: IDs of jobs that have ended, until this
    is read, and how certain that is: of jobs with keys that this node knows, and of those whose
    keys others may know."""

    __slots__ = ("_membership", "by_job", "ended")

    def __init__(self, membership: Membership) -> None:
        self._membership: Membership = membership
        self.by_job: dict[bytes, Reservation] = {}
        self.ended: list[tuple[bytes, int]] = []

    def job_acknowledged(self, job: Job) -> None:
        if self.by_job and job.id in self.by_job:
            self.ended.append((job.id, CERTAIN))
        elif job.regained:
            self.unconfirmed(job.id)  # this node may have lost its key, too

    def unconfirmed(self, job_id: bytes) -> None:
        """The job is done, and the node that made it cannot be reached, or has forgotten it: others
        free its key."""
        self.ended.append((job_id, ANNOUNCED))

    def job_gone(self, job: Job) -> None:
        known = bool(self.by_job) and job.id in self.by_job
        if known or job.regained:
            moved = job.retry_s == 0 and job.flags & DELIVERED != 0
            certain = job.state == ACKED or (not self._elsewhere(job) and not moved)
            if known:
                self.ended.append((job.id, CERTAIN if certain else DOUBTFUL))
            elif certain and job.state != ACKED:
                self.unconfirmed(job.id)

    def _elsewhere(self, job: Job) -> bool:
        """Whether other nodes may have the job: a node that leaves makes jobs for them alone."""
        mine = self._membership.myself.id
        return len(job.nodes) > 1 or (len(job.nodes) == 1 and job.nodes[0] != mine)
