"""Keeping jobs of a batch from being delivered to others while it runs.

1. WORKING moves the next delivery of a job to RETRY from now. It is sent as soon as a batch is
   there, and then every third of the shortest RETRY in it.
2. A node refuses it in the second half of a job's TTL. The job then may be delivered again while
   the batch runs; this is said once, and the batch goes on.
3. A job with RETRY 0 is never delivered again, and needs nothing.
4. A job that no node knows, or that is acknowledged, is left alone: whether it can be read still
   shows when it is read.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from disque_tx.client import requests
from disque_tx.client.addresses import Address
from disque_tx.client.errors import (
    AlreadyAcknowledged,
    ClientError,
    ConnectionLost,
    TooLate,
    UnknownJob,
)
from disque_tx.spark.connections import Servers

_LOG: Final = logging.getLogger(__name__)
_BEATS_IN_RETRY: Final = 3
_BEAT_S_MIN: Final = 0.2
#: Until a node has said what RETRY is.
_BEAT_S_UNKNOWN: Final = 1.0


class Leases:
    """The jobs of the batch under way. ``beat_s``: how often to renew, ``None``: no need."""

    def __init__(self) -> None:
        self.beat_s: float | None = None
        self._jobs: Mapping[Address, Sequence[str]] = {}
        self._warned = False

    def take(self, jobs: Mapping[Address, Sequence[str]], servers: Servers) -> set[str]:
        """These are the jobs from now on; renew them at once, and return what that does."""
        self._jobs = jobs
        self.beat_s = _BEAT_S_UNKNOWN
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
                self.beat_s = None
            elif retries_s:
                self.beat_s = max(min(retries_s) / _BEATS_IN_RETRY, _BEAT_S_MIN)
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


class Heart:
    """Renews leases in a thread of its own, on connections of its own.

    ``connect``: makes them.
    """

    def __init__(self, leases: Leases, connect: Callable[[], Servers]) -> None:
        self._leases = leases
        self._connect = connect
        self._stopped = threading.Event()
        self._changed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="disque-leases", daemon=True)
        self._thread.start()

    def changed(self) -> None:
        """The leases are others now, and perhaps shorter."""
        self._changed.set()

    def stop(self) -> None:
        """Renew nothing any more."""
        self._stopped.set()
        self._changed.set()

    def _run(self) -> None:
        servers = self._connect()
        while not self._stopped.is_set():
            if self._changed.wait(self._leases.beat_s):
                self._changed.clear()
            else:
                self._beat(servers)
        servers.close()

    def _beat(self, servers: Servers) -> None:
        try:
            self._leases.renew(servers)
        except ClientError as error:
            _LOG.warning("The jobs of the batch could not be kept from others. %s", error)
