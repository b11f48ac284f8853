"""ACK and NACK for many jobs at once, and what is added before a job may be acknowledged.

Acknowledgements are repeated until a node takes them, however long there is none: a second one
changes nothing, and a job that is done must not be done again. A NACK is not repeated: if it is
lost the job comes back after its RETRY, or is dealt with as one that never does.
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
from disque_tx.worker.context import Held
from disque_tx.worker.leases import Leases
from disque_tx.worker.ports import Client

#: IDs in one request.
_AT_ONCE: Final = 500
#: After that many failures in a row (a minute or so) what is added is given up, and so is an
#: acknowledgement that nodes refuse.
_ATTEMPTS: Final = 20
_REST_S: Final = 0.1
_REST_S_MAX: Final = 5.0
_log = Logger()


class Settling:
    """How jobs leave the worker.

    ``ended``: is told of jobs that are no business of this worker any more. ``stranded``: of those
    that were to be given back, and that no node will deliver again. ``wall_s``: seconds since the
    epoch.
    """

    def __init__(
        self,
        client: Client,
        leases: Leases,
        clock: IReactorTime,
        ended: Callable[[list[Held]], object],
        stranded: Callable[[Held], object],
        wall_s: Callable[[], float],
    ) -> None:
        self._client = client
        self._leases = leases
        self._clock = clock
        self._ended = ended
        self._stranded = stranded
        self._wall_s = wall_s
        self._acks: list[Held] = []
        self._acking = False
        self._nacks: list[Held] = []
        self._rests: dict[Deferred[None], IDelayedCall] = {}
        self._closed = False

    # -- done --------------------------------------------------------------------------------

    def ack(self, held: Held) -> None:
        """It is done. Those of one moment go in one request; the lease is kept until then."""
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
                await self._client.ack_taken([held.taken for held in batch])
            except Exception as error:
                failures += 1
                if failures < _ATTEMPTS or not isinstance(error, Refused):
                    self._acks = batch + self._acks
                    await self.rest(failures, "ACKJOB", error)
                    continue
                _log.error("{n} jobs are done and could not be acknowledged", n=len(batch))
            failures = 0
            self._finish(batch)
        self._acking = False

    async def add(self, queue: str, body: bytes, options: AddOptions) -> bool:
        """Add something that must be there before a job is acknowledged; in doubt a second time.

        Returns whether it is there: after many failures it is given up.
        """
        options = attrs.evolve(options, retry_adds=True)
        for failures in range(1, _ATTEMPTS):
            if self._closed:
                break
            try:
                await self._client.add_job_with(queue, body, options)
                return True
            except Exception as error:
                await self.rest(failures, f"ADDJOB to {queue!r}", error)
        return False

    async def rest(self, failures: int, what: str, error: Exception) -> None:
        """Wait before something is tried again; the first failure in a row is logged."""
        if failures == 1:
            _log.warn("{what} failed, and is repeated: {error}", what=what, error=error)
        rest: Deferred[None] = Deferred()
        wait_s = min(_REST_S * 2.0 ** (failures - 1), _REST_S_MAX)
        self._rests[rest] = self._clock.callLater(wait_s, rest.callback, None)
        await rest
        del self._rests[rest]

    def close(self) -> None:
        """Nothing is sent any more: what is not settled is left to its RETRY."""
        self._closed = True
        for rest, timer in list(self._rests.items()):
            timer.cancel()
            rest.callback(None)

    # -- not done ----------------------------------------------------------------------------

    def nack(self, held: Held) -> None:
        """Give it back, to be delivered again at once."""
        self._leases.release(held)
        if self._closed:
            return
        if held.beating is not None:
            # A WORKING that arrives after the NACK would take the job out of its queue again.
            held.beating.addCallback(lambda _: self.nack(held))
            return
        self._nacks.append(held)
        if len(self._nacks) == 1:
            self._clock.callLater(0, self._start_nacks)

    def _start_nacks(self) -> None:
        nacks, self._nacks = self._nacks, []
        for start in range(0, len(nacks), _AT_ONCE):
            Deferred.fromCoroutine(self._send_nacks(nacks[start : start + _AT_ONCE]))

    async def _send_nacks(self, batch: list[Held]) -> None:
        try:
            queued = await self._client.nack_taken([held.taken for held in batch])
        except Exception as error:
            _log.warn(
                "{n} jobs could not be given back, and come after their RETRY: {error}",
                n=len(batch),
                error=error,
            )
            queued = 0
        stranded = await self._not_queued(batch) if queued < len(batch) else []
        self._finish([held for held in batch if held not in stranded])
        for held in stranded:
            self._stranded(held)

    async def _not_queued(self, batch: list[Held]) -> list[Held]:
        """Those among them with RETRY 0: NACK does nothing with them (client protocol, 17)."""
        found = []
        for held in batch:
            if held.retry_s is None:
                await self.fetch_options(held)
            if held.retry_s == 0:
                found.append(held)
        return found

    async def fetch_options(self, held: Held) -> None:
        """Ask for its RETRY and what else it was added with, by SHOW, which changes nothing, until
        there is an answer."""
        for failures in count(1):
            if self._closed:
                return
            try:
                details = await held.taken.show()
            except Exception as error:
                if failures >= _ATTEMPTS and isinstance(error, Refused):
                    return
                await self.rest(failures, "SHOW", error)
                continue
            # A mere acknowledgement knows nothing but the ID.
            if details is not None and details.state != "acked":
                held.terms = original_options(details, self._wall_s)
                if details.state == "active":
                    held.retry_s = details.retry_s
            return

    def leave(self, held: Held) -> None:
        """Do nothing with it: it comes back after its RETRY."""
        self._finish([held])

    def _finish(self, batch: list[Held]) -> None:
        for held in batch:
            self._leases.release(held)
        self._ended(batch)
