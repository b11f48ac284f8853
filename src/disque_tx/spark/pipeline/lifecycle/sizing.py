"""How Spark runs queries over few rows.

Spark makes Java code for each query, compiles it, and divides rows among tasks. For a query over an
hour's events that is almost all of its processor time, so that without it such a query costs a
third. For many rows it is worth it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from disque_tx.spark.pipeline.tables.deltalog import DataFile

#: With more rows than this, compiled code costs less in all.
FEW_ROWS: Final = 200_000
_FOR_FEW: Final[Mapping[str, str]] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # A single partition is neither exchanged nor broadcast, and has nothing to adapt to.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.enabled": "false",
}


class Sizing:
    """Settings of a session for queries over the rows of files that it was told of, as long as it
    is entered; others who use the session meanwhile have the same."""

    def __init__(self, spark: SparkSession) -> None:
        self._conf = spark.conf
        self._before: dict[str, str | None] = {}
        self._rows = 0

    def __enter__(self) -> Sizing:
        self._before = {key: self._conf.get(key, None) for key in _FOR_FEW}
        for key, value in _FOR_FEW.items():
            self._conf.set(key, value)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore()

    @property
    def are_few(self) -> bool:
        """Whether all of these are few rows."""
        return self._rows <= FEW_ROWS

    def read(self, files: Iterable[DataFile]) -> None:
        """The next queries read these files, too."""
        self._rows += sum(file.rows for file in files)
        if not self.are_few:
            self._restore()

    def together(self, rows: DataFrame) -> DataFrame:
        """Rows that are written, in files that are not small if there are many."""
        return rows.coalesce(1) if self.are_few else rows.hint("rebalance")

    def _restore(self) -> None:
        for key, value in self._before.items():
            if value is None:
                self._conf.unset(key)
            else:
                self._conf.set(key, value)
        self._before = {}
