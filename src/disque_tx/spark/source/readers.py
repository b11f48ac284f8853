"""Queues as a stream and as a table for Spark: what Spark calls on the driver and in tasks.

How the driver fetches and acknowledges jobs is in :mod:`disque_tx.spark.source.intake`. Tasks read
jobs by their IDs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import attrs
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from disque_tx.client.addresses import Address
from disque_tx.client.blocking.servers import Servers
from disque_tx.client.errors import ClientError, ConnectionLost
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests import scans
from disque_tx.client.requests.encoding import encoded
from disque_tx.client.values import JobDetails
from disque_tx.spark.errors import JobsLost
from disque_tx.spark.options import ReadOptions
from disque_tx.spark.schema import JOBS_DDL, arrow_schema, batches, text
from disque_tx.spark.source.intake import StreamIntake
from disque_tx.spark.source.leases import Heartbeat, SourceLeases
from disque_tx.spark.source.offsets import Offset, from_json, shares

_PAGE_JOBS: Final = 500


@attrs.define
class _Driver:
    """State of the driver's process only. ``left``: with ``availableNow``, how many jobs are to be
    read before the query ends; ``None`` for a query without an end."""

    intake: StreamIntake
    heartbeat: Heartbeat
    left: int | None = None


class JobStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Queues as a stream. Spark creates and copies it in several processes; only the one of the
    driver fetches jobs.

    At least once, with deterministic replay: a batch that runs again has the same jobs.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._driver: _Driver | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_driver": None}

    def initialOffset(self) -> dict[str, Any]:
        """The offset before the first batch."""
        return Offset().as_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """The maximum number of jobs in a batch: ``maxJobsPerTrigger``."""
        return ReadMaxRows(self._options.jobs_max)

    def prepareForTriggerAvailableNow(self) -> None:
        """The query ends when as many jobs were fetched as are queued now."""
        driver = self._started()
        driver.left = driver.intake.waiting()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Acknowledge the batch that ended at ``start``, and fetch the next one."""
        driver = self._started()
        room = min(self._options.jobs_max, getattr(limit, "max_rows", self._options.jobs_max))
        begun = from_json(start)
        if driver.left is None:
            end = driver.intake.advance(begun, room)
        else:
            end = driver.intake.advance_to_queued(begun, min(room, driver.left))
            driver.left = max(0, driver.left - len(end)) if end is not begun else 0
        driver.heartbeat.changed()
        return end.as_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of the batch that ends at ``end``."""
        offset = from_json(end)
        if from_json(start).seq == offset.seq:
            return []
        driver = self._started()
        driver.intake.hold(offset)
        driver.heartbeat.changed()
        batch = driver.intake.readable(offset)
        return [InputPartition(share) for share in shares(batch, self._options.partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The jobs of one task.

        :raises JobsLost: when jobs are gone, unless ``failOnDataLoss`` is false.
        """
        node, ids = partition.value
        servers = self._options.cluster.servers()
        try:
            found = job_rows(servers, node, ids, self._options.strict)
            yield from batches(found, arrow_schema(JOBS_DDL))
        finally:
            servers.close()

    def stop(self) -> None:
        """Send no more heartbeats: the leases expire."""
        if self._driver is not None:
            self._driver.heartbeat.stop()

    def _started(self) -> _Driver:
        if self._driver is None:
            options = self._options
            leases = SourceLeases()
            servers = options.cluster.servers()
            intake = StreamIntake(servers, options.queues, leases, options.strict)
            self._driver = _Driver(intake, Heartbeat(leases, options.cluster.servers))
        return self._driver


class JobReader(DataSourceReader):
    """Queues as a table, read once in the way that ``mode`` names.

    ``peek`` reads what is queued and fetches nothing. ``lease`` fetches jobs when the query is
    planned and acknowledges none: they are delivered again after their RETRY. ``drain``
    acknowledges them when a task has handed over its last row, which is before Spark has stored
    any; if it fails after that, they are lost.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """For ``peek`` a task per node and queue; otherwise the jobs that were fetched."""
        options = self._options
        if options.mode == "peek":
            return [
                InputPartition((node, queue))
                for node in options.cluster.addresses
                for queue in options.queues
            ]
        servers = options.cluster.servers()
        try:
            intake = StreamIntake(servers, options.queues, SourceLeases(), options.strict)
            taken = intake.advance(Offset(), options.jobs_max)
        finally:
            servers.close()
        return [InputPartition(share) for share in shares(taken, options.partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task. Spark plans one without a value when there are none."""
        if partition.value is None:
            return
        node, what = partition.value
        servers = self._options.cluster.servers()
        try:
            yield from batches(_READ[self._options.mode](self, servers, node, what), _SCHEMA)
        finally:
            servers.close()

    def _peek(self, servers: Servers, node: Address, queue: str) -> Iterator[tuple[Any, ...]]:
        """What is queued at this node. A scan may return a job twice; it gets one row."""
        scan = scans.job_scan(queue, ("queued",), _PAGE_JOBS)
        seen: set[str] = set()
        cursor = -1
        while cursor:
            cursor, page = servers.connection(node).call(scan.page(max(cursor, 0)))
            for job in page:
                if job.id not in seen:
                    seen.add(job.id)
                    yield job_row(job)

    def _lease(
        self, servers: Servers, node: Address, ids: tuple[str, ...]
    ) -> Iterator[tuple[Any, ...]]:
        return job_rows(servers, node, ids, self._options.strict)

    def _drain(
        self, servers: Servers, node: Address, ids: tuple[str, ...]
    ) -> Iterator[tuple[Any, ...]]:
        yield from self._lease(servers, node, ids)
        servers.ask(node, [requests.ack_jobs(job_id) for job_id in ids])


_SCHEMA: Final = arrow_schema(JOBS_DDL)
_READ: Final[dict[str, Callable[..., Iterator[tuple[Any, ...]]]]] = {
    "peek": JobReader._peek,
    "lease": JobReader._lease,
    "drain": JobReader._drain,
}


_LOG: Final = logging.getLogger(__name__)
#: The bodies of this many jobs are in the buffers of a node at once.
_AT_ONCE: Final = 100
_CTIME_UNITS_IN_US: Final = 1000


def job_rows(
    servers: Servers, node: Address, ids: Sequence[str], strict: bool
) -> Iterator[tuple[Any, ...]]:
    """The jobs as rows of the format ``disque``. Reading does not change them; reading again gives
    the same rows. ``strict``: whether missing jobs are an error, or are left out with a warning.

    :raises JobsLost: when strict, and no node knows a job any more; or when a node that may know it
        cannot be reached, as jobs that are left out here will be acknowledged.
    """
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        answers = servers.ask_holders(node, some, requests.show, _is_gone)
        lost = [
            (job_id, answer)
            for job_id, answer in zip(some, answers, strict=True)
            if not isinstance(answer, JobDetails) or answer.body is None
        ]
        if lost:
            _miss(node, lost, strict)
        for answer in answers:
            if isinstance(answer, JobDetails) and answer.body is not None:
                yield job_row(answer)


def job_row(job: JobDetails) -> tuple[Any, ...]:
    """A job as a row of the format ``disque``."""
    return (
        job.id,
        text(encoded(job.queue or "")),
        job.body,
        job.nacks,
        job.additional_deliveries,
        job.ctime // _CTIME_UNITS_IN_US,
    )


def _is_gone(answer: JobDetails | ClientError | None) -> bool:
    """Whether this node does not have the job, and another holder may."""
    return answer is None or (isinstance(answer, JobDetails) and answer.body is None)


def _miss(
    node: Address, lost: Sequence[tuple[str, JobDetails | ClientError | None]], strict: bool
) -> None:
    # First those of a node that cannot be reached: they may still exist.
    job_id, answer = max(lost, key=lambda one: isinstance(one[1], ConnectionLost))
    if isinstance(answer, ClientError) and not isinstance(answer, ConnectionLost):
        raise answer
    why = str(answer) if answer else "It was acknowledged elsewhere, deleted, evicted or expired."
    what = (
        f"{len(lost)} jobs that {node} delivered to this query cannot be read again, for"
        f" example {job_id}. {why}"
    )
    if strict or isinstance(answer, ConnectionLost):
        raise JobsLost(
            f"{what} Bring the node back and start the query again; or set failOnDataLoss to false"
            " to continue without these jobs: those that are still in the cluster are delivered"
            " again after their RETRY. If the checkpoint is old and its jobs are long gone, use"
            " that option once, or a new checkpointLocation."
        )
    _LOG.warning("%s They are left out.", what)
