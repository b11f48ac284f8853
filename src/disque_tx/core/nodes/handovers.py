"""Which jobs this node gave to other nodes lately (YOURJOBS), and keeps a copy of.

The receiver of a job may have known it before, and may have forgotten it again, because it is done,
while the job was still on its way from this node. It would queue the job once more. This node
learns that the job is done, too, and sends the acknowledgement after the job, on the same link.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from mypy_extensions import i64

from disque_tx.core.jobs.job import Job
from disque_tx.core.nodes.peers import Peers
from disque_tx.messages.bustypes import SETACK

#: Longer than a message is on its way on one connection.
GIVEN_MS: Final = 30_000
#: Jobs remembered.
GIVEN_MAX: Final = 10_000


class RecentHandovers:
    """The handovers by the ID of a job: who got it, and when. ``limit``: jobs remembered."""

    def __init__(self, peers: Peers) -> None:
        self.limit: i64 = GIVEN_MAX
        self._peers = peers
        # In the order of time, for an ID is taken out before it is put in.
        self._jobs: OrderedDict[bytes, tuple[tuple[bytes, ...], int]] = OrderedDict()

    def note(self, job: Job, receiver: bytes, now_ms: i64) -> None:
        """The job goes to a node."""
        jobs = self._jobs
        before = jobs.pop(job.id, None)
        others = before[0] if before is not None else ()
        jobs[job.id] = ((*others, receiver), int(now_ms))
        while jobs:
            oldest = next(iter(jobs))
            if len(jobs) <= self.limit and now_ms - jobs[oldest][1] <= GIVEN_MS:
                return
            del jobs[oldest]

    def done(self, job: Job, now_ms: i64) -> None:
        """The job turned out to be done: its receiver must learn it after it got the job. No holder
        is named, so that a node of the original does not wait for this one (cluster
        protocol, section 19)."""
        if not self._jobs:
            return
        found = self._jobs.pop(job.id, None)
        if found is not None and now_ms - found[1] <= GIVEN_MS:
            for receiver in found[0]:
                self._peers.signal(receiver, SETACK, job.id, 0)

    def forget_all(self) -> None:
        """All jobs are gone."""
        self._jobs.clear()
