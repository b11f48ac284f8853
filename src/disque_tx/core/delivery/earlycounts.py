"""Counts that came with a job before the message that makes them known.

Whoever counts a NACK or an additional delivery sends QUEUED to the other holders. The job itself
may go to one of them through a third node, and be faster: then it brings the new count with it, and
the QUEUED that follows must not be counted again. A first copy of a job may bring a count, too, and
be slower or faster than the QUEUED.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from mypy_extensions import i64

from disque_tx.core.base.part import Turn
from disque_tx.messages.bus import INCR_DELIV, INCR_NACKS

#: How much later the message may come, in milliseconds, and for how many jobs it is awaited.
LATE_MS: Final = 5_000
JOBS_MAX: Final = 10_000


class EarlyCounts:
    """By the ID of a job: NACKs and additional deliveries that came early, and when. The same of
    messages about jobs that are not known here, since they may be about to come."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._jobs: OrderedDict[bytes, tuple[int, int, int]] = OrderedDict()
        self._unknown: OrderedDict[bytes, tuple[int, int, int]] = OrderedDict()

    def came(self, job_id: bytes, nacks: i64, deliveries: i64) -> None:
        """A job brought counts with it that are higher by these numbers."""
        known = self._jobs.pop(job_id, None)
        if known is not None and self._turn.now_ms - known[2] <= LATE_MS:
            nacks += known[0]
            deliveries += known[1]
        self._jobs[job_id] = (int(nacks), int(deliveries), int(self._turn.now_ms))
        if len(self._jobs) > JOBS_MAX:
            self._jobs.popitem(last=False)

    def unknown(self, job_id: bytes, why: i64) -> None:
        """A QUEUED with these flags came about a job that is not known here."""
        if why & (INCR_NACKS | INCR_DELIV):
            nacks, deliveries, at_ms = self._unknown.pop(job_id, (0, 0, 0))
            if self._turn.now_ms - at_ms > LATE_MS:
                nacks = deliveries = 0
            nacks += 1 if why & INCR_NACKS else 0
            deliveries += 1 if why & INCR_DELIV else 0
            self._unknown[job_id] = (nacks, deliveries, int(self._turn.now_ms))
            if len(self._unknown) > JOBS_MAX:
                self._unknown.popitem(last=False)

    def arrived(self, job_id: bytes, nacks: i64, deliveries: i64) -> None:
        """The first copy of a job brought these counts; whose messages did not come yet may."""
        known = self._unknown.pop(job_id, None)
        if known is not None and self._turn.now_ms - known[2] <= LATE_MS:
            nacks = max(0, nacks - known[0])
            deliveries = max(0, deliveries - known[1])
        if nacks > 0 or deliveries > 0:
            self.came(job_id, nacks, deliveries)

    def came_back(self, job_id: bytes, nacks: i64, deliveries: i64) -> None:
        """Another node gave a job that this node had forgotten, with these counts. If messages
        about it came here, the next one of each kind may come, too; if none did, the others do not
        take this node for a holder."""
        known = self._unknown.get(job_id)
        if known is not None and self._turn.now_ms - known[2] <= LATE_MS:
            self.arrived(job_id, min(nacks, known[0] + 1), min(deliveries, known[1] + 1))

    def uncounted(self, job_id: bytes, why: i64) -> i64:
        """Which of the flags ``why`` of a QUEUED, ``INCR_NACKS`` and ``INCR_DELIV``, are still to
        be counted."""
        if not self._jobs:
            return why
        known = self._jobs.pop(job_id, None)
        if known is None or self._turn.now_ms - known[2] > LATE_MS:
            return why
        nacks, deliveries, at_ms = known
        if why & INCR_NACKS and nacks > 0:
            why &= ~INCR_NACKS
            nacks -= 1
        if why & INCR_DELIV and deliveries > 0:
            why &= ~INCR_DELIV
            deliveries -= 1
        if nacks > 0 or deliveries > 0:
            self._jobs[job_id] = (nacks, deliveries, at_ms)
        return why

    def forget_all(self) -> None:
        """All jobs are gone."""
        self._jobs.clear()
        self._unknown.clear()
