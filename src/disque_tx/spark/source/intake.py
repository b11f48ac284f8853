"""From queues to batches: what the driver of a stream does.

1. Spark asks for the next offset when the batch before it is stored for good. Only then its jobs
   are acknowledged.
2. Then jobs are fetched, without waiting for any. Jobs of the batch before that are delivered
   again, because their lease expired, are acknowledged once more and left out.
3. With ``failOnDataLoss=false``, jobs whose only node cannot be reached when the batch begins are
   left out of it, and are not acknowledged: they are delivered again when the node is back. An
   offset without them follows, so that they are not acknowledged later. If it is not known which
   jobs were left out, because this process never saw the batch, none of it is acknowledged: twice
   is better than lost.
4. The IDs, and the nodes that delivered them, are the new offset. Spark stores it before the batch
   runs; before that, a crash only delays the jobs by their RETRY.
5. The jobs that GETJOB brought are kept until the next batch, so that tasks need not read them
   again. After a restart they are read by their IDs.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from disque_tx.client.addresses import Address
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.errors import ClientError
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.encoding import Request
from disque_tx.spark.source.fetching import Fetching, Limit
from disque_tx.spark.source.leases import SourceLeases
from disque_tx.spark.source.offsets import Offset
from disque_tx.spark.source.rows import JobRows
from disque_tx.text.counts import counted

_LOG: Final = logging.getLogger(__name__)
#: How long a job may be on its way from one node to another, and how often to look for it.
_ON_THE_WAY_S: Final = 1.0
_PAUSE_S: Final = 0.05
#: Jobs of one ACKJOB.
_AT_ONCE: Final = 500


class StreamIntake:
    """The driver's side of a stream. ``strict``: whether to stop rather than lose jobs."""

    def __init__(self, servers: Servers, fetching: Fetching, leases: SourceLeases, strict: bool):
        self._servers = servers
        self._fetching = fetching
        self._leases = leases
        self._strict = strict
        self._acknowledged: int | None = None
        self._held: int | None = None
        self._left_out: set[str] = set()
        self._fetched: tuple[int, Mapping[Address, JobRows]] = (0, {})

    @property
    def left_out(self) -> frozenset[str]:
        """The jobs of the current batch that are left out, and are not acknowledged with it."""
        return frozenset(self._left_out)

    def leave_out(self, ids: set[str]) -> None:
        """Do not acknowledge these jobs with their batch."""
        self._left_out |= ids

    def advance(self, start: Offset, limit: Limit) -> Offset:
        """The offset of the next batch; ``start`` if there are no jobs for one.

        :raises CannotConnect: when no node can be reached.
        :raises Refused: when a node refuses to deliver.
        """
        done = self._stored(start)
        if self._acknowledged != start.seq:
            self._leases.replace({}, self._servers)
            acknowledge(self._servers, done, self._strict)
            self._acknowledged = start.seq
        found = self._fetching.fetch(limit, start.seq, done.ids())
        if not found and not self._left_out:
            return start
        end = Offset(start.seq + 1, {node: jobs.ids for node, jobs in found.items()})
        self._fetched = (end.seq, found)
        self.hold(end)
        return end

    def advance_to_queued(
        self, start: Offset, limit: Limit, sleep: Callable[[float], None] = time.sleep
    ) -> Offset:
        """Like :meth:`advance`, when it is known that jobs are queued. None may be found for a
        moment: a node without jobs asks the others for theirs, and such a job is queued nowhere
        while it is on its way."""
        end = self.advance(start, limit)
        waited_s = 0.0
        while limit.jobs and end is start and waited_s < _ON_THE_WAY_S:
            sleep(_PAUSE_S)
            waited_s += _PAUSE_S
            end = self.advance(start, limit)
        return end

    def hold(self, offset: Offset) -> None:
        """Lease the jobs of this batch, if that has not been done yet."""
        if self._held != offset.seq:
            away = self._leases.replace(offset.jobs, self._servers)
            self._held = offset.seq
            self._left_out = set() if self._strict else away
            if self._left_out:
                _LOG.warning(
                    "Left out of a batch, as their nodes cannot be reached: %s. They are delivered"
                    " again when the nodes are back.",
                    counted(len(self._left_out), "job"),
                )

    def readable(self, offset: Offset) -> Offset:
        """The current batch without the jobs that are left out."""
        return offset.without(self._left_out)

    def fetched(self, offset: Offset) -> Mapping[Address, JobRows]:
        """Node → what it delivered, if this process fetched the batch; otherwise nothing."""
        seq, jobs = self._fetched
        return jobs if seq == offset.seq else {}

    def _stored(self, offset: Offset) -> Offset:
        """The jobs of the batch with this offset that are known to be stored."""
        if self._strict or self._held == offset.seq:
            return self.readable(offset)
        return Offset(offset.seq)


def acknowledge(servers: Servers, offset: Offset, strict: bool) -> None:
    """Acknowledge the jobs of a batch. ``strict``: whether to fail when some cannot be, or to let
    them be delivered again."""
    for node, ids in offset.jobs.items():
        # IDs have no spaces, so some of them are a text.
        several = [" ".join(ids[at : at + _AT_ONCE]) for at in range(0, len(ids), _AT_ONCE)]
        answers = servers.ask_holders(node, several, _acknowledgement, _never)
        failed = [answer for answer in answers if isinstance(answer, ClientError)]
        if failed and strict:
            raise failed[0]
        if failed:
            _LOG.warning(
                "%s could not be acknowledged, and will be delivered again: %s",
                counted(min(len(ids), len(failed) * _AT_ONCE), "stored job"),
                failed[0],
            )


def _acknowledgement(ids: str) -> Request[int]:
    return requests.ack_jobs(*ids.split())


def _never(answer: object) -> bool:
    return False
