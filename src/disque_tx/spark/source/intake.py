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
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from disque_tx.client.addresses import Address
from disque_tx.client.blocking.servers import Servers, rotated
from disque_tx.client.errors import CannotConnect, ClientError, ConnectionLost, Refused
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.selection import Selection
from disque_tx.client.values import Job
from disque_tx.spark.source.leases import SourceLeases
from disque_tx.spark.source.offsets import Offset

_LOG: Final = logging.getLogger(__name__)
#: GETJOB returns bodies, too, which are not kept: jobs per request, and bytes per batch.
_AT_ONCE: Final = 500
_BYTES_MAX: Final = 256 << 20
#: How long a job may be on its way from one node to another, and how often to look for it.
_ON_THE_WAY_S: Final = 1.0
_PAUSE_S: Final = 0.05


class StreamIntake:
    """The driver's side of a stream. ``strict``: whether to stop rather than lose jobs."""

    def __init__(self, servers: Servers, queues: Sequence[str], leases: SourceLeases, strict: bool):
        self._servers = servers
        self._queues = tuple(queues)
        self._selection = Selection.of(queues)
        self._leases = leases
        self._strict = strict
        self._acknowledged: int | None = None
        self._held: int | None = None
        self._left_out: set[str] = set()
        self._unreachable: set[Address] = set()

    def waiting(self) -> int:
        """How many jobs are queued at the nodes now.

        :raises CannotConnect: when no node can be reached.
        """
        lengths: list[int] = []
        tried: dict[str, str] = {}
        asked = [requests.queue_length(queue) for queue in self._queues]
        for address in self._servers.addresses:
            for answer in self._servers.ask(address, asked):
                if isinstance(answer, int):
                    lengths.append(answer)
                elif isinstance(answer, ConnectionLost):
                    tried[str(address)] = answer.reason
                else:
                    raise answer
        if not lengths:
            raise CannotConnect(tried)
        return sum(lengths)

    def advance(self, start: Offset, limit: int) -> Offset:
        """The offset of the next batch, of at most ``limit`` jobs; ``start`` if there are none.

        :raises CannotConnect: when no node can be reached.
        :raises Refused: when a node refuses to deliver.
        """
        done = self._stored(start)
        if self._acknowledged != start.seq:
            self._acknowledge(done)
            self._acknowledged = start.seq
        jobs = self._fetch(limit, done)
        if not jobs and not self._left_out:
            return start
        end = Offset(start.seq + 1, jobs)
        self.hold(end)
        return end

    def advance_to_queued(
        self, start: Offset, limit: int, sleep: Callable[[float], None] = time.sleep
    ) -> Offset:
        """Like :meth:`advance`, when it is known that jobs are queued. None may be found for a
        moment: a node without jobs asks the others for theirs, and such a job is queued nowhere
        while it is on its way."""
        end = self.advance(start, limit)
        waited_s = 0.0
        while limit and end is start and waited_s < _ON_THE_WAY_S:
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
                    "%d jobs are left out of a batch, as their nodes cannot be reached. They are"
                    " delivered again when the nodes are back.",
                    len(self._left_out),
                )

    def readable(self, offset: Offset) -> Offset:
        """The current batch without the jobs that are left out."""
        jobs = {
            node: [job_id for job_id in ids if job_id not in self._left_out]
            for node, ids in offset.jobs.items()
        }
        return Offset(offset.seq, jobs)

    def _stored(self, offset: Offset) -> Offset:
        """The jobs of the batch with this offset that are known to be stored."""
        if self._strict or self._held == offset.seq:
            return self.readable(offset)
        return Offset(offset.seq)

    def _acknowledge(self, offset: Offset) -> None:
        self._leases.replace({}, self._servers)
        for node, ids in offset.jobs.items():
            answers = self._servers.ask_holders(node, ids, requests.ack_jobs, _never)
            failed = [answer for answer in answers if isinstance(answer, ClientError)]
            if failed and self._strict:
                raise failed[0]
            if failed:
                _LOG.warning(
                    "%d stored jobs could not be acknowledged, and will be delivered again: %s",
                    len(failed),
                    failed[0],
                )

    def _fetch(self, limit: int, before: Offset) -> dict[Address, list[str]]:
        """Node → IDs of the jobs it delivered, each ID once."""
        done = before.ids()
        new: set[str] = set()
        found: dict[Address, list[str]] = {}
        tried: dict[str, str] = {}
        order = rotated(self._servers.addresses, before.seq)
        room = limit
        for number, address in enumerate(order):
            share = -(-room // (len(order) - number))
            try:
                ids = self._fetch_from(address, share, done, new)
            except ConnectionLost as error:
                tried[str(address)] = error.reason
                self._report_unreachable(address, error)
                continue
            self._unreachable.discard(address)
            room -= len(ids)
            if ids:
                found[address] = ids
        if len(tried) == len(order):
            raise CannotConnect(tried)
        return found

    def _fetch_from(self, address: Address, limit: int, done: set[str], new: set[str]) -> list[str]:
        """IDs that are neither in the batch before, which is stored, nor in this one already.

        A job that is delivered twice while a batch is fetched, as its RETRY was almost over, counts
        once.
        """
        ids: list[str] = []
        size = 0
        while len(ids) < limit and size < _BYTES_MAX:
            count = min(_AT_ONCE, limit - len(ids))
            jobs = self._get_jobs(address, count)
            again = [job.id for job in jobs if job.id in done]
            if again:
                self._servers.ask(address, [requests.ack_jobs(*again)])
            came = dict.fromkeys(job.id for job in jobs)
            first = [job_id for job_id in came if job_id not in done and job_id not in new]
            new.update(first)
            ids += first
            size += sum(len(job.body) for job in jobs)
            if len(jobs) < count:
                break
        return ids

    def _get_jobs(self, address: Address, count: int) -> list[Job]:
        (answer,) = self._servers.ask(address, [self._selection.request(count)])
        if isinstance(answer, Refused) and answer.code == "LEAVING":
            # Its jobs move to other nodes, and are fetched there.
            return []
        if isinstance(answer, ClientError):
            raise answer
        return answer

    def _report_unreachable(self, address: Address, error: ConnectionLost) -> None:
        if address not in self._unreachable:
            self._unreachable.add(address)
            _LOG.warning("%s Meanwhile jobs are fetched from the other nodes.", error)


def _never(answer: object) -> bool:
    return False
