"""Files in an object store, read and written by the tasks of Spark with ``pyarrow``.

Spark's own readers and writers need archives of Hadoop for that. Tasks that fail or are slow run
again, and a store has no step that makes a folder of files visible at once. So each task reports
the files that it wrote, and only those of the attempts that Spark counts are named to the driver,
in one object that it reads and removes. Others are part of no table, and ``vacuum`` removes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final, cast

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from disque_tx.spark.offered import arrow_columns
from disque_tx.spark.paths import opened
from disque_tx.spark.pipeline.tables.deltalog import DataFile
from disque_tx.spark.pipeline.tables.partitions import PartitionedFiles

_FORMAT: Final = "disque_stored"
#: So many tasks read a table at most; more files share them.
_TASKS_MAX: Final = 1_000


def read(spark: SparkSession, columns: StructType, root: str, names: Sequence[str]) -> DataFrame:
    """The rows of Parquet files below ``root``, with these columns; null where a file has none."""
    spark.dataSource.register(StoredSource)
    reader = spark.read.format(_FORMAT).schema(columns)
    return reader.options(paths=json.dumps([f"{root}/{name}" for name in names])).load()


def write(rows: DataFrame, root: str, folder: str, partition_by: str | None) -> list[DataFile]:
    """Write rows as Parquet to a new folder below ``root``; returns the files."""
    spark = rows.sparkSession
    spark.dataSource.register(StoredSource)
    writer = rows.write.format(_FORMAT).mode("append")
    writer.options(root=root, folder=folder, partition=partition_by or "").save()
    system, place = opened(f"{root}/{folder}/{_Writer.named}")
    with system.open_input_stream(place) as stream:
        found = json.loads(stream.readall())
    system.delete_file(place)
    return [DataFile(**each) for each in found]


class StoredSource(DataSource):
    """The format behind these functions; not for others, so it is registered when it is used."""

    @classmethod
    def name(cls) -> str:
        """The name of the source in ``format``."""
        return _FORMAT

    def reader(self, schema: StructType) -> DataSourceReader:
        """For ``spark.read``."""
        given = dict(cast(Any, self.options))
        return _Reader(json.loads(given["paths"]), arrow_columns(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """For ``df.write``."""
        given = dict(cast(Any, self.options))
        columns = arrow_columns(schema)
        return _Writer(given["root"], given["folder"], columns, given["partition"] or None)


class _Reader(DataSourceReader):
    def __init__(self, paths: list[str], schema: pa.Schema) -> None:
        self._paths = paths
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """A task per file, if there are not too many."""
        tasks = min(len(self._paths), _TASKS_MAX)
        return [InputPartition(self._paths[at::tasks]) for at in range(tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of the files of a task."""
        return chain.from_iterable(map(self._file, partition.value))

    def _file(self, path: str) -> Iterator[pa.RecordBatch]:
        system, place = opened(path)
        with pq.ParquetFile(place, filesystem=system) as file:
            names = [name for name in self._schema.names if name in file.schema_arrow.names]
            for batch in file.iter_batches(columns=names):
                columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                missing = pa.nulls(len(batch))
                arrays = [columns.get(each.name, missing).cast(each.type) for each in self._schema]
                yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)


@attrs.frozen
class _Written(WriterCommitMessage):
    """What a task wrote: :class:`DataFile` as dictionaries."""

    files: list[dict[str, Any]]


class _Writer(DataSourceArrowWriter):
    #: The object with the names of all files that count.
    named: Final = "_written.json"

    def __init__(
        self, root: str, folder: str, columns: pa.Schema, partition_by: str | None
    ) -> None:
        self._root = root
        self._folder = folder
        self._columns = columns
        self._partition_by = partition_by

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _Written:
        """Write the rows of a task."""
        columns, partition_by = self._columns, self._partition_by
        with PartitionedFiles(self._root, self._folder, columns, partition_by) as files:
            for batch in iterator:
                files.write(pa.Table.from_batches([batch]))
            return _Written([attrs.asdict(file) for file in files.close()])

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Name the files of all tasks."""
        files = [file for each in messages if isinstance(each, _Written) for file in each.files]
        self._name(files)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """The files are part of no table."""

    def _name(self, files: list[dict[str, Any]]) -> None:
        system, place = opened(f"{self._root}/{self._folder}/{self.named}")
        with system.open_output_stream(place) as stream:
            stream.write(json.dumps(files).encode())
