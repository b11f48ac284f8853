"""The batch source: queues as a table.

``peek`` looks at what is queued and takes nothing. ``lease`` takes jobs when the query is planned
and acknowledges none: they come again after their RETRY. ``drain`` acknowledges them when a task
has handed over its last row, which is before Spark has stored any; what fails then is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from disque_tx.client import requests
from disque_tx.client.addresses import Address
from disque_tx.spark.batches import batches
from disque_tx.spark.options import Reading
from disque_tx.spark.schema import JOBS_DDL, arrow_schema
from disque_tx.spark.servers import Servers
from disque_tx.spark.source import jobrows
from disque_tx.spark.source.intake import Intake
from disque_tx.spark.source.leases import Leases
from disque_tx.spark.source.offsets import Offset, shares

_PAGE_JOBS: Final = 500


class JobReader(DataSourceReader):
    """Reads queues once, in the way that ``mode`` names."""

    def __init__(self, options: Reading) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        """A task per node and queue to look at, or the jobs that were taken."""
        options = self._options
        if options.mode == "peek":
            return [
                InputPartition((node, queue))
                for node in options.cluster.addresses
                for queue in options.queues
            ]
        servers = options.cluster.servers()
        try:
            intake = Intake(servers, options.queues, Leases(), options.strict)
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
        """What is queued at this node. A listing may name a job twice; a row appears once."""
        scan = requests.job_scan(queue, ("queued",), _PAGE_JOBS)
        seen: set[str] = set()
        cursor = -1
        while cursor:
            cursor, page = servers.pipe(node).call(scan.page(max(cursor, 0)))
            for job in page:
                if job.id not in seen:
                    seen.add(job.id)
                    yield jobrows.row(job)

    def _lease(
        self, servers: Servers, node: Address, ids: tuple[str, ...]
    ) -> Iterator[tuple[Any, ...]]:
        return jobrows.rows(servers, node, ids, self._options.strict)

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
