"""The stream source: queues as a stream for Spark.

At least once, with deterministic replay: a batch that runs again has the same jobs. See
:mod:`disque_tx.spark.source.intake` for the driver's part and
:mod:`disque_tx.spark.source.jobrows` for the tasks'.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from disque_tx.spark.batches import batches
from disque_tx.spark.options import Reading
from disque_tx.spark.schema import JOBS_DDL, arrow_schema
from disque_tx.spark.source import jobrows
from disque_tx.spark.source.intake import Intake
from disque_tx.spark.source.leases import Heart, Leases
from disque_tx.spark.source.offsets import Offset, from_json, shares


@attrs.define
class _Driver:
    """What lives in the driver's process alone. ``left``: jobs until a query ends that was to
    take what is available, ``None`` for one that goes on."""

    intake: Intake
    heart: Heart
    left: int | None = None


class JobStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Made and copied in several processes; only the driver's opens connections."""

    def __init__(self, options: Reading) -> None:
        self._options = options
        self._driver: _Driver | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_driver": None}

    def initialOffset(self) -> dict[str, Any]:
        """Before the first batch."""
        return Offset().as_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """The jobs of a batch, by ``maxJobsPerTrigger``."""
        return ReadMaxRows(self._options.jobs_max)

    def prepareForTriggerAvailableNow(self) -> None:
        """The query ends when as many jobs were taken as are queued now."""
        driver = self._started()
        driver.left = driver.intake.waiting()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Acknowledge the batch that ended at ``start``, and fetch the next one."""
        driver = self._started()
        room = min(self._options.jobs_max, getattr(limit, "max_rows", self._options.jobs_max))
        if driver.left is not None:
            room = min(room, driver.left)
        begun = from_json(start)
        end = driver.intake.advance(begun, room)
        driver.heart.changed()
        if driver.left is not None and end is not begun:
            driver.left = max(0, driver.left - len(end))
        return end.as_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of the batch that ends at ``end``."""
        offset = from_json(end)
        if from_json(start).seq == offset.seq:
            return []
        driver = self._started()
        driver.intake.hold(offset)
        driver.heart.changed()
        batch = driver.intake.readable(offset)
        return [InputPartition(share) for share in shares(batch, self._options.partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The jobs of one task.

        :raises JobsLost: when jobs are gone, unless ``failOnDataLoss`` is false.
        """
        node, ids = partition.value
        servers = self._options.cluster.servers()
        try:
            found = jobrows.rows(servers, node, ids, self._options.strict)
            yield from batches(found, arrow_schema(JOBS_DDL))
        finally:
            servers.close()

    def stop(self) -> None:
        """Let the leases run out."""
        if self._driver is not None:
            self._driver.heart.stop()

    def _started(self) -> _Driver:
        if self._driver is None:
            options = self._options
            leases = Leases()
            servers = options.cluster.servers()
            intake = Intake(servers, options.queues, leases, options.strict)
            self._driver = _Driver(intake, Heart(leases, options.cluster.servers))
        return self._driver
