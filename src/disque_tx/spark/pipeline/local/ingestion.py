"""``ingest`` by DuckDB: lines are parsed by Arrow, a file after the other, and never in memory as a
whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import quote

import duckdb
import pyarrow as pa

from disque_tx.spark.errors import PipelineError
from disque_tx.spark.paths import resolved
from disque_tx.spark.pipeline.ingest.batches import IngestReport, StagedLines, Step, add_logs
from disque_tx.spark.pipeline.ingest.examination import Finding, examined
from disque_tx.spark.pipeline.ingest.fields import KEY, RENAMED, SAME
from disque_tx.spark.pipeline.local import lines, sql
from disque_tx.spark.pipeline.local.counting import all_runs, counted_runs
from disque_tx.spark.pipeline.local.database import Database, check_local, database
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.tables.events import EventTableLog
from disque_tx.spark.pipeline.tables.footers import Staged
from disque_tx.spark.pipeline.tables.runs import Run, Runs
from disque_tx.spark.schema import arrow_schema

_REJECTED: Final = arrow_schema("file STRING, reason STRING, line STRING")
_REJECTED_ROWS_MAX: Final = 1_000
#: What Java leaves as it is in the path of an address, beside letters, digits and all other than
#: ASCII.
_PLAIN: Final = "/-_.!~*'(),:;$&+=@"
_NOT_ASCII: Final = re.compile("([^\x00-\x7f]+)")


def ingest(paths: Iterable[str], into: str, step: Step = lambda _: None) -> IngestReport:
    """Add all logs in ``paths`` that are not in the table ``into`` yet to it.

    ``step`` and errors: of :func:`disque_tx.spark.pipeline.ingest.batches.add_logs`.
    """
    paths = list(paths)
    for path in (*paths, into):
        check_local(resolved(path))
    with database(resolved(into)) as rows:
        return add_logs(_DuckReading(rows), paths, into, step)


class _DuckReading:
    """DuckDB as :class:`~disque_tx.spark.pipeline.ingest.batches.Reading`."""

    def __init__(self, rows: Database) -> None:
        self._rows = rows
        #: The files with lines that are not events.
        self._bad: set[str] = set()

    def known(self, table: EventTableLog) -> tuple[Runs, Mapping[str, list[int]]]:
        noted = table.noted()
        if noted is not None:
            return noted
        return all_runs(self._rows, table), {}

    def examined(self, files: Iterable[tuple[str, int]]) -> list[Finding]:
        return examined(None, files)

    def stage(self, table: EventTableLog, files: list[Finding]) -> StagedLines:
        counts = {"events": 0, "bad": 0}

        def events() -> Iterator[pa.RecordBatch]:
            for path in (file.path for file in files):
                for some in lines.read(path):
                    counts["events"] += len(some.events)
                    counts["bad"] += len(some.others)
                    if some.others:
                        self._bad.add(path)
                    yield from some.events.to_batches()

        staged = self._write(lines.SCHEMA, events(), _event_columns(), table.root, "dt")
        return StagedLines(staged, counts["events"], counts["bad"])

    def runs(self, table: EventTableLog, staged: Staged, limit: int) -> list[Run]:
        self._rows.view("counted", table.log.schema, table.root, staged.files)
        return counted_runs(self._rows, "counted", limit)

    def without(self, table: EventTableLog, staged: Staged, known: list[Run]) -> Staged:
        names = [f"{table.root}/{name}" for name in staged.names]
        columns = ("node", "boot", "first", "last")
        ranges = pa.table(
            {name: [getattr(run, name) for run in known] for name in columns},
            arrow_schema("node STRING, boot BIGINT, first BIGINT, last BIGINT"),
        )
        self._rows.connection.register("ranges", ranges)
        try:
            return self._rows.write([_without(names)], table.root, "dt")
        finally:
            self._rows.connection.unregister("ranges")

    def stage_rejected(self, log: DeltaLog, paths: list[str], batch: int) -> Staged:
        bad = [path for path in paths if path in self._bad]
        columns = f"SELECT *, {batch}::BIGINT AS batch FROM lines"
        return self._write(_REJECTED, _rejected(bad), columns, log.root, "batch")

    def _write(
        self,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        query: str,
        root: str,
        partition_by: str,
    ) -> Staged:
        """Write what a query makes of batches, which it knows as ``lines``."""
        failed: list[PipelineError] = []

        def watched() -> Iterator[pa.RecordBatch]:
            try:
                yield from batches
            except PipelineError as error:
                failed.append(error)
                raise

        reader = pa.RecordBatchReader.from_batches(schema, watched())
        self._rows.connection.register("lines", reader)
        try:
            return self._rows.write([query], root, partition_by)
        except duckdb.Error:
            # It has only the text of an error in a batch.
            if failed:
                raise failed[0] from None
            raise
        finally:
            self._rows.connection.unregister("lines")


def _event_columns() -> str:
    """Lines as rows of the table of events."""
    renamed = (f"{sql.name(old)} AS {sql.name(new)}" for old, new in RENAMED.items())
    columns = [
        "substring(source, 8, 40) AS node",
        "CAST(split_part(id, '.', 1) AS BIGINT) AS boot",
        "CAST(split_part(id, '.', 2) AS BIGINT) AS seq",
        "time",
        "split_part(type, '.', 3) AS kind",
        *renamed,
        *map(sql.name, SAME),
        f"{sql.day('time')} AS dt",
    ]
    return f"SELECT {sql.listed(columns)} FROM lines"


def _rejected(paths: Iterable[str]) -> Iterator[pa.RecordBatch]:
    for path in paths:
        for some in lines.read(path):
            for first in range(0, len(some.others), _REJECTED_ROWS_MAX):
                rows = some.others[first : first + _REJECTED_ROWS_MAX]
                reasons, texts = zip(*rows, strict=True)
                yield pa.record_batch(
                    [[_address(path)] * len(rows), list(reasons), list(texts)], schema=_REJECTED
                )


def _address(path: str) -> str:
    """A resolved path as Spark names the file of a row."""
    escaped = (quote(part, _PLAIN) if part.isascii() else part for part in _NOT_ASCII.split(path))
    return f"file:{''.join(escaped)}"


def _without(names: Iterable[str]) -> str:
    """The events in files, each once, except those in the table ``ranges``. Only the keys of events
    are looked at together, as bodies may be large."""
    key = ", ".join(KEY)
    place = "(filename, file_row_number)"
    return f"""
WITH staged AS (
    FROM read_parquet({sql.texts(names)}, union_by_name = true, hive_partitioning = false,
        filename = true, file_row_number = true)
),
twice AS (
    SELECT {key}, min({place}) AS kept FROM staged GROUP BY {key} HAVING count(*) > 1
)
SELECT staged.* EXCLUDE (filename, file_row_number), {sql.day("time")} AS dt
FROM staged LEFT JOIN twice USING ({key})
WHERE (kept IS NULL OR kept = {place}) AND NOT EXISTS (
    FROM ranges WHERE ranges.node = staged.node AND ranges.boot = staged.boot
        AND staged.seq BETWEEN ranges.first AND ranges.last
)"""
