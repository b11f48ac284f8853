"""Segments of event logs as a table, even damaged ones (docs/reference/events.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceReader, InputPartition

from disque_tx.spark.files.filters import Conditions
from disque_tx.spark.files.folders import found
from disque_tx.spark.files.lines import batches, blocks

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_SUFFIXES: Final = (".jsonl", ".jsonl.zst")
#: What a name says: the node, and the hour of the first event.
_NAME: Final = re.compile(
    r"dt=(?P<day>\d{4}-\d\d-\d\d)/hour=(?P<hour>\d\d)/events-(?P<node>[0-9a-f]{8})-[^/]*$"
)
_HOUR: Final = timedelta(hours=1)
#: A clock that was put right may have gone back within a file.
_SLACK: Final = timedelta(hours=1)
_FILTERED: Final = ("type", "subject", "messaging.destination.name")


class EventReader(DataSourceReader):
    """Reads segments, a task per file."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self._paths = paths
        self._conditions = Conditions()

    def partitions(self) -> list[InputPartition]:
        """The finished files."""
        files = (file for path in self._paths for file in found(path, _SUFFIXES))
        return [InputPartition(file) for file in files if _may_have(file, self._conditions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The events of one file. Spark plans a task without a value when there are none."""
        if partition.value is not None:
            for events in batches(blocks(partition.value)):
                yield _matching(events, self._conditions)


class FilteringEventReader(EventReader):
    """The same, without files of other hours and nodes, and without events of other queues, jobs
    and types."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """What the query wants to see."""
        self._conditions = Conditions.of(filters)
        return filters


def _may_have(file: str, conditions: Conditions) -> bool:
    """Whether a file may have wanted events, by its name alone."""
    named = _NAME.search(file)
    if named is None:
        return True
    hour = datetime.fromisoformat(f"{named['day']}T{named['hour']}:00+00:00")
    sources = conditions.values.get("source")
    is_node = sources is None or any(
        source.removeprefix("disque:").startswith(named["node"]) for source in sources
    )
    return is_node and conditions.allow_between(hour - _SLACK, hour + _HOUR + _SLACK)


def _matching(events: pa.RecordBatch, conditions: Conditions) -> pa.RecordBatch:
    for column in _FILTERED:
        if column in conditions.values:
            wanted = pa.array(conditions.values[column], pa.string())
            events = events.filter(pc.is_in(events.column(column), value_set=wanted))
    return events
