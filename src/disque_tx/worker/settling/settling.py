"""Settles jobs: ACKJOB and NACK for many at once, and ADDJOBs that must precede an ACKJOB.

Acknowledgements are repeated until a node answers, however long that takes: a second one changes
nothing, and a job that is done must not be done again. A NACK is not repeated: if it is lost, the
job is delivered again after its RETRY; with RETRY 0 it becomes a dead letter.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from disque_tx.client import Refused
from disque_tx.client.options import AddOptions, original_options
from disque_tx.text.counts import counted
from disque_tx.worker.base.context import HeldJob, WorkerClient
from disque_tx.worker.settling.leases import WorkerLeases

#: IDs in one request.
_AT_ONCE: Final = 500
#: After this many failures in a row (about a minute) an ADDJOB is given up, and so is an ACKJOB
#: that nodes refuse.
_ATTEMPTS: Final = 20
_REST_S: Final = 0.1
_REST_S_MAX: Final = 5.0
_log = Logger()


class Settler:
    """Acknowledges jobs or gives them back.

    ``ended``: called with jobs that this worker does not hold any more. ``stranded``: with each job
    that should be given back, but that no node will deliver again. ``wall_s``: seconds since the
    epoch.
    """

    def __init__(
        self,
        client: WorkerClient,
        leases: WorkerLeases,
        clock: IReactorTime,
        ended: Callable[[list[HeldJob]], object],
        stranded: Callable[[HeldJob], object],
        wall_s: Callable[[], float],
    ) -> None:
        self._client = client
        self._leases = leases
        self._clock = clock
        self._ended = ended
        self._stranded = stranded
        self._wall_s = wall_s
        self._acks: list[HeldJob] = []
        self._acking = False
        self._nacks: list[HeldJob] = []
        self._backoffs: dict[Deferred[None], IDelayedCall] = {}
        self._closed = False

    # -- done --------------------------------------------------------------------------------

    def ack(self, held: HeldJob) -> None:
        """Acknowledge a job that is done. Jobs of one reactor turn share a request; heartbeats
        continue until it is answered."""
        self._acks.append(held)
        if not self._acking:
            self._acking = True
            self._clock.callLater(0, self._start_acks)

    def _start_acks(self) -> None:
        Deferred.fromCoroutine(self._send_acks())

    async def _send_acks(self) -> None:
        failures = 0
        while self._acks and not self._closed:
            batch, self._acks = self._acks[:_AT_ONCE], self._acks[_AT_ONCE:]
            try:
                await self._client.ack_taken([held.delivered for held in batch])
            except Exception as error:
                failures += 1
                if failures < _ATTEMPTS or not isinstance(error, Refused):
                    self._acks = batch + self._acks
                    await self.back_off(failures, "ACKJOB", error)
                    continue
                jobs = counted(len(batch), "job")
                _log.error("Done, and could not be acknowledged: {jobs}", jobs=jobs)
            failures = 0
            self._finish(batch)
        self._acking = False

    async def add(self, queue: str, body: bytes, options: AddOptions) -> bool:
        """Add a job that must exist before another one is acknowledged; if the outcome is unknown,
        it is added again.

        Returns whether it was added: after many failures it is given up.
        """
        options = attrs.evolve(options, retry_adds=True)
        for failures in range(1, _ATTEMPTS):
            if self._closed:
                break
            try:
                await self._client.add_job_with(queue, body, options)
                return True
            except Exception as error:
                await self.back_off(failures, f"ADDJOB to {queue!r}", error)
        return False

    async def back_off(self, failures: int, what: str, error: Exception) -> None:
        """Wait before a request is repeated; the first failure in a row is logged."""
        if failures == 1:
            _log.warn("{what} failed, and is repeated: {error}", what=what, error=error)
        back_off: Deferred[None] = Deferred()
        wait_s = min(_REST_S * 2.0 ** (failures - 1), _REST_S_MAX)
        self._backoffs[back_off] = self._clock.callLater(wait_s, back_off.callback, None)
        await back_off
        del self._backoffs[back_off]

    def close(self) -> None:
        """Send nothing more: jobs that are not settled are delivered again after their RETRY."""
        self._closed = True
        for back_off, timer in list(self._backoffs.items()):
            timer.cancel()
            back_off.callback(None)

    # -- not done ----------------------------------------------------------------------------

    def nack(self, held: HeldJob) -> None:
        """Give a job back, to be delivered again at once, or as the policy of its queue says."""
        self._leases.release(held)
        if self._closed:
            return
        if held.heartbeat is not None:
            # A WORKING that arrives after the NACK would remove the job from its queue again.
            held.heartbeat.addCallback(lambda _: self.nack(held))
            return
        self._nacks.append(held)
        if len(self._nacks) == 1:
            self._clock.callLater(0, self._start_nacks)

    def _start_nacks(self) -> None:
        nacks, self._nacks = self._nacks, []
        by_reason: dict[str | None, list[HeldJob]] = {}
        for held in nacks:
            by_reason.setdefault(held.reason, []).append(held)
        for reason, alike in by_reason.items():
            for start in range(0, len(alike), _AT_ONCE):
                batch = alike[start : start + _AT_ONCE]
                Deferred.fromCoroutine(self._send_nacks(batch, reason))

    async def _send_nacks(self, batch: list[HeldJob], reason: str | None) -> None:
        jobs = [held.delivered for held in batch]
        try:
            queued = await self._client.nack_taken(jobs, reason=reason)
        except Exception as error:
            _log.warn(
                "{jobs} could not be given back: delivery after RETRY: {error}",
                jobs=counted(len(batch), "job"),
                error=error,
            )
            queued = 0
        stranded = await self._not_queued(batch) if queued < len(batch) else []
        self._finish([held for held in batch if held not in stranded])
        for held in stranded:
            self._stranded(held)

    async def _not_queued(self, batch: list[HeldJob]) -> list[HeldJob]:
        """Jobs with RETRY 0, which NACK does not queue again (client protocol, section 17)."""
        found = []
        for held in batch:
            if held.lease.retry_s is None:
                await self.fetch_options(held)
            if held.lease.retry_s == 0:
                found.append(held)
        return found

    async def fetch_options(self, held: HeldJob) -> None:
        """Get the job's RETRY and the other options that it was added with, by SHOW, which is
        repeated until there is an answer."""
        for failures in count(1):
            if self._closed:
                return
            try:
                details = await held.delivered.show()
            except Exception as error:
                if failures >= _ATTEMPTS and isinstance(error, Refused):
                    return
                await self.back_off(failures, "SHOW", error)
                continue
            # A node that knows only the acknowledgement has no options.
            if details is not None and details.state != "acked":
                held.add_options = original_options(details, self._wall_s)
                if details.state == "active":
                    held.lease.retry_s = details.retry_s
            return

    def leave(self, held: HeldJob) -> None:
        """Release a job without a request: it is delivered again after its RETRY."""
        self._finish([held])

    def _finish(self, batch: list[HeldJob]) -> None:
        for held in batch:
            self._leases.release(held)
        self._ended(batch)
