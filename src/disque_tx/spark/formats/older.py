"""Sources and sinks for PySpark 4.0 and 4.1, around those for later ones.

Before 4.2 Spark asks a source for the next offset without the one before it. Between two batches of
one process that is the end of the batch that was planned last; after a restart, what the checkpoint
says. Before 4.1 the sink of a stream gets rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.datasource import (
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
    WriterCommitMessage,
)

from disque_tx.spark.checkpoint import Checkpoint
from disque_tx.spark.errors import BadOption
from disque_tx.spark.offered import DataSourceStreamArrowWriter, ReadLimit
from disque_tx.spark.schema import batches

Kept = dict[str, Any]


class LimitedReader(Protocol):
    """A source as PySpark 4.2 has it."""

    def initialOffset(self) -> Kept: ...
    def getDefaultReadLimit(self) -> ReadLimit: ...
    def latestOffset(self, start: Kept, limit: ReadLimit) -> Kept: ...
    def partitions(self, start: Kept, end: Kept) -> Sequence[InputPartition]: ...
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]: ...
    def stop(self) -> None: ...


class OlderStreamReader(DataSourceStreamReader):
    """A source that finds out itself where it is. ``checkpoint``: of the query; ``None`` for a
    source whose next offset does not depend on the one before. ``mark``: a name that the offsets of
    this format have, and those of other formats have not."""

    def __init__(self, reader: LimitedReader, checkpoint: str | None, mark: str) -> None:
        self._reader = reader
        self._checkpoint = checkpoint
        self._mark = mark
        self._last: Kept | None = None

    def initialOffset(self) -> Kept:
        """The offset before the first batch."""
        return self._reader.initialOffset()

    def latestOffset(self) -> Kept:  # type: ignore[override]
        """The end of the next batch. A batch that was planned before a restart and is not done yet
        is the next one: with ``availableNow`` Spark asks before it runs that batch."""
        last, done = (self._last, True) if self._last is not None else self._planned()
        if not done:
            return last
        return self._reader.latestOffset(last, self._reader.getDefaultReadLimit())

    def partitions(self, start: Kept, end: Kept) -> Sequence[InputPartition]:
        """The tasks of a batch, which Spark has planned by now.

        :raises BadOption: when the query has two sources of this format.
        """
        if self._last is None:
            self._planned()
        self._last = end
        return self._reader.partitions(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        return self._reader.read(partition)

    def stop(self) -> None:
        """The query has ended."""
        self._reader.stop()

    def _planned(self) -> tuple[Kept, bool]:
        """The end of the last batch in the checkpoint, and whether that batch is done."""
        planned = Checkpoint(self._checkpoint).planned() if self._checkpoint else None
        ends = [end for end in _ends(planned.offsets) if self._mark in end] if planned else []
        if len(ends) > 1:
            raise BadOption(
                "Before PySpark 4.2, only one source of a query can have this format. Use a query"
                " for each, or name all queues or nodes in one source."
            )
        if planned is None or not ends:
            return self.initialOffset(), True
        return ends[0], planned.committed


def _ends(offsets: bytes) -> Iterator[Kept]:
    """What Spark stored for each source that stores a JSON object: a line each."""
    for line in offsets.splitlines():
        try:
            end = json.loads(line)
        except ValueError:
            continue
        if isinstance(end, dict):
            yield end


class RowStreamWriter(DataSourceStreamWriter):
    """A sink of streams that gets rows. ``columns``: of the stream."""

    def __init__(self, writer: DataSourceStreamArrowWriter, columns: pa.Schema) -> None:
        self._writer = writer
        self._columns = columns

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Write the rows of a task."""
        return self._writer.write(batches(iterator, self._columns))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """All tasks succeeded."""
        self._writer.commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """A task failed."""
        self._writer.abort(messages, batchId)
