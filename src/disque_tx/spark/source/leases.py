"""Leases of the jobs of a batch: they are not delivered to other consumers while it runs.

1. WORKING postpones the next delivery of a job to RETRY from now. It is sent when a batch begins,
   and then each time a third of the shortest RETRY in it has passed.
2. A node refuses it in the second half of a job's TTL. The job may then be delivered again while
   the batch runs; this is logged once, and the batch goes on.
3. A job with RETRY 0 is never delivered again, and needs no lease.
4. A job that no node knows, or that is acknowledged, is not renewed again: whether it can still be
   read turns out when it is read.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from disque_tx.client.addresses import Address
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.errors import (
    AlreadyAcknowledged,
    ClientError,
    ConnectionLost,
    TooLate,
    UnknownJob,
)
from disque_tx.client.requests import encoding as requests

_LOG: Final = logging.getLogger(__name__)
_HEARTBEATS_PER_RETRY: Final = 3
_INTERVAL_S_MIN: Final = 0.2
#: Until a reply to WORKING has reported the RETRY.
_FIRST_INTERVAL_S: Final = 1.0


class SourceLeases:
    """The jobs of the current batch. ``interval_s``: how often to renew, ``None``: not at all."""

    def __init__(self) -> None:
        self.interval_s: float | None = None
        self._jobs: Mapping[Address, Sequence[str]] = {}
        self._warned = False

    def replace(self, jobs: Mapping[Address, Sequence[str]], servers: Servers) -> set[str]:
        """Lease these jobs instead of those before, at once; returns what :meth:`renew` does."""
        self._jobs = jobs
        self.interval_s = _FIRST_INTERVAL_S
        return self.renew(servers)

    def renew(self, servers: Servers) -> set[str]:
        """Postpone the next delivery of every job.

        Returns the jobs whose node cannot be reached, and that no other node knows.
        """
        jobs = self._jobs
        away: set[str] = set()
        kept: dict[Address, list[str]] = {}
        retries_s: list[int] = []
        for node, ids in jobs.items():
            answers = servers.ask_holders(node, ids, requests.working, _is_unknown)
            retries_s += [answer for answer in answers if isinstance(answer, int) and answer > 0]
            kept[node] = [
                job_id for job_id, answer in zip(ids, answers, strict=True) if _goes_on(answer)
            ]
            away.update(
                job_id
                for job_id, answer in zip(ids, answers, strict=True)
                if isinstance(answer, ConnectionLost)
            )
            self._warn(sum(isinstance(answer, TooLate) for answer in answers))
        # Another batch may have come in the meantime.
        if self._jobs is jobs:
            self._jobs = kept
            if not any(kept.values()):
                self.interval_s = None
            elif retries_s:
                self.interval_s = max(min(retries_s) / _HEARTBEATS_PER_RETRY, _INTERVAL_S_MIN)
        return away

    def _warn(self, late: int) -> None:
        if late and not self._warned:
            self._warned = True
            _LOG.warning(
                "More than half of the TTL of %d jobs is over, so their nodes do not postpone the"
                " next delivery any more: they may be delivered again while the batch runs. Let"
                " the stream catch up, or add jobs with a longer TTL.",
                late,
            )


def _is_unknown(answer: object) -> bool:
    return isinstance(answer, UnknownJob)


def _goes_on(answer: int | ClientError) -> bool:
    """Whether to renew the job again."""
    if isinstance(answer, UnknownJob | AlreadyAcknowledged | TooLate):
        return False
    return answer != 0


class Heartbeat:
    """Renews leases in a thread of its own, on connections of its own.

    ``connect``: makes the connections.
    """

    def __init__(self, leases: SourceLeases, connect: Callable[[], Servers]) -> None:
        self._leases = leases
        self._connect = connect
        self._stopped = threading.Event()
        self._changed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="disque-leases", daemon=True)
        self._thread.start()

    def changed(self) -> None:
        """The leases have changed, and may need shorter intervals."""
        self._changed.set()

    def stop(self) -> None:
        """Stop renewing."""
        self._stopped.set()
        self._changed.set()

    def _run(self) -> None:
        servers = self._connect()
        try:
            while not self._stopped.is_set():
                if self._changed.wait(self._leases.interval_s):
                    self._changed.clear()
                else:
                    self._renew(servers)
        finally:
            servers.close()

    def _renew(self, servers: Servers) -> None:
        try:
            self._leases.renew(servers)
        except ClientError as error:
            _LOG.warning("The leases of the jobs of the batch could not be renewed. %s", error)
