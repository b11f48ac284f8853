"""Queues as a stream and as a table for Spark: what Spark calls on the driver and in tasks.

How the driver fetches and acknowledges jobs is in :mod:`disque_tx.spark.source.intake`. A task gets
the jobs with its partition, or reads them by their IDs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from typing import Any, Final

import attrs
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from disque_tx.client.addresses import Address
from disque_tx.client.errors import ClientError
from disque_tx.client.requests import scans
from disque_tx.spark.errors import BadOption
from disque_tx.spark.offered import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from disque_tx.spark.options import ReadOptions
from disque_tx.spark.process.garbage import uncollected
from disque_tx.spark.schema import arrow_schema, batches
from disque_tx.spark.source import lag
from disque_tx.spark.source.announcing import QueryAnnouncer, identity
from disque_tx.spark.source.batchlog import BatchLog
from disque_tx.spark.source.fetching import Fetching, Limit
from disque_tx.spark.source.intake import StreamIntake, acknowledge
from disque_tx.spark.source.keeper import Keeper
from disque_tx.spark.source.leases import Heartbeat, SourceLeases
from disque_tx.spark.source.offsets import Offset, shares
from disque_tx.spark.source.returned import Returned
from disque_tx.spark.source.rows import job_row, job_rows, joined
from disque_tx.spark.source.staged import Staging

_LOG: Final = logging.getLogger(__name__)
_PAGE_JOBS: Final = 500


@attrs.define
class _Driver:
    """State of the driver's process only. ``id``: of the query. ``left``: with
    ``availableNow``, how many jobs are to be read before the query ends; ``None`` for a query
    without an end."""

    id: str
    log: BatchLog
    returned: Returned
    keeper: Keeper
    fetching: Fetching
    intake: StreamIntake
    heartbeat: Heartbeat
    announcer: QueryAnnouncer
    left: int | None = None

    def hold(self, kept: dict[str, Any], offset: Offset) -> None:
        """Keep the leases of the batch that runs, and let it be acknowledged if the query ends."""
        self.intake.hold(offset)
        self.heartbeat.changed()
        self.announcer.held = len(offset)
        self.keeper.tell((kept, self.intake.left_out))


@attrs.frozen
class _Task:
    """A task that reads the jobs of a node with these IDs, and with ``staging`` writes them to a
    file there. Other tasks get their rows."""

    node: Address
    ids: Sequence[str]
    staging: Staging | None


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
        return {"seq": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """The maximum number of jobs in a batch: ``maxJobsPerTrigger``."""
        return ReadMaxRows(self._options.jobs_max)

    def prepareForTriggerAvailableNow(self) -> None:
        """The query ends when as many jobs were fetched as are queued now."""
        driver = self._started()
        driver.left = lag.total(lag.waiting(driver.fetching, self._options.selection)).queued

    @uncollected()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Acknowledge the batch that ended at ``start``, and fetch the next one.

        :raises BadOption: with a trigger that never asks for a next one.
        """
        if isinstance(limit, ReadAllAvailable):
            raise BadOption(
                "With trigger(once=True) the jobs of the only batch would not be acknowledged. Use"
                " trigger(availableNow=True)."
            )
        driver = self._started()
        begun = driver.log.read(start)
        if returned := driver.returned.ids(start):
            driver.intake.leave_out(returned & begun.ids())
        room = min(self._options.jobs_max, getattr(limit, "max_rows", self._options.jobs_max))
        if driver.left is None:
            end = driver.intake.advance(begun, Limit(room, self._options.bytes_max))
        else:
            wanted = Limit(min(room, driver.left), self._options.bytes_max)
            end = driver.intake.advance_to_queued(begun, wanted)
            driver.left = max(0, driver.left - len(end)) if end is not begun else 0
        if end is begun:
            driver.keeper.tell(None)
            return start
        size = sum(jobs.size for jobs in driver.intake.fetched(end).values())
        kept = driver.log.write(end, start, size)
        driver.hold(kept, end)
        return kept

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """How far the query is behind, for the progress: ``sources[].latestOffset``. The query
        goes on when a node does not say, because it is busy for example."""
        try:
            return lag.as_json(lag.waiting(self._started().fetching, self._options.selection))
        except ClientError as error:
            _LOG.info("It is not known how far the query is behind. %s", error)
            return None

    @uncollected()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of the batch that ends at ``end``."""
        driver = self._started()
        offset = driver.log.read(end)
        if driver.log.read(start).seq == offset.seq:
            return []
        driver.hold(end, offset)
        returned = driver.returned.ids(end)
        if away := driver.intake.left_out - returned:
            # After a restart nobody would know of them.
            driver.returned.add(sorted(away))
        # What was given back before a restart may be a dead letter by now, and cannot be read.
        batch = driver.intake.readable(offset).without(returned)
        fetched = driver.intake.fetched(offset)
        # The same tasks whenever it runs, so that they can be told from others.
        divided = shares(batch, self._options.partitions, end.get("bytes", 0))
        staging = self._staging(offset.seq)
        if self._options.details or not (fetched or staging):
            return [InputPartition(_Task(node, ids, staging)) for node, ids in divided]
        jobs = joined(fetched[node].only(ids) for node, ids in batch.jobs.items() if fetched)
        if staging is None:
            rows = jobs.parts(len(ids) for _, ids in divided)
        else:
            # Here also when it runs again: executors may have neither this disk nor the nodes.
            found = jobs.rows.to_batches() if fetched else self._shown(divided)
            rows = [staging.store(found, self._options.ddl)] if divided else []
        return [InputPartition(_packed(each)) for each in rows]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The jobs of one task.

        :raises JobsLost: when jobs are gone, unless ``failOnDataLoss`` is false.
        """
        task: bytes | _Task = partition.value
        if isinstance(task, bytes):
            with pa.ipc.open_stream(task) as rows:
                yield from rows
            return
        jobs = self._shown([(task.node, task.ids)])
        yield from jobs if task.staging is None else [task.staging.store(jobs, self._options.ddl)]

    def _shown(self, several: Iterable[tuple[Address, Sequence[str]]]) -> Iterator[pa.RecordBatch]:
        """Jobs of nodes, read by their IDs."""
        with closing(self._options.cluster.servers()) as servers:
            rows = [job_rows(servers, node, ids, self._options) for node, ids in several]
            yield from batches(chain.from_iterable(rows), arrow_schema(self._options.ddl))

    def stop(self) -> None:
        """Send no more heartbeats: the leases expire. What is committed is acknowledged."""
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.heartbeat.stop()
            driver.announcer.stop()
            driver.keeper.close()
            driver.fetching.close()

    def _staging(self, seq: int) -> Staging | None:
        """Where this batch is put as files."""
        table = self._options.table
        return None if table is None else Staging(table, f"staged-{self._started().id}-", seq)

    def _started(self) -> _Driver:
        if self._driver is None:
            options = self._options
            log = BatchLog(options.checkpoint)
            returned = Returned(options.checkpoint)
            keeper = Keeper(_Settling(options, log, returned))
            leases = SourceLeases()
            fetching = Fetching(options.cluster, options.selection)
            intake = StreamIntake(options.cluster.servers(), fetching, leases, options.strict)
            heartbeat = Heartbeat(leases, options.cluster.servers)
            announcer = QueryAnnouncer(options)
            self._driver = _Driver(
                identity(options).id, log, returned, keeper, fetching, intake, heartbeat, announcer
            )
        return self._driver


def _packed(rows: pa.RecordBatch) -> bytes:
    """Rows as a task gets them with its partition."""
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema) as stream:
        stream.write_batch(rows)
    return bytes(out.getvalue())


@attrs.frozen
class _Settling:
    """What is done when a query ended: its last batch is acknowledged, if it was committed."""

    options: ReadOptions
    log: BatchLog
    returned: Returned

    def __call__(self, last: tuple[dict[str, Any], frozenset[str]]) -> None:
        kept, left_out = last
        if self.log.is_committed(kept):
            stored = self.log.read(kept).without(left_out | self.returned.ids(kept))
            with closing(self.options.cluster.servers()) as servers:
                acknowledge(servers, stored, strict=False)


class JobReader(DataSourceReader):
    """What is queued at the nodes, as a table. Nothing is fetched."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """A task per node and queue."""
        options = self._options
        return [
            InputPartition((node, queue))
            for node in options.cluster.addresses
            for queue in options.queues
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task. Spark plans one without a value when there are none."""
        if partition.value is not None:
            yield from batches(self._rows(*partition.value), arrow_schema(self._options.ddl))

    def _rows(self, node: Address, queue: str) -> Iterator[tuple[Any, ...]]:
        """What is queued at this node. A scan may return a job twice; it gets one row."""
        scan = scans.job_scan(queue, ("queued",), _PAGE_JOBS)
        seen: set[str] = set()
        cursor = -1
        with closing(self._options.cluster.servers()) as servers:
            while cursor:
                cursor, page = servers.connection(node).call(scan.page(max(cursor, 0)))
                for job in page:
                    if job.id not in seen:
                        seen.add(job.id)
                        yield job_row(job, self._options.details)
