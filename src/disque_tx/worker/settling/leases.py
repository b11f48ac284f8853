"""Heartbeats: they keep jobs from being delivered to other workers while this one holds them.

1. The RETRY timer starts when a job is queued, not when it is delivered, and GETJOB does not return
   RETRY. So a job that is still held 0.2 s after its delivery gets a WORKING, which restarts the
   timer and answers with RETRY. Shorter jobs cost nothing.
2. From then on WORKING is sent at 80 % of RETRY, or earlier if that is short, counted from when the
   last one was sent.
3. A WORKING that got no answer is repeated after a tenth of RETRY, 0.2 s at least.
4. After one that was refused (half of the TTL is over, acknowledged, unknown) no more are sent.
   The handler continues, and can see it in ``lease_lost``.
5. A job with RETRY 0 is never delivered again, and gets no more heartbeats, either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from disque_tx.client import AlreadyAcknowledged, ClientError, TooLate, UnknownJob
from disque_tx.client.heartbeats import renewal_s
from disque_tx.worker.base.context import HeldJob

SOON_S: Final = 0.2
_PART_AFTER_ERROR: Final = 0.1
_log = Logger()


class WorkerLeases:
    """Sends heartbeats for the jobs of a worker. ``lost``: called with each job whose heartbeat was
    refused."""

    def __init__(self, clock: IReactorTime, lost: Callable[[HeldJob], object]) -> None:
        self._clock = clock
        self._lost = lost

    def keep(self, delivery: Iterable[HeldJob]) -> None:
        """Send heartbeats for these jobs until they are released."""
        self._clock.callLater(SOON_S, self._first, delivery)

    def release(self, held: HeldJob) -> None:
        """Send no more WORKING for a job. One that was sent may still be unanswered."""
        held.leased = False
        if held.timer is not None and held.timer.active():
            held.timer.cancel()

    def _first(self, delivery: Iterable[HeldJob]) -> None:
        for held in delivery:
            if held.leased and held.timer is None and held.retry_s != 0:
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
        try:
            retry_s = await held.delivered.working()
        except (TooLate, UnknownJob, AlreadyAcknowledged) as error:
            self._refused(held, str(error))
        except ClientError as error:
            _log.debug("WORKING for {id} failed: {error}", id=held.context.id, error=error)
            self._next(held, max(SOON_S, (held.retry_s or 0) * _PART_AFTER_ERROR))
        else:
            held.retry_s = retry_s
            if retry_s:
                self._next(held, sent_s + renewal_s(retry_s) - self._clock.seconds())
        finally:
            held.heartbeat = None

    def _next(self, held: HeldJob, wait_s: float) -> None:
        if held.leased:
            if held.timer is not None and held.timer.active():
                held.timer.cancel()
            held.timer = self._clock.callLater(max(0.0, wait_s), self.send_heartbeat, held)

    def _refused(self, held: HeldJob, why: str) -> None:
        if held.leased:
            _log.warn(
                "Job {id} of queue {queue!r} may be delivered again while it is worked on: {why}",
                id=held.context.id,
                queue=held.context.queue,
                why=why,
            )
        self.release(held)
        held.context.lease_lost = True
        self._lost(held)
