"""The sink: tables and streams into queues.

``direct``: a job can be fetched as soon as it is added. A task that fails and runs again, or a
batch that runs again after a restart, adds its jobs again: at least once.

``staged``: no job can be fetched before all of a write, or of a batch of a stream, are there. What
failed tasks added is never shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

import attrs
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from disque_tx.client.addresses import Address
from disque_tx.client.errors import ClientError, Refused
from disque_tx.client.requests import Request
from disque_tx.spark.connections import Pipe
from disque_tx.spark.errors import WriteRefused
from disque_tx.spark.options import Writing
from disque_tx.spark.sink import columns, staging


@attrs.frozen
class Written(WriterCommitMessage):
    """What a task did: how many jobs, and if they are staged, which ones, and at which node."""

    node: Address
    jobs: int
    staged: tuple[str, ...] = ()


class JobWriter:
    """What the sinks of tables and of streams share."""

    def __init__(self, options: Writing) -> None:
        self._options = options

    def add(self, batches: Iterable[pa.RecordBatch], task: int) -> Written:
        """Add all jobs of a task at one node.

        :raises BadColumn: for a value that cannot be; nothing of its batch was added.
        :raises CannotConnect: when no node can be reached.
        :raises WriteRefused: when the node refuses a job or is lost.
        """
        staged: list[str] = []
        with closing(self._options.cluster.servers()) as servers:
            pipe = servers.any_pipe(task)
            jobs = 0
            try:
                for batch in batches:
                    jobs += self._add(pipe, columns.jobs(batch, self._options), staged, jobs)
            except BaseException:
                staging.take_back(servers, {pipe.address: staged})
                raise
            return Written(pipe.address, jobs, tuple(staged))

    def _add(
        self, pipe: Pipe, wanted: Sequence[Request[str]], staged: list[str], before: int
    ) -> int:
        """How many were added. ``before``: by the task until now."""
        refused: list[Refused] = []
        added = 0
        try:
            for answer in pipe.calls(wanted):
                if isinstance(answer, Refused):
                    refused.append(answer)
                    continue
                added += 1
                if self._options.staged:
                    staged.append(answer)
        except ClientError as error:
            raise self._failed(error, before + added) from error
        if refused:
            raise self._failed(refused[0], before + added)
        return added

    def _failed(self, error: ClientError, added: int) -> WriteRefused:
        direct = "stay, and are added again by the next try"
        fate = "are taken back" if self._options.staged else direct
        return WriteRefused(f"{error} The {added} jobs that this task added before {fate}.")

    def show(self, messages: Iterable[WriterCommitMessage | None]) -> None:
        """All tasks are done."""
        with closing(self._options.cluster.servers()) as servers:
            staging.show_all(servers, _staged(messages))

    def hide(self, messages: Iterable[WriterCommitMessage | None]) -> None:
        """A task failed; take back what the others staged."""
        with closing(self._options.cluster.servers()) as servers:
            staging.take_back(servers, _staged(messages))


def _staged(messages: Iterable[WriterCommitMessage | None]) -> dict[Address, list[str]]:
    """Node → IDs of the staged jobs. A task that failed has no message."""
    jobs: dict[Address, list[str]] = defaultdict(list)
    for message in messages:
        if isinstance(message, Written) and message.staged:
            jobs[message.node] += message.staged
    return jobs


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
        """Show what is staged."""
        self._writer.show(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Take back what is staged."""
        self._writer.hide(messages)


class StreamWriter(DataSourceStreamArrowWriter):
    """The sink of ``df.writeStream``; a batch is a write."""

    def __init__(self, writer: JobWriter) -> None:
        self._writer = writer

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Add the jobs of a task; see :meth:`JobWriter.add`."""
        return self._writer.add(iterator, _task())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Show what is staged."""
        self._writer.show(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Take back what is staged."""
        self._writer.hide(messages)
