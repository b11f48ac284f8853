"""Rows as Parquet files, in a folder for each value of a column.

Rows are kept until there are enough for a row group, which readers then skip or read as a whole.
What is kept has a bound in bytes, and so has the number of files that are open.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, Self
from urllib.parse import quote
from uuid import uuid4

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from disque_tx.spark.paths import make_folder, opened
from disque_tx.spark.pipeline.tables.deltalog import DataFile
from disque_tx.spark.pipeline.tables.footers import data_file, footer_statistics

#: A row group has at least so many rows, or bytes, unless it is the last of a file.
_GROUP_ROWS: Final = 1 << 16
_GROUP_BYTES: Final = 32 << 20
#: So much is kept for all files together.
_KEPT_BYTES_MAX: Final = 96 << 20
_OPEN_MAX: Final = 64
_DIFFERENCES: Final = "DELTA_BINARY_PACKED"


class PartitionedFiles:
    """New files in a folder of the table at a resolved path ``root``. It is a context: what is
    written is left unfinished when that ends with an error.

    ``partition_by``: the column whose values have a folder each, and which is in no file.
    ``distinct``: columns that seldom have a value twice, for which a dictionary would cost more
    than it saves.
    """

    def __init__(
        self,
        root: str,
        folder: str,
        schema: pa.Schema,
        partition_by: str | None = None,
        distinct: Collection[str] = (),
    ) -> None:
        self._root = root
        self._folder = folder
        self._partition_by = partition_by
        self._inside = pa.schema([field for field in schema if field.name != partition_by])
        self._encoding = _encoding(self._inside, distinct)
        self._kept: dict[str, _Kept] = {}
        self._kept_bytes = 0
        #: The one that was least recently written to comes first.
        self._open: OrderedDict[str, _ParquetFile] = OrderedDict()
        self._done: list[DataFile] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.abandon()

    def write(self, rows: pa.Table) -> None:
        """Add rows with the columns of the schema. The files are whole after :meth:`close`."""
        for place, some in self._by_place(rows):
            kept = self._kept.setdefault(place, _Kept())
            self._kept_bytes += kept.add(some.select(self._inside.names).cast(self._inside))
            if kept.rows >= _GROUP_ROWS or kept.bytes >= _GROUP_BYTES:
                self._write_group(place)
        if self._kept_bytes > _KEPT_BYTES_MAX:
            self._write_all()

    def close(self) -> list[DataFile]:
        """Write what is kept; returns all files."""
        self._write_all()
        while self._open:
            self._close_oldest()
        return self._done

    def _by_place(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """Rows by the folder that they belong to."""
        if self._partition_by is None:
            yield "", rows
            return
        column = rows[self._partition_by]
        values = pc.unique(column)
        for value in values:
            some = rows if len(values) == 1 else rows.filter(pc.equal(column, value))
            yield f"{self._partition_by}={quote(str(value.cast(pa.string())), '')}/", some

    def _write_all(self) -> None:
        for place in list(self._kept):
            self._write_group(place)

    def _write_group(self, place: str) -> None:
        kept = self._kept.pop(place)
        self._kept_bytes -= kept.bytes
        if place not in self._open:
            if len(self._open) >= _OPEN_MAX:
                self._close_oldest()
            self._open[place] = _ParquetFile(
                self._root, self._folder, place, self._inside, self._encoding
            )
        self._open.move_to_end(place)
        self._open[place].write(pa.concat_tables(kept.tables))

    def _close_oldest(self) -> None:
        _, file = self._open.popitem(last=False)
        self._done.append(file.close())


def _encoding(schema: pa.Schema, distinct: Collection[str]) -> dict[str, Any]:
    """How columns are written: of numbers and times that are distinct, their differences."""
    numbers = [field.name for field in schema if pa.types.is_primitive(field.type)]
    return {
        "use_dictionary": [name for name in schema.names if name not in distinct],
        "column_encoding": {name: _DIFFERENCES for name in numbers if name in distinct},
    }


@attrs.define
class _Kept:
    """Rows that are not in a file yet."""

    tables: list[pa.Table] = attrs.Factory(list)
    rows: int = 0
    bytes: int = 0

    def add(self, rows: pa.Table) -> int:
        """Keep rows; returns how many bytes they have."""
        size = int(rows.nbytes)
        self.tables.append(rows)
        self.rows += len(rows)
        self.bytes += size
        return size


class _ParquetFile:
    """A file that is being written."""

    def __init__(
        self, root: str, folder: str, place: str, schema: pa.Schema, encoding: Mapping[str, Any]
    ) -> None:
        self._folder = folder
        self._name = f"{place}part-{uuid4().hex}.parquet"
        make_folder(f"{root}/{folder}/{place}".rstrip("/"))
        system, path = opened(f"{root}/{folder}/{self._name}")
        self._sink = system.open_output_stream(path)
        self._footers: list[Any] = []
        self._writer = pq.ParquetWriter(
            self._sink, schema, compression="zstd", metadata_collector=self._footers, **encoding
        )

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows, row_group_size=max(len(rows), 1))

    def abandon(self) -> None:
        """Leave the file without an end, and free what is open."""
        # Else the writer would try to end it when it is freed, which may fail as well.
        self._writer.is_open = False
        with suppress(OSError, pa.ArrowException):
            self._sink.close()

    def close(self) -> DataFile:
        self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        (footer,) = self._footers
        statistics = footer_statistics(footer)
        return data_file(self._folder, self._name, size, footer.num_rows, statistics)
