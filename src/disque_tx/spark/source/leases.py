"""Leases of the jobs of a batch: they are not delivered to other consumers while it runs.

The rules are those of :mod:`disque_tx.client.leases`, with one lease for all jobs of a batch, by
the shortest RETRY among them. The first heartbeats are sent when the batch begins. A job whose
RETRY is 0, or whose heartbeat was refused, gets no others, and the batch goes on: whether a job
that is gone can still be read turns out when it is read. That jobs are too old is logged once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from disque_tx.client.addresses import Address
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.errors import ClientError, ConnectionLost, TooLate
from disque_tx.client.leases import REFUSALS, Lease
from disque_tx.text.counts import counted

_LOG: Final = logging.getLogger(__name__)


class _Batch(Lease):
    """The jobs that are leased together. ``jobs``: by the node that delivered them."""

    __slots__ = ("jobs",)

    def __init__(self, jobs: Mapping[Address, Sequence[str]]) -> None:
        super().__init__()
        self.jobs = jobs

    def heard_all(
        self, answers: Collection[int | ClientError], sent_s: float, now_s: float
    ) -> None:
        """Count the answers to the heartbeats of one round. Those that are missing are repeated
        soon, with all others."""
        going_on = [answer for answer in answers if _goes_on(answer)]
        if not going_on:
            self.release()
        retries_s = [answer for answer in going_on if isinstance(answer, int)]
        if retries_s:
            self.heard(min(retries_s), sent_s, now_s)
        missing = [answer for answer in going_on if isinstance(answer, ClientError)]
        if missing:
            self.heard(missing[0], sent_s, now_s)


class SourceLeases:
    """The leases of the current batch. ``now_s``: a steady clock."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._batch = _Batch({})
        self._batch.release()
        self._warned = False

    def wait_s(self) -> float | None:
        """How long until heartbeats are due; ``None`` if none are."""
        due_s = self._batch.due_s
        return None if due_s is None else max(0.0, due_s - self._now_s())

    def replace(self, jobs: Mapping[Address, Sequence[str]], servers: Servers) -> set[str]:
        """Lease these jobs instead of those before, at once; returns what :meth:`renew` does."""
        self._batch = _Batch(jobs)
        return self.renew(servers)

    def renew(self, servers: Servers) -> set[str]:
        """Postpone the next delivery of every job.

        Returns the jobs whose node cannot be reached, and that no other node knows.

        :raises ClientError: what the nodes answer cannot be read; the heartbeats are due again.
        """
        batch = self._batch  # another one may come in the meantime
        sent_s = self._now_s()
        away: set[str] = set()
        kept: dict[Address, Sequence[str]] = {}
        heard: set[int | ClientError] = set()
        try:
            for node, ids in batch.jobs.items():
                answers = servers.postpone(node, ids)
                # Many jobs have few different answers, as a rule a single one.
                different = set(answers)
                heard |= different
                kept[node] = ids
                if not all(isinstance(answer, int) and answer for answer in different):
                    pairs = list(zip(ids, answers, strict=True))
                    kept[node] = [id_ for id_, answer in pairs if _goes_on(answer)]
                    away.update(id_ for id_, answer in pairs if isinstance(answer, ConnectionLost))
        except ClientError as error:
            batch.heard(error, sent_s, self._now_s())
            raise
        batch.jobs = kept
        batch.heard_all(heard, sent_s, self._now_s())
        self._warn(sum(isinstance(answer, TooLate) for answer in heard))
        return away

    def _warn(self, late: int) -> None:
        if late and not self._warned:
            self._warned = True
            _LOG.warning(
                "More than half of the TTL of %s is over, so their nodes do not postpone the"
                " next delivery any more: they may be delivered again while the batch runs. Let"
                " the stream catch up, or add jobs with a longer TTL.",
                counted(late, "job"),
            )


def _goes_on(answer: int | ClientError) -> bool:
    """Whether to renew the job again."""
    return answer != 0 and not isinstance(answer, REFUSALS)


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
                if self._changed.wait(self._leases.wait_s()):
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
