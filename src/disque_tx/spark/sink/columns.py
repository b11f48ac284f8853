"""From the columns of a table to ADDJOB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs
import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    VarcharType,
)

from disque_tx.client.requests.adding import add_job_with
from disque_tx.client.requests.encoding import Request, encoded
from disque_tx.messages.limits import SECONDS_MAX
from disque_tx.spark.errors import BadColumn
from disque_tx.spark.options import WriteOptions
from disque_tx.spark.sink.staging import staging_queue
from disque_tx.text.counts import counted

_TEXT: Final = (StringType, VarcharType)
_WHOLE: Final = (ByteType, ShortType, IntegerType, LongType)
#: Column → its types, and a description of them.
_COLUMNS: Final[dict[str, tuple[tuple[type[DataType], ...], str]]] = {
    "queue": (_TEXT, "a string"),
    "body": ((BinaryType, *_TEXT), "binary or a string"),
    "delay": (_WHOLE, "a whole number of seconds"),
    "retry": (_WHOLE, "a whole number of seconds"),
    "ttl": (_WHOLE, "a whole number of seconds"),
    "key": ((BinaryType, *_TEXT), "binary or a string"),
}
_KEY_BYTES_MAX: Final = 512
_LEAST: Final = {"delay": 0, "retry": 0, "ttl": 1}


def check(schema: StructType, options: WriteOptions) -> None:
    """Whether a table with these columns can be written.

    :raises BadColumn: when it cannot; lists everything that is wrong.
    """
    wrong = [
        f"column {field.name!r} is {field.dataType.simpleString()}, not {_COLUMNS[field.name][1]}"
        for field in schema
        if field.name in _COLUMNS and not isinstance(field.dataType, _COLUMNS[field.name][0])
    ]
    names = set(schema.names)
    wrong += [f"column {name!r} is not known" for name in sorted(names - set(_COLUMNS))]
    if "body" not in names:
        wrong.append("column 'body' is missing")
    if "queue" not in names and options.queue is None:
        wrong.append("there is neither a column 'queue' nor an option queue")
    wrong += [
        f"with deliveryMode=staged jobs cannot have a column {name!r}"
        for name in ("delay", "key")
        if options.staged and name in names
    ]
    if wrong:
        raise BadColumn(
            f"This table cannot be written to Disque: {'; '.join(wrong)}. It may have the columns"
            f" {', '.join(_COLUMNS)}; use select()."
        )


def jobs(
    batch: pa.RecordBatch, options: WriteOptions, keys: Iterator[str]
) -> list[tuple[bytes, Request[str]]]:
    """Queues, and the requests that add the jobs of a batch, which is checked completely before.
    ``keys``: one for each row, which it gets with the mode ``unique`` if no column has one.

    :raises BadColumn: for a null, or a number out of range.
    """
    values = {name: batch.column(name) for name in batch.schema.names}
    one = None if options.queue is None else encoded(options.queue)
    queues = [one] * len(batch) if one else _texts(values["queue"], "queue")
    bodies = _texts(values["body"], "body")
    times = (
        _seconds(values.get("delay"), "delay", options.adding.delay_s, len(batch)),
        _seconds(values.get("retry"), "retry", options.adding.retry_s, len(batch)),
        _seconds(values.get("ttl"), "ttl", options.adding.ttl_s, len(batch)),
    )
    own = _keys(values.get("key"), keys if options.mode == "unique" else None, len(batch))
    return list(_requests(zip(queues, bodies, *times, own, strict=True), options))


def _requests(
    rows: Iterator[tuple[Any, ...]], options: WriteOptions
) -> Iterator[tuple[bytes, Request[str]]]:
    for queue, body, delay_s, retry_s, ttl_s, key in rows:
        own = attrs.evolve(
            options.adding,
            delay_s=delay_s,
            retry_s=retry_s,
            ttl_s=ttl_s,
            unique=key,
            unique_for_s=None if key is None else options.key_for_s,
        )
        yield queue, add_job_with(staging_queue(queue) if options.staged else queue, body, own)


def _texts(column: pa.Array, name: str) -> list[Any]:
    """Bytes; Arrow has texts as UTF-8 already."""
    if column.null_count:
        raise BadColumn(
            f"{counted(column.null_count, 'row')} without {name}: column {name!r} is null. Leave"
            f" them out, as with .where('{name} is not null')."
        )
    values: list[Any] = column.cast(pa.large_binary()).to_pylist()
    return values


def _keys(column: pa.Array | None, made: Iterator[str] | None, rows: int) -> list[Any]:
    """The keys of the rows; ``None`` for a row without one."""
    given = [None] * rows if column is None else column.cast(pa.large_binary()).to_pylist()
    for key in given:
        if key is not None and not 0 < len(key) <= _KEY_BYTES_MAX:
            raise BadColumn(
                f"Column 'key' has a value of {len(key)} bytes; it must have 1 to {_KEY_BYTES_MAX}."
            )
    if made is None:
        return given
    return [own if key is None else key for key, own in zip(given, made, strict=False)]


def _seconds(column: pa.Array | None, name: str, otherwise: int | None, rows: int) -> list[Any]:
    """Numbers; null: as the option says."""
    if column is None:
        return [otherwise] * rows
    values = column.to_pylist()
    for value in values:
        if value is not None and not _LEAST[name] <= value <= SECONDS_MAX:
            raise BadColumn(
                f"Column {name!r} has the value {value}; it must be from {_LEAST[name]} to"
                f" {SECONDS_MAX} seconds."
            )
    return [otherwise if value is None else value for value in values]
