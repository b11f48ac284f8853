"""Append only files as tables (cluster protocol, section 14.2).

A later record cancels earlier ones, so only the records themselves can be read in ranges.
``view=records`` returns these, a task per range, cut between records: a body may contain bytes that
look like a record, so the driver scans the whole file once. ``view=jobs`` returns the jobs that a
node would load, a task per file, in two passes: first the offsets of the records that count, then
the records; so the memory of a task grows with the number of jobs and not with their bodies.

A file is read up to where it is truncated or damaged, as by a node and ``disque-check-aof``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from disque_tx.errors import PeerError
from disque_tx.messages.records import JobRecord
from disque_tx.spark.files.filters import OPTION, Conditions, filtering
from disque_tx.spark.files.folders import folder_options, found
from disque_tx.spark.options import FormatOptions
from disque_tx.spark.schema import AOF_JOBS_DDL, AOF_RECORDS_DDL, arrow_schema, batches, text
from disque_tx.text.counts import counted
from disque_tx.wire.files.aof import LogDecoder, parse_record

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_LOG: Final = logging.getLogger(__name__)
VIEWS: Final = ("jobs", "records")
_OPTIONS: Final = ("view", "rangeBytes", OPTION)
_PIECE_BYTES: Final = 1 << 20
_RANGE_BYTES: Final = 64 << 20
_STATES: Final = ("wait-repl", "active", "queued", "acked")
_CTIME_UNITS_IN_US: Final = 1000
_US_IN_S: Final = 1_000_000


@attrs.frozen
class LogOptions:
    """``range_bytes``: how much of a file a task reads, with ``view`` records. ``filtering``:
    whether conditions of the query are taken."""

    paths: tuple[str, ...]
    view: str
    range_bytes: int
    filtering: bool = False


@attrs.frozen
class LogDamage:
    """Where and why a file cannot be read any further."""

    offset: int
    what: str


def log_options(options: Mapping[str, str]) -> LogOptions:
    """What to read.

    :raises BadOption: when an option is unknown, missing or invalid.
    """
    paths = folder_options("disque_aof", options, *_OPTIONS)
    checked = FormatOptions("disque_aof", options, ("path", "paths", *_OPTIONS))
    size = checked.number("rangeBytes", 1, 1 << 40) or _RANGE_BYTES
    return LogOptions(paths, checked.choice("view", VIEWS), size, filtering(checked))


class LogReader(DataSourceReader):
    """Reads append only files, of this package and of the original."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._conditions = Conditions()

    def partitions(self) -> list[InputPartition]:
        """Files, or ranges of files from one record to another."""
        named = (file for path in self._options.paths for file in found(path, (".aof",)))
        files = [file for file in named if self._conditions.allow("file", file)]
        if self._options.view == "jobs":
            return [InputPartition((file, 0, None)) for file in files]
        ranges = (cut for file in files for cut in _ranges(file, self._options.range_bytes))
        return [InputPartition(cut) for cut in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task. Spark plans one without a value when there are none."""
        if partition.value is None:
            return
        file, start, end = partition.value
        if self._options.view == "jobs":
            rows, ddl = live_jobs(file, self._conditions), AOF_JOBS_DDL
        else:
            rows, ddl = _record_rows(file, start, end, self._conditions), AOF_RECORDS_DDL
        yield from batches(rows, arrow_schema(ddl))


class FilteringLogReader(LogReader):
    """The same, without other files, and without jobs with other IDs and of other queues."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """What the query wants to see."""
        self._conditions = Conditions.of(filters)
        return filters


def records(
    file: str, start: int = 0, end: int | None = None
) -> Iterator[tuple[int, JobRecord | bytes | LogDamage]]:
    """Offsets with the job of a LOADJOB, the ID of a DELJOB, or at the end the damage. Records of
    keys are passed over.

    ``start``: of a record; ``end``: of another, ``None`` to the end of the file.
    """
    decoder = LogDecoder()
    with open(file, "rb") as log:
        log.seek(start)
        while end is None or start + decoder.offset < end:
            at = start + decoder.offset
            try:
                words = decoder.next()
                if words is not None:
                    record = parse_record(words)
                    if isinstance(record, JobRecord | bytes):
                        yield at, record
                    continue
            except PeerError as error:
                yield at, LogDamage(at, f"damaged: {error}")
                return
            piece = log.read(_PIECE_BYTES)
            if not piece:
                if decoder.rest():
                    yield (
                        at,
                        LogDamage(at, f"cut: {counted(decoder.rest(), 'byte')} of a record"),
                    )
                return
            decoder.feed(piece)


def live_jobs(file: str, conditions: Conditions = Conditions()) -> Iterator[tuple[Any, ...]]:
    """The jobs that a node would load, as rows. A second LOADJOB of a job is ignored."""
    places: dict[bytes, int] = {}
    for offset, record in records(file):
        if isinstance(record, JobRecord):
            places.setdefault(record.id, offset)
        elif isinstance(record, LogDamage):
            _LOG.warning("%s was read up to byte %d, where it is %s.", file, offset, record.what)
        else:
            places.pop(record, None)
    wanted = set(places.values())
    for offset, record in records(file):
        if offset not in wanted or not isinstance(record, JobRecord):
            continue
        if _may_be_wanted(record, conditions):
            yield _job(file, offset, record)


def _ranges(file: str, size: int) -> Iterator[tuple[str, int, int | None]]:
    """Ranges of about that size, each from one record to another."""
    start = 0
    for offset, _ in records(file):
        if offset - start >= size:
            yield file, start, offset
            start = offset
    yield file, start, None


def _record_rows(
    file: str, start: int, end: int | None, conditions: Conditions
) -> Iterator[tuple[Any, ...]]:
    for offset, record in records(file, start, end):
        if isinstance(record, JobRecord):
            if not _may_be_wanted(record, conditions):
                continue
            yield ("load", *_job(file, offset, record), None)
        elif isinstance(record, LogDamage):
            _LOG.warning("%s was read up to byte %d, where it is %s.", file, offset, record.what)
            yield ("damage", file, offset, *[None] * 12, record.what)
        else:
            yield ("delete", file, offset, text(record), *[None] * 11, None)


def _may_be_wanted(job: JobRecord, conditions: Conditions) -> bool:
    """Asked before a row is made of its body."""
    return conditions.allow("id", text(job.id)) and conditions.allow("queue", text(job.queue))


def _job(file: str, offset: int, job: JobRecord) -> tuple[Any, ...]:
    return (
        file,
        offset,
        text(job.id),
        text(job.queue),
        job.body,
        _STATES[job.state] if job.state < len(_STATES) else str(job.state),
        job.repl,
        job.ctime // _CTIME_UNITS_IN_US,
        job.etime_s * _US_IN_S,
        job.delay_s,
        job.retry_s,
        job.nacks,
        job.deliveries,
        [text(node) for node in job.nodes],
    )
