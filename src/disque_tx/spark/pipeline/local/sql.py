"""Pieces of SQL for DuckDB."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

import pyarrow as pa

#: Nodes write [^a] for any other letter, DuckDB [!a]. What stands after a backslash is left alone.
_NEGATED: Final = re.compile(r"(\\.)|\[\^", re.DOTALL)
_DAY_US: Final = 86_400_000_000
#: Names of Arrow's types → of DuckDB's.
_TYPES: Final = {
    "bool": "BOOLEAN",
    "date32[day]": "DATE",
    "double": "DOUBLE",
    "int64": "BIGINT",
    "list<element: string>": "VARCHAR[]",
    "string": "VARCHAR",
    "timestamp[us, tz=UTC]": "TIMESTAMPTZ",
}


def text(value: str) -> str:
    """A text as a literal."""
    return "'" + value.replace("'", "''") + "'"


def name(column: str) -> str:
    """A name as an identifier."""
    return '"' + column.replace('"', '""') + '"'


def texts(values: Iterable[str]) -> str:
    """A list of texts as a literal."""
    return f"[{', '.join(map(text, values))}]"


def parquet(names: Iterable[str]) -> str:
    """The rows of Parquet files. DuckDB takes the name of a file that exists for no pattern."""
    files = ",\n    ".join(map(text, names))
    return f"read_parquet([\n    {files}\n], union_by_name = true, hive_partitioning = false)"


def kind_is(kinds: Iterable[str]) -> str:
    """Whether an event is of one of these kinds."""
    return f"kind IN ({', '.join(map(text, kinds))})"


def is_like(column: str, pattern: str) -> str:
    """Whether a text matches a glob pattern: ``*``, ``?``, ``[a-z]``, ``[^a]`` and ``\\``."""
    ours = _NEGATED.sub(lambda found: found[1] or "[!", pattern)
    return f"{column} GLOB {text(ours)}"


def listed(expressions: Iterable[str]) -> str:
    """Expressions of a SELECT."""
    return ",\n    ".join(expressions)


def kind(field: pa.Field) -> str:
    """The type of a column."""
    return _TYPES[str(field.type)]


def typed(schema: pa.Schema, query: str) -> str:
    """The columns of a schema, with its types, of the rows of a query."""
    columns = (
        f"CAST({name(field.name)} AS {kind(field)}) AS {name(field.name)}" for field in schema
    )
    return f"SELECT {listed(columns)}\nFROM ({query})"


def no_rows(schema: pa.Schema) -> str:
    """A query with the columns of a schema, and without rows."""
    columns = (f"CAST(NULL AS {kind(field)}) AS {name(field.name)}" for field in schema)
    return f"SELECT {listed(columns)} WHERE false"


def day(time: str) -> str:
    """The day of a time in UTC."""
    start_us = begin_us(time, _DAY_US)
    return f"DATE '1970-01-01' + CAST(({start_us}) // {_DAY_US} AS INTEGER)"


def moment(at_us: int) -> str:
    """A time, in µs since 1970, as a literal."""
    at = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=at_us)
    return f"TIMESTAMPTZ '{at:%Y-%m-%d %H:%M:%S.%f}+00'"


def begin_us(time: str, length_us: int) -> str:
    """The begin of the window of this length that a time is in, in µs since 1970."""
    at_us = f"epoch_us({time})"
    # The remainder of a time before 1970 is negative.
    return f"{at_us} - ({at_us} % {length_us} + {length_us}) % {length_us}"
