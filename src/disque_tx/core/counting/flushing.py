"""QFLUSH: the jobs of a queue end as if they had been acknowledged, a slice of them per turn.

1. Copies on other nodes end, too, as they do after ACKJOB.
2. Queued jobs: as many as there were when the request came, oldest first.
3. Others are looked for among all jobs of the node, unless the tally of the queue has none of them.
4. Copies of jobs that are queued, delayed or in flight at another node are that node's to end; of
   jobs that came from the log, the node that counts them.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.counting.task import ResultReceiver, ResultTask
from disque_tx.core.delivery.acks import Acks
from disque_tx.core.jobs.job import BACKOFF, DELAYED, IN_FLIGHT, LOADED, NOWHERE, RESUMING, Job
from disque_tx.core.queues.endings import DELETED
from disque_tx.core.state.state import State
from disque_tx.messages import events
from disque_tx.messages.records import ACTIVE

#: Bits of the states that are to be flushed.
FLUSH_QUEUED: Final = 1
FLUSH_DELAYED: Final = 2
FLUSH_BACKOFF: Final = 4
FLUSH_IN_FLIGHT: Final = 8
FLUSH_LOADED: Final = 16
FLUSH_ANY: Final = 31
FLUSH_STATES: Final = {
    b"queued": FLUSH_QUEUED,
    b"delayed": FLUSH_DELAYED,
    b"backoff": FLUSH_BACKOFF,
    b"in-flight": FLUSH_IN_FLIGHT,
    b"loaded": FLUSH_LOADED,
    b"any": FLUSH_ANY,
}
_BITS: Final = {
    DELAYED: FLUSH_DELAYED,
    BACKOFF: FLUSH_BACKOFF,
    IN_FLIGHT: FLUSH_IN_FLIGHT,
    LOADED: FLUSH_LOADED,
    RESUMING: FLUSH_LOADED,
}
#: Jobs ended, and jobs looked at, per slice.
_ENDED_PER_SLICE: Final = 250
_SEEN_PER_SLICE: Final = 2_000


class Flushing(ResultTask):
    """Flushes one queue, whether anybody wants the result or not. The result: how many jobs."""

    __slots__ = (
        "_acks",
        "_cursor",
        "_endings",
        "_flushed",
        "_jobs",
        "_name",
        "_outbox",
        "_queued_left",
        "_queues",
        "_states",
        "_tallies",
        "_totals",
    )

    def __init__(
        self, state: State, acks: Acks, name: bytes, states: i64, receiver: ResultReceiver
    ) -> None:
        super().__init__(receiver)
        self._flushed: i64 = 0
        self._name = name
        self._states = states
        self._jobs = state.jobs
        self._endings = state.endings
        self._tallies = state.tallies
        self._queues = state.queues
        self._outbox = state.outbox
        self._totals = state.totals
        self._acks = acks
        self._cursor: int = 0
        queue = state.queues.get(name)
        self._queued_left: i64 = 0
        if queue is not None and states & FLUSH_QUEUED:
            self._queued_left = queue.jobs.size

    def step(self, now_ms: i64) -> bool:
        if self._queued_left > 0:
            self._flush_queued()
        elif not self._others_left() or self._flush_others():
            self.receiver.result([b"%d" % self._flushed])
            return True
        return False

    def _flush_queued(self) -> None:
        ended = 0
        while self._queued_left > 0 and ended < _ENDED_PER_SLICE:
            queue = self._queues.get(self._name)
            job = queue.jobs.first() if queue is not None else None
            if job is None:
                self._queued_left = 0
                return
            self._queued_left -= 1
            ended += 1
            self._end(job)

    def _others_left(self) -> bool:
        tally = self._tallies.get(self._name)
        if tally is None:
            return False
        for place in (DELAYED, BACKOFF, IN_FLIGHT, LOADED):
            if self._states & _BITS[place] and tally.of(place) > 0:
                return True
        return False

    def _flush_others(self) -> bool:
        """Whether the end of the table is reached."""
        seen = 0
        ended = 0
        while seen < _SEEN_PER_SLICE and ended < _ENDED_PER_SLICE:
            self._cursor, jobs = self._jobs.table.scan(self._cursor)
            seen += len(jobs) + 1
            for job in jobs:
                if self._wanted(job):
                    self._end(job)
                    ended += 1
            if self._cursor == 0:
                return True
        return False

    def _wanted(self, job: Job) -> bool:
        place = i64(job.place)
        if job.state != ACTIVE or place == NOWHERE or job.queue != self._name:
            return False
        return self._states & _BITS[int(place)] != 0

    def _end(self, job: Job) -> None:
        self._flushed += 1
        self._totals.flushed += 1
        self._outbox.record_event(events.DELETED, job, events.BY_FLUSH)
        self._endings.will_end(job, DELETED)
        self._acks.end(job)
