"""Tables of results: which of them may be replaced, and how.

Whoever names the wrong folder with ``--overwrite`` must lose nothing. So:

1. Only a Delta table that this pipeline made is replaced, as a new version: a reader sees the old
   rows or the new ones. The files of the old version are removed a day later.
2. A folder that holds anything else is left alone.
3. A folder for results is never the same as one that is read, nor in it, nor around it.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from disque_tx.spark.errors import OutputExists
from disque_tx.spark.paths import is_empty
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog, written
from disque_tx.spark.pipeline.tables.table import columns_of, reading, writing

_KEPT_HOURS: Final = 24


class Output:
    """A table of results at a resolved path. ``what``: it contains.

    :raises OutputExists: when it exists, and is not to be replaced or is something else.
    """

    def __init__(self, spark: SparkSession, root: str, what: str, overwrite: bool) -> None:
        self.root = root
        self._spark = spark
        self._what = what
        self._folder: str | None = None
        self._schema: pa.Schema = None
        _check_replaceable(root, what, overwrite)

    def write(self, rows: DataFrame) -> None:
        """Write the new rows, which are not part of the table yet."""
        self._schema = columns_of(rows)
        self._folder = writing(self._spark, rows, self.root)

    def written(self) -> DataFrame:
        """The rows that were written."""
        names = [file.path for file in written(self.root, str(self._folder))]
        return reading(self._spark, self._schema, self.root, names)

    def publish(self) -> None:
        """Put the rows that were written in the place of those of the table.

        :raises Conflict: when another process did that at the same time.
        """
        if not DeltaLog.exists(self.root):
            DeltaLog.create(self.root, self._schema, self._what)
        log = DeltaLog(self.root)
        log.commit(written(self.root, str(self._folder)), replacing=self._schema)
        log.vacuum(_KEPT_HOURS)


def _check_replaceable(root: str, what: str, overwrite: bool) -> None:
    if not DeltaLog.exists(root):
        if not is_empty(root):
            raise OutputExists(
                f"{root} is not replaced: it holds what is no table of this program, or one of an"
                " earlier version. Choose a new folder, or look at what is in there and remove it"
                " by hand."
            )
        return
    if not overwrite:
        raise OutputExists(
            f"{root} exists. Choose a new folder, or add --overwrite to replace results that"
            " disque-pipeline wrote there."
        )
    if DeltaLog(root).what != what:
        raise OutputExists(
            f"{root} is not replaced: it is a Delta table of something else than {what}. Choose a"
            " new folder."
        )
