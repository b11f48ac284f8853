"""The columns of all formats, as Spark and as Arrow name their types; rows of them in batches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

_COLUMN: Final = re.compile(r"`?([\w.]+)`? (\w+(?:<\w+>)?)(?:,|$)")
#: As Spark itself names them in Arrow.
_TYPES: Final = {
    "ARRAY<STRING>": pa.list_(pa.field("element", pa.string())),
    "BIGINT": pa.int64(),
    "BINARY": pa.binary(),
    "BOOLEAN": pa.bool_(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
}

#: The lines of the event log, see docs/reference/events.md. A column that does not apply is null.
EVENTS_DDL: Final = """\
`specversion` STRING,
`id` STRING,
`source` STRING,
`time` TIMESTAMP,
`type` STRING,
`subject` STRING,
`messaging.system` STRING,
`messaging.operation.type` STRING,
`messaging.destination.name` STRING,
`messaging.message.body.size` BIGINT,
`messaging.client.id` STRING,
`nacks` BIGINT,
`additional_deliveries` BIGINT,
`wait_ms` BIGINT,
`run_ms` BIGINT,
`retry_s` BIGINT,
`ttl_s` BIGINT,
`delay_s` BIGINT,
`replicate` BIGINT,
`copies` BIGINT,
`reason` STRING,
`backoff_ms` BIGINT,
`note` STRING,
`successor` STRING,
`schedule` STRING,
`occurrence_s` BIGINT,
`peer` STRING,
`paused` STRING,
`jobs` BIGINT,
`body` STRING,
`body_sha256` STRING"""
#: The column for lines that are not events, unchanged.
CORRUPT_COLUMN: Final = "_corrupt"
_JOBS_DDL: Final = (
    "id STRING, queue STRING, body BINARY, nacks BIGINT, additional_deliveries BIGINT"
)
#: The format ``disque`` with the option ``deltaTable``: a file with the jobs of a task.
STAGED: Final = "staged_file"
STAGED_DDL: Final = f"{STAGED} STRING"
#: What GETJOB does not bring.
_DETAILS_DDL: Final = (
    "ctime TIMESTAMP, retry_s BIGINT, ttl_s BIGINT, delay_s BIGINT, replicate BIGINT"
)
#: The format ``disque_aof``: jobs.
AOF_JOBS_DDL: Final = (
    "file STRING, offset BIGINT, id STRING, queue STRING, body BINARY, state STRING,"
    " replicate BIGINT, ctime TIMESTAMP, expires TIMESTAMP, delay_s BIGINT, retry_s BIGINT,"
    " nacks BIGINT, additional_deliveries BIGINT, nodes ARRAY<STRING>"
)
#: The same format: records. ``op``: ``load``, ``delete`` or ``damage``.
AOF_RECORDS_DDL: Final = f"op STRING, {AOF_JOBS_DDL}, damage STRING"
#: The format ``disque_events``.
EVENTS_READ_DDL: Final = f"{EVENTS_DDL},\n`{CORRUPT_COLUMN}` STRING"
#: Limits of an Arrow batch: neither tiny, nor more than a task can hold.
_ROWS_MAX: Final = 5000
_BYTES_MAX: Final = 8 << 20


def jobs_ddl(details: bool) -> str:
    """The columns of the format ``disque``. A job that is read again has the same id, queue, body,
    ctime, retry_s, delay_s and replicate."""
    return f"{_JOBS_DDL}, {_DETAILS_DDL}" if details else _JOBS_DDL


def arrow_schema(ddl: str) -> pa.Schema:
    """The columns of one of these texts as a schema of Arrow, as Spark expects it from a source.

    Spark's own parser of such texts needs its JVM, which tasks do not have.
    """
    return pa.schema([(name, _TYPES[kind]) for name, kind in _COLUMN.findall(ddl)])


def text(name: bytes) -> str:
    """A name from a file or a node. Bytes that are not UTF-8 appear as ``\\xff``."""
    return name.decode("utf-8", "backslashreplace")


def batches(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Batches of these columns. The size of a row is that of its texts and bytes."""
    taken: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        taken.append(row)
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(taken) >= _ROWS_MAX or size >= _BYTES_MAX:
            yield _batch(taken, schema)
            taken, size = [], 0
    if taken:
        yield _batch(taken, schema)


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
