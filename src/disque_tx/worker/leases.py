"""Keeps jobs from being delivered to somebody else while they are here.

1. The clock of RETRY starts when a job is queued, not when it is delivered, and GETJOB does not
   tell RETRY. So a job that is still here 0.2 s after its delivery gets a WORKING, which starts the
   clock anew and answers with RETRY. Shorter jobs cost nothing.
2. From then on WORKING is sent at 80 % of RETRY, counted from when the last one was sent.
3. A WORKING that got no answer is repeated after a tenth of RETRY, 0.2 s at least.
4. After one that was refused (half of the TTL is over, acknowledged, unknown) there are no more.
   The job goes on, and ``lease_lost`` tells its handler.
5. A job with RETRY 0 is never delivered again and gets no more of them, either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from disque_tx.client import AlreadyAcknowledged, ClientError, TooLate, UnknownJob
from disque_tx.worker.context import Held

SOON_S: Final = 0.2
_PART_OF_RETRY: Final = 0.8
_PART_AFTER_ERROR: Final = 0.1
_log = Logger()


class Leases:
    """``lost``: is told of each lease that cannot be prolonged."""

    def __init__(self, clock: IReactorTime, lost: Callable[[Held], object]) -> None:
        self._clock = clock
        self._lost = lost

    def keep(self, delivery: Iterable[Held]) -> None:
        """From now on, until they are released."""
        self._clock.callLater(SOON_S, self._first, delivery)

    def release(self, held: Held) -> None:
        """No more WORKING. One that was sent may still be without an answer."""
        held.leased = False
        if held.timer is not None and held.timer.active():
            held.timer.cancel()

    def _first(self, delivery: Iterable[Held]) -> None:
        for held in delivery:
            if held.leased and held.timer is None and held.retry_s != 0:
                self.beat(held)

    def beat(self, held: Held) -> Deferred[None]:
        """Send WORKING now. Never fails; fires when there is an answer."""
        if held.beating is None:
            beating = Deferred.fromCoroutine(self._beat(held))
            if beating.called:
                return beating
            held.beating = beating
        return held.beating

    async def _beat(self, held: Held) -> None:
        sent_s = self._clock.seconds()
        try:
            retry_s = await held.taken.working()
        except (TooLate, UnknownJob, AlreadyAcknowledged) as error:
            self._refused(held, str(error))
        except ClientError as error:
            _log.debug("WORKING for {id} failed: {error}", id=held.context.id, error=error)
            self._next(held, max(SOON_S, (held.retry_s or 0) * _PART_AFTER_ERROR))
        else:
            held.retry_s = retry_s
            if retry_s:
                self._next(held, sent_s + retry_s * _PART_OF_RETRY - self._clock.seconds())
        finally:
            held.beating = None

    def _next(self, held: Held, wait_s: float) -> None:
        if held.leased:
            if held.timer is not None and held.timer.active():
                held.timer.cancel()
            held.timer = self._clock.callLater(max(0.0, wait_s), self.beat, held)

    def _refused(self, held: Held, why: str) -> None:
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
