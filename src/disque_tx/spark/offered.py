"""What PySpark offers to sources and sinks in Python, from 4.0 on. Names that an older one lacks
have stand-ins here, so that classes can be defined by them; :mod:`disque_tx.spark.formats.older`
does without what they are for.
"""

from __future__ import annotations

from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

#: Since 4.2: the offset before and a limit are passed to ``latestOffset``.
LIMITS: Final = find_spec("pyspark.sql.streaming.datasource") is not None
#: Since 4.1: conditions of queries are passed to sources.
FILTERS: Final = hasattr(datasource, "Filter")
#: Since 4.1: sinks of streams get batches of Arrow.
ARROW_STREAMS: Final = hasattr(datasource, "DataSourceStreamArrowWriter")
# Before 4.2, times are UTC unless one asks for something else.
_UTC: Final[Any] = (
    {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
)

if TYPE_CHECKING or LIMITS:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxFiles,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
else:

    class ReadLimit:
        """Limits a batch."""

    @attrs.frozen
    class ReadAllAvailable(ReadLimit):
        """Does not limit a batch."""

    @attrs.frozen
    class ReadMaxRows(ReadLimit):
        """Limits the rows of a batch."""

        max_rows: int

    @attrs.frozen
    class ReadMaxFiles(ReadLimit):
        """Limits the files of a batch."""

        max_files: int

    class SupportsTriggerAvailableNow:
        """Marks sources that end with what was there in the beginning."""


if TYPE_CHECKING or ARROW_STREAMS:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
else:
    from pyspark.sql.datasource import DataSourceStreamWriter as DataSourceStreamArrowWriter

__all__ = [
    "ARROW_STREAMS",
    "FILTERS",
    "LIMITS",
    "DataSourceStreamArrowWriter",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxFiles",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
    "arrow_columns",
]


def arrow_columns(columns: StructType) -> pa.Schema:
    """Columns as Spark names them, as a schema of Arrow with times in UTC."""
    return to_arrow_schema(columns, **_UTC)
