"""Heartbeats: they keep jobs from being delivered to other workers while this one holds them.

The rules are those of :mod:`disque_tx.client.leases`. A job that is still held 0.2 s after its
delivery gets its first heartbeat; shorter ones cost nothing. When a lease ends, the handler
continues, and can see it in ``lease_lost``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from disque_tx.client import ClientError
from disque_tx.client.leases import REFUSALS
from disque_tx.worker.base.context import HeldJob

_FIRST_S: Final = 0.2
_log = Logger()


class WorkerLeases:
    """Sends heartbeats for the jobs of a worker. ``lost``: called with each job whose heartbeat was
    refused."""

    def __init__(self, clock: IReactorTime, lost: Callable[[HeldJob], object]) -> None:
        self._clock = clock
        self._lost = lost

    def keep(self, delivery: Iterable[HeldJob]) -> None:
        """Send heartbeats for these jobs until they are released."""
        self._clock.callLater(_FIRST_S, self._first, delivery)

    def release(self, held: HeldJob) -> None:
        """Send no more WORKING for a job. One that was sent may still be unanswered."""
        held.lease.release()
        self._schedule(held)

    def _first(self, delivery: Iterable[HeldJob]) -> None:
        for held in delivery:
            if held.timer is None and held.lease.due_s is not None and held.lease.retry_s != 0:
                self.send_heartbeat(held)

    def send_heartbeat(self, held: HeldJob) -> Deferred[None]:
        """Send WORKING now. Never fails; fires when there is an answer."""
        if held.heartbeat is None:
            heartbeat = Deferred.fromCoroutine(self._send_heartbeat(held))
            if heartbeat.called:
                return heartbeat
            held.heartbeat = heartbeat
        return held.heartbeat

    async def _send_heartbeat(self, held: HeldJob) -> None:
        sent_s = self._clock.seconds()
        answer: int | ClientError
        try:
            try:
                answer = await held.delivered.working()
            except ClientError as error:
                answer = error
                _log.debug("WORKING for {id} failed: {error}", id=held.context.id, error=error)
            if held.lease.heard(answer, sent_s, self._clock.seconds()):
                _log.warn(
                    "Job {id} of queue {queue!r} may be delivered again while it is worked on:"
                    " {why}",
                    id=held.context.id,
                    queue=held.context.queue,
                    why=str(answer),
                )
            self._schedule(held)
            if isinstance(answer, REFUSALS):
                held.context.lease_lost = True
                self._lost(held)
        finally:
            held.heartbeat = None

    def _schedule(self, held: HeldJob) -> None:
        """Let the timer of a job run out when its next heartbeat is due, if one is."""
        if held.timer is not None and held.timer.active():
            held.timer.cancel()
        if held.lease.due_s is not None:
            wait_s = max(0.0, held.lease.due_s - self._clock.seconds())
            held.timer = self._clock.callLater(wait_s, self.send_heartbeat, held)
