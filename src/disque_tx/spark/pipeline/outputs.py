"""Tables of results whose rows are made and read by Spark."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from disque_tx.spark.pipeline.published import SETTLED, ResultTable
from disque_tx.spark.pipeline.tables.deltalog import DataFile
from disque_tx.spark.pipeline.tables.table import columns_of, reading, writing


class Output(ResultTable):
    """A table of results at a resolved path. ``what``: it contains.

    :raises OutputExists: when it exists and is something else.
    """

    def __init__(self, spark: SparkSession, root: str, what: str) -> None:
        super().__init__(root, what)
        self._spark = spark

    def former(self, files: Iterable[DataFile] | None = None) -> DataFrame:
        """The rows of the present version, or those of some of its files."""
        assert self.log is not None
        names = [file.path for file in (self.files() if files is None else files)]
        return reading(self._spark, self.log.schema, self.root, names)

    def write(self, rows: DataFrame, settled: Column | None = None) -> None:
        """Write the new rows, which are not part of the table yet. ``settled``: rows for which it
        holds are not expected to change, and get files of their own."""
        self.begin(columns_of(rows))
        if settled is None:
            staged = writing(self._spark, rows, self.root)
        else:
            parted = rows.withColumn(SETTLED, fn.coalesce(settled, fn.lit(False)))
            staged = writing(self._spark, parted, self.root, SETTLED)
        self.stage(staged)

    def written(self) -> DataFrame:
        """The rows that were written."""
        names = [file.path for file in self.staged()]
        return reading(self._spark, self.staged_schema, self.root, names)
