"""Rows into Arrow batches that are neither tiny nor more than a task can hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

_ROWS_MAX: Final = 5000
_BYTES_MAX: Final = 8 << 20


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
