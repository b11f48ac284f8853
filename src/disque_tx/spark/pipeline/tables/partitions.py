"""Rows as Parquet files, in a folder for each value of a column.

Rows are kept until there are enough for a row group, which readers then skip or read as a whole.
What is kept has a bound in bytes, and so has the number of files that are open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final
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
    """New files in a folder of the table at a resolved path ``root``.

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
        #: The least recently written to comes first.
        self._parts: dict[str, _Partition] = {}
        self._done: list[DataFile] = []
        self._kept_bytes = 0

    def write(self, rows: pa.Table) -> None:
        """Add rows with the columns of the schema. The files are whole after :meth:`close`."""
        for place, some in self._by_place(rows):
            part = self._parts.pop(place, None) or _Partition(place)
            self._parts[place] = part
            self._kept_bytes += part.keep(some.select(self._inside.names).cast(self._inside))
            if part.rows >= _GROUP_ROWS or part.bytes >= _GROUP_BYTES:
                self._write_group(part)
        while self._kept_bytes > _KEPT_BYTES_MAX:
            self._write_group(max(self._parts.values(), key=lambda part: part.bytes))

    def close(self) -> list[DataFile]:
        """Write what is kept; returns all files."""
        while self._parts:
            self._close(next(iter(self._parts.values())))
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

    def _file(self, place: str) -> _ParquetFile:
        return _ParquetFile(self._root, self._folder, place, self._inside, self._encoding)

    def _write_group(self, part: _Partition) -> None:
        if part.file is None:
            open_parts = [each for each in self._parts.values() if each.file is not None]
            if len(open_parts) >= _OPEN_MAX:
                self._close(open_parts[0])
            part.file = self._file(part.place)
        self._kept_bytes -= part.bytes
        part.file.write(part.taken())

    def _close(self, part: _Partition) -> None:
        if part.rows:
            self._write_group(part)
        if part.file is not None:
            self._done.append(part.file.close())
        del self._parts[part.place]


def _encoding(schema: pa.Schema, distinct: Collection[str]) -> dict[str, Any]:
    """How columns are written: of numbers and times that are distinct, their differences."""
    numbers = [field.name for field in schema if pa.types.is_primitive(field.type)]
    return {
        "use_dictionary": [name for name in schema.names if name not in distinct],
        "column_encoding": {name: _DIFFERENCES for name in numbers if name in distinct},
    }


@attrs.define
class _Partition:
    """The rows for a folder, those that are kept among them."""

    place: str
    file: _ParquetFile | None = None
    rows: int = 0
    bytes: int = 0
    _kept: list[pa.Table] = attrs.Factory(list)

    def keep(self, rows: pa.Table) -> int:
        """Keep rows; returns how many bytes they have."""
        size = int(rows.nbytes)
        self._kept.append(rows)
        self.rows += len(rows)
        self.bytes += size
        return size

    def taken(self) -> pa.Table:
        """What is kept; nothing is afterwards."""
        found = pa.concat_tables(self._kept)
        self._kept, self.rows, self.bytes = [], 0, 0
        return found


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

    def close(self) -> DataFile:
        self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        (footer,) = self._footers
        statistics = footer_statistics(footer)
        return data_file(self._folder, self._name, size, footer.num_rows, statistics)
