"""Which jobs this node gave to other nodes lately (YOURJOBS), and keeps a copy of.

The receiver of a job may have known it before, and may have forgotten it again, because it is done,
while the job was still on its way from this node. It would queue the job once more. This node
learns that the job is done, too, and sends the acknowledgement after the job, on the same link.

Every job that goes to another node comes here, and most are done soon, and not looked for again. So
they are remembered in two halves: when one is full, or old, the other is forgotten as a whole.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.nodes.peers import Peers
from disque_tx.messages.bustypes import SETACK

#: Longer than a message is on its way on one connection.
GIVEN_MS: Final = 30_000
#: Jobs remembered.
GIVEN_MAX: Final = 10_000


class RecentHandovers:
    """``limit``: jobs remembered, 2 or more."""

    def __init__(self, peers: Peers) -> None:
        self.limit: i64 = GIVEN_MAX
        self._peers = peers
        # ID of a job → who got it. Those of the older half are from before _begun_ms.
        self._jobs: dict[bytes, tuple[bytes, ...]] = {}
        self._older: dict[bytes, tuple[bytes, ...]] = {}
        self._begun_ms: i64 = 0
        # The receiver of the last job, alone: most jobs share it.
        self._alone: tuple[bytes, ...] = (b"",)

    def note(self, job_id: bytes, receiver: bytes, now_ms: i64) -> None:
        """The job goes to a node."""
        if 2 * len(self._jobs) >= self.limit or now_ms - self._begun_ms > GIVEN_MS:
            self._older = self._jobs
            self._jobs = {}
            self._begun_ms = now_ms
        if self._alone[0] is not receiver:
            self._alone = (receiver,)
        before = self._receivers(job_id)
        self._jobs[job_id] = self._alone if before is None else (*before, receiver)

    def _receivers(self, job_id: bytes) -> tuple[bytes, ...] | None:
        found = self._jobs.get(job_id)
        if found is not None:
            del self._jobs[job_id]
        elif self._older:
            found = self._older.get(job_id)
            if found is not None:
                del self._older[job_id]
        return found

    def done(self, job_id: bytes, now_ms: i64, by: bytes = b"") -> None:
        """The job turned out to be done: its receivers must learn it after they got the job, except
        ``by``, from which this node knows, and which waits for an answer to that. No holder is
        named, so that a node of the original does not wait for this one (cluster protocol,
        section 19)."""
        if self._older and now_ms - self._begun_ms > GIVEN_MS:
            self._older = {}
        found = self._receivers(job_id) if self._jobs or self._older else None
        if found is not None:
            for receiver in found:
                if receiver != by:
                    self._peers.signal(receiver, SETACK, job_id, 0)

    def forget_all(self) -> None:
        """All jobs are gone."""
        self._jobs = {}
        self._older = {}
