"""The sink: tables and streams into queues.

``direct``: a job can be fetched as soon as it is added. A task that fails and runs again, or a
batch that runs again after a restart, adds its jobs again: at least once.

``unique``: the same, but each row has a key, by which a task or batch that runs again finds its
jobs added already, and adds nothing.

``staged``: no job can be fetched before all of a write, or of a batch of a stream, have been added.
Jobs that failed tasks added never become visible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import count
from typing import Final
from uuid import uuid4

import attrs
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from disque_tx.client.addresses import Address
from disque_tx.client.blocking.servers import PipelinedConnection
from disque_tx.client.errors import ClientError, Refused
from disque_tx.client.requests.encoding import Request
from disque_tx.spark.errors import WriteRefused
from disque_tx.spark.offered import DataSourceStreamArrowWriter
from disque_tx.spark.options import WriteOptions
from disque_tx.spark.sink import columns, staging
from disque_tx.text.counts import counted

#: What becomes of the jobs that a task added before it failed.
_FATES: Final = {
    "direct": "remain, and are added again by the next attempt",
    "staged": "are removed again",
    "unique": "remain, and are not added again by the next attempt",
}
_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"


@attrs.frozen
class Written(WriterCommitMessage):
    """The result of a task: at which node, how many jobs, and those that are staged, by queue."""

    node: Address
    jobs: int
    staged: Mapping[bytes, Sequence[str]]


class JobWriter:
    """What the sinks of tables and of streams share."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        self._write = uuid4().hex

    def add(self, batches: Iterable[pa.RecordBatch], task: int) -> Written:
        """Add all jobs of a task at one node.

        :raises BadColumn: for an invalid value; nothing of its batch was added.
        :raises CannotConnect: when no node can be reached.
        :raises WriteRefused: when the node refuses a job or is lost.
        """
        staged: dict[bytes, list[str]] = {}
        with closing(self._options.cluster.servers()) as servers:
            connection = servers.any_connection(task)
            jobs = 0
            keys = map(_beginning(self._write, task).__add__, map(str, count()))
            try:
                for batch in batches:
                    wanted = columns.jobs(batch, self._options, keys)
                    jobs += self._add(connection, wanted, staged, jobs)
            except BaseException:
                staging.withdraw(servers, {connection.address: staged})
                raise
            return Written(connection.address, jobs, staged)

    def _add(
        self,
        connection: PipelinedConnection,
        wanted: Sequence[tuple[bytes, Request[str]]],
        staged: dict[bytes, list[str]],
        before: int,
    ) -> int:
        """How many were added. ``before``: how many the task had added until then."""
        refused: list[Refused] = []
        added = 0
        try:
            if self._options.staged:
                _prepare(connection, {queue for queue, _ in wanted} - staged.keys(), staged)
            answers = connection.calls([request for _, request in wanted])
            for (queue, _), answer in zip(wanted, answers, strict=True):
                if isinstance(answer, Refused):
                    refused.append(answer)
                    continue
                added += 1
                if self._options.staged:
                    staged[queue].append(answer)
        except ClientError as error:
            raise self._failed(error, before + added) from error
        if refused:
            raise self._failed(refused[0], before + added)
        return added

    def _failed(self, error: ClientError, added: int) -> WriteRefused:
        fate = _FATES[self._options.mode]
        return WriteRefused(
            f"{error} The {counted(added, 'job')} that this task added before {fate}."
        )

    def publish(self, messages: Iterable[WriterCommitMessage | None]) -> None:
        """All tasks succeeded: make the staged jobs visible."""
        with closing(self._options.cluster.servers()) as servers:
            staging.publish(servers, _staged(messages))

    def withdraw(self, messages: Iterable[WriterCommitMessage | None]) -> None:
        """A task failed: remove what the others staged."""
        with closing(self._options.cluster.servers()) as servers:
            staging.withdraw(servers, _staged(messages))


def _prepare(
    connection: PipelinedConnection, queues: Iterable[bytes], staged: dict[bytes, list[str]]
) -> None:
    for queue in queues:
        connection.call(staging.pause(queue))
        staged[queue] = []


def _staged(messages: Iterable[WriterCommitMessage | None]) -> staging.Staged:
    """The staged jobs. A task that failed has no message."""
    jobs: dict[Address, dict[bytes, list[str]]] = defaultdict(lambda: defaultdict(list))
    for message in messages:
        if isinstance(message, Written):
            for queue, ids in message.staged.items():
                jobs[message.node][queue] += ids
    return jobs


def _beginning(write: str, task: int) -> str:
    """The beginning of the keys of a task: those of a batch are the same whenever it runs."""
    context = TaskContext.get()
    query = context.getLocalProperty(_QUERY_ID) if context is not None else None
    if context is None or query is None:
        return f"spark/{write}/{task}/"
    return f"spark/{query}/{context.getLocalProperty(_BATCH_ID)}/{task}/"


def _task() -> int:
    context = TaskContext.get()
    return context.partitionId() if context is not None else 0


class TableWriter(DataSourceArrowWriter):
    """The sink of ``df.write``."""

    def __init__(self, writer: JobWriter) -> None:
        self._writer = writer

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Add the jobs of a task; see :meth:`JobWriter.add`."""
        return self._writer.add(iterator, _task())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make staged jobs visible."""
        self._writer.publish(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove staged jobs."""
        self._writer.withdraw(messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """The sink of ``df.writeStream``; a batch is a write."""

    def __init__(self, writer: JobWriter) -> None:
        self._writer = writer

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Add the jobs of a task; see :meth:`JobWriter.add`."""
        return self._writer.add(iterator, _task())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Make staged jobs visible."""
        self._writer.publish(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Remove staged jobs."""
        self._writer.withdraw(messages)
