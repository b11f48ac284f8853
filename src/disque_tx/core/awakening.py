"""Jobs whose time has come: each is sent to the room that knows what is due."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.core.adding.replication import Replication
from disque_tx.core.base.part import Part
from disque_tx.core.delivery.acks import Acks
from disque_tx.core.delivery.delivery import Delivery
from disque_tx.core.jobs.job import Job
from disque_tx.core.redelivery.retries import Retries
from disque_tx.core.state.state import State
from disque_tx.messages.records import ACKED, WAIT_REPL

#: Jobs handled per turn, so that no turn grows with what is stored.
_JOBS_PER_TURN: Final = 2_000


class Awakening(Part):
    """Retries, ends of TTL, delays, backoffs, further attempts to collect acknowledgements or to
    make copies."""

    def __init__(
        self,
        state: State,
        replication: Replication,
        delivery: Delivery,
        acks: Acks,
        retries: Retries,
    ) -> None:
        self._turn = state.turn
        self._jobs = state.jobs
        self._policies = state.policies
        self._replication = replication
        self._delivery = delivery
        self._acks = acks
        self._retries = retries

    def next_due_ms(self) -> i64:
        return self._jobs.schedule.next_ms()

    def run_due(self) -> None:
        """Wake jobs that are due."""
        jobs = self._jobs.schedule.due(self._turn.now_ms, _JOBS_PER_TURN)
        done = 0
        try:
            for job in jobs:
                done += 1
                if self._jobs.get(job.id) is job:  # what was done for another may have ended it
                    self._awake(job)
        finally:
            # If one raises, put the rest back on the schedule.
            for job in jobs[done:]:
                if self._jobs.get(job.id) is job:
                    self._jobs.reschedule(job)

    def _awake(self, job: Job) -> None:
        if job.state == ACKED:
            self._acks.awake(job)
        elif job.state == WAIT_REPL and job.expire_ms > self._turn.now_ms:
            self._replication.retry(job)
        elif (job.backoff or self._policies.active) and job.state != WAIT_REPL:
            self._retries.awake(job)
        else:
            self._delivery.awake(job)
