"""``ingest`` by DuckDB: files are read in threads of this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from disque_tx.spark.paths import resolved
from disque_tx.spark.pipeline.ingest.batches import IngestReport, Step, add_logs
from disque_tx.spark.pipeline.ingest.fields import KEY
from disque_tx.spark.pipeline.ingest.workers import LocalThreads, Workers
from disque_tx.spark.pipeline.local import sql
from disque_tx.spark.pipeline.local.counting import all_runs, counted_runs
from disque_tx.spark.pipeline.local.database import Database, check_local, database
from disque_tx.spark.pipeline.tables.events import EventTableLog
from disque_tx.spark.pipeline.tables.footers import Staged
from disque_tx.spark.pipeline.tables.runs import Run, Runs
from disque_tx.spark.schema import arrow_schema


def ingest(paths: Iterable[str], into: str, step: Step = lambda _: None) -> IngestReport:
    """Add all logs in ``paths`` that are not in the table ``into`` yet to it.

    ``step`` and errors: of :func:`disque_tx.spark.pipeline.ingest.batches.add_logs`.
    """
    paths = list(paths)
    for path in (*paths, into):
        check_local(resolved(path))
    with database(resolved(into)) as rows:
        return add_logs(_Duck(rows), paths, into, step)


class _Duck:
    """DuckDB as :class:`~disque_tx.spark.pipeline.ingest.batches.IngestEngine`."""

    def __init__(self, rows: Database) -> None:
        self._rows = rows

    def workers(self, size_bytes: int) -> Workers:
        return LocalThreads()

    def known(self, table: EventTableLog) -> tuple[Runs, Mapping[str, list[int]]]:
        noted = table.noted()
        if noted is not None:
            return noted
        return all_runs(self._rows, table), {}

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
