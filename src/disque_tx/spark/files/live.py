"""The event logs of running nodes as a stream and as a table: nothing is copied first.

1. A node lists the finished files of its log, and sends them. A file is finished when it is large
   or old enough (``eventlog-rotate-time``), so an event comes by that time later at the most.
2. Within a log, which is what one node wrote from one start to the next, files are read in the
   order of the numbers of their first events. An offset has, for each log, the number of the file
   that was read last, whatever clocks say.
3. Of each node the latest logs are remembered; earlier ones count as read.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from disque_tx.spark.errors import EventsLost, NodeRefused
from disque_tx.spark.files.lines import batches, complete, pieces
from disque_tx.spark.files.remote import EventNodes, LogFile, place_of
from disque_tx.spark.offered import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

_LOG: Final = logging.getLogger(__name__)
#: Logs of a node that an offset remembers.
LOGS_KEPT: Final = 3
#: Files are listed again from an hour before the last one on: a clock may have been put back.
_SLACK: Final = timedelta(hours=1)

#: For each log, the number of the file that was read last.
Read = dict[str, int]


def _is_new(read: Read, file: LogFile) -> bool:
    if file.log in read:
        return file.first > read[file.log]
    boots = _boots(read, file.node)
    return len(boots) < LOGS_KEPT or file.boot_ms > boots[0]


def _boots(read: Read, node: str) -> list[int]:
    """When the logs of a node began that are remembered, the earliest first."""
    return sorted(int(log.partition("-")[2]) for log in read if log.startswith(f"{node}-"))


def _advanced(read: Read, files: Iterable[LogFile]) -> Read:
    """What was read with these files, too."""
    found = dict(read)
    for file in files:
        found[file.log] = max(file.first, found.get(file.log, -1))
    for node in {log.partition("-")[0] for log in found}:
        for boot_ms in _boots(found, node)[:-LOGS_KEPT]:
            del found[f"{node}-{boot_ms}"]
    return found


def _in_order(files: Iterable[LogFile]) -> list[LogFile]:
    """Hour by hour, but those of each node in the order in which it finished them."""
    by_name = sorted(files)
    of_node: dict[str, list[LogFile]] = defaultdict(list)
    for file in by_name:
        of_node[file.node].append(file)
    following = {
        node: iter(sorted(some, key=lambda file: (file.boot_ms, file.first)))
        for node, some in of_node.items()
    }
    return [next(following[file.node]) for file in by_name]


class Listing:
    """The files that nodes have, as far as they were listed; and which nodes have each."""

    def __init__(self, nodes: EventNodes) -> None:
        self.urls: dict[LogFile, list[str]] = {}
        self._nodes = nodes
        self._after: dict[str, str] = {}
        self._answered = False

    def refresh(self) -> list[str]:
        """List what is new. Nodes that do not answer are left out, and asked the next time; returns
        why they did not.

        :raises NodeRefused: when a node refuses, or none has ever answered.
        """
        found, silent = self._nodes.listed(self._after)
        for reason in silent:
            _LOG.warning("A node does not list its event log, and is asked again. %s", reason)
        if not found and not self._answered:
            raise NodeRefused(f"No node answers. {'; '.join(silent)}")
        self._answered = True
        for url, files in found.items():
            for file in files:
                having = self.urls.setdefault(file, [])
                if url not in having:
                    having.append(url)
            if files:
                self._after[url] = place_of(files[-1].hour - _SLACK)
        return silent

    def forget(self, read: Read) -> None:
        """Keep those only that are not read yet."""
        self.urls = {file: urls for file, urls in self.urls.items() if _is_new(read, file)}


class LiveEventReader(DataSourceReader):
    """All finished files, a task per file."""

    def __init__(self, nodes: EventNodes) -> None:
        self._nodes = nodes

    def partitions(self) -> Sequence[InputPartition]:
        """The files that there are now.

        :raises NodeRefused: when a node does not answer: its events would be missing.
        """
        listing = Listing(self._nodes)
        if silent := listing.refresh():
            raise NodeRefused(f"A node does not answer. {'; '.join(silent)}")
        return [InputPartition((file, listing.urls[file])) for file in _in_order(listing.urls)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The events of one file. Spark plans a task without a value when there are none."""
        if partition.value is not None:
            yield from _events(self._nodes, *partition.value)


class LiveEventStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Each finished file, once. ``files_max``: of a batch."""

    def __init__(self, nodes: EventNodes, files_max: int) -> None:
        self._nodes = nodes
        self._files_max = files_max
        self._listing = Listing(nodes)
        self._last: list[LogFile] | None = None
        self._read: Read = {}

    def initialOffset(self) -> dict[str, Any]:
        """The offset before the first batch."""
        return {"logs": {}}

    def getDefaultReadLimit(self) -> ReadLimit:
        """The maximum number of files in a batch: ``maxFilesPerTrigger``."""
        return ReadMaxFiles(self._files_max)

    def prepareForTriggerAvailableNow(self) -> None:
        """The query ends with what is finished now."""
        self._listing.refresh()
        self._last = list(self._listing.urls)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The last files of the next batch."""
        read = self._read = cast(Read, start["logs"])
        if self._last is None:
            self._listing.refresh()
        self._listing.forget(read)
        there = self._listing.urls if self._last is None else self._last
        files = _in_order(file for file in there if _is_new(read, file))
        if not isinstance(limit, ReadAllAvailable):
            files = files[: getattr(limit, "max_files", self._files_max)]
        return {"logs": _advanced(read, files)}

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """All that is finished, for the progress of the query."""
        return {"logs": _advanced(self._read, self._listing.urls)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """A task per file.

        :raises EventsLost: when it is not known any more what was in the batch.
        """
        before, after = cast(Read, start["logs"]), cast(Read, end["logs"])
        files = self._between(before, after)
        ends = {log for log, last in after.items() if before.get(log) != last}
        if ends - _ended(files, after):  # the query was started again
            self._listing = Listing(self._nodes)
            self._listing.refresh()
            files = self._between(before, after)
        for log in sorted(ends - _ended(files, after)):
            raise EventsLost(
                f"No node that answers has the file of log {log} that begins with event"
                f" {after[log]}, with which a batch ended."
            )
        return [InputPartition((file, self._listing.urls[file])) for file in files]

    def _between(self, before: Read, after: Read) -> list[LogFile]:
        return _in_order(
            file
            for file in self._listing.urls
            if _is_new(before, file) and not _is_new(after, file)
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The events of one file.

        :raises EventsLost: when no node has it any more.
        """
        yield from _events(self._nodes, *partition.value)


def _ended(files: Iterable[LogFile], after: Read) -> set[str]:
    """The logs of which the last file is among these."""
    return {file.log for file in files if after.get(file.log) == file.first}


def _events(nodes: EventNodes, file: LogFile, urls: list[str]) -> Iterator[pa.RecordBatch]:
    with nodes.content(urls, file) as content:
        yield from batches(complete(pieces(cast(Any, content), file.name), file.name))
