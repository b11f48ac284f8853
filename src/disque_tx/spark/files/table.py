"""A table of events as a stream: each event that is ingested, once, in the order of commits.

An offset is a version of the Delta table. The first batch has the table as it is; each later one
has the files that were added since, from the log of the table. Merging files, and deleting events,
adds nothing to the stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from disque_tx.spark.errors import BadTable
from disque_tx.spark.offered import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from disque_tx.spark.paths import opened, resolved
from disque_tx.spark.pipeline.tables.changes import NotOnlyAdded, added_since
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.tables.events import EVENTS, event_schema

#: The version before the first one of a table.
_NONE = -1


class EventTableReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Streams the table at ``path``.

    :raises BadTable: when it is not a table of events.
    """

    def __init__(self, path: str) -> None:
        self._root = resolved(path)
        self._last: int | None = None
        if DeltaLog(self._root).what != EVENTS:
            raise BadTable(f"{self._root} is not a table of 'disque-pipeline ingest'.")

    def initialOffset(self) -> dict[str, Any]:
        """The offset before the first batch."""
        return {"version": _NONE}

    def getDefaultReadLimit(self) -> ReadLimit:
        """A batch has all that was committed."""
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """The query ends with what is in the table now."""
        self._last = DeltaLog(self._root).version

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The version of the table."""
        return {"version": DeltaLog(self._root).version if self._last is None else self._last}

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The same, for the progress of the query."""
        return {"version": DeltaLog(self._root).version}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """A task per file.

        :raises BadTable: when it is not known any more what was added.
        """
        first, last = start["version"], end["version"]
        if first == last:
            return []
        log = DeltaLog(self._root, as_of=last)
        if first == _NONE:
            return [InputPartition(file.path) for file in log.files()]
        try:
            names = added_since(log, first, skip_deletions=True)
        except NotOnlyAdded as error:
            raise BadTable(
                f"{self._root} cannot be read from version {first} on: {error}. Start the query"
                " with a new checkpoint."
            ) from error
        return [InputPartition(name) for name in names]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The events of a file."""
        system, place = opened(self._root)
        with pq.ParquetFile(f"{place}/{partition.value}", filesystem=system) as file:
            for batch in file.iter_batches():
                yield _completed(batch)


def _completed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """All columns of the table; earlier versions of this program wrote fewer."""
    schema = event_schema()
    columns = {name: batch.column(name) for name in batch.schema.names}
    columns["dt"] = columns["time"]
    missing = pa.nulls(len(batch))
    arrays = [columns.get(field.name, missing).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
