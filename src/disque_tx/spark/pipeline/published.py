"""Tables of results: which of them may be replaced, and how.

Whoever names the wrong folder must lose nothing. So:

1. Only a Delta table that this pipeline made is replaced, as a new version: a reader sees the old
   rows or the new ones. The files of the old version are removed a day later.
2. A folder that holds anything else is left alone.
3. A folder for results is never the same as one that is read, nor in it, nor around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs
import pyarrow as pa

from disque_tx.spark.errors import OutputExists
from disque_tx.spark.paths import is_absent
from disque_tx.spark.pipeline.tables.deltalog import DataFile, DeltaLog
from disque_tx.spark.pipeline.tables.footers import Staged

_KEPT_HOURS: Final = 24
#: The application whose transactions are new versions of a table of results.
_PUBLISHED: Final = "results"
#: The column by which rows that are not expected to change get files of their own.
SETTLED: Final = "_settled"


class ResultTable:
    """A table of results at a resolved path. ``what``: it contains.

    :raises OutputExists: when it exists and is something else.
    """

    def __init__(self, root: str, what: str) -> None:
        self.root = root
        self._what = what
        self._staged: Staged | None = None
        self._schema: pa.Schema = None
        self.log = DeltaLog.find(root)
        if self.log is None and not is_absent(root):
            raise OutputExists(
                f"{root} is not replaced: it holds what is no table of this program, or one of an"
                " earlier version. Choose a new folder, or look at what is in there and remove it"
                " by hand."
            )
        if self.log is not None and self.log.what != what:
            raise OutputExists(
                f"{root} is not replaced: it is a Delta table of something else than {what}."
                " Choose a new folder."
            )

    @property
    def is_made(self) -> bool:
        """Whether rows were ever published. A process that is killed before leaves a table of
        version 0."""
        return self.log is not None and self.log.version > 0

    def check_new(self, option: str) -> None:
        """:raises OutputExists: when there are rows, which only ``option`` replaces."""
        if self.is_made:
            raise OutputExists(
                f"{self.root} exists. Choose a new folder, or add {option} to replace results that"
                " disque-pipeline wrote there."
            )

    @property
    def notes(self) -> Mapping[str, Any]:
        """The notes of the present version; none if there is no table."""
        return (self.log.notes() if self.log else None) or {}

    def files(self, *times: str) -> list[DataFile]:
        """The files of the present version; see :meth:`DeltaLog.files`."""
        return self.log.files(*times) if self.log else []

    def rows(self) -> int:
        """How many rows the present version has."""
        return sum(file.rows for file in self.files())

    def begin(self, schema: pa.Schema) -> None:
        """New rows with these columns will be written. A table without rows is created first, if
        there is none, so that a folder that a killed process left is known as one of these."""
        self._schema = schema
        if self.log is None:
            self.log = DeltaLog.create(self.root, schema, self._what)

    def stage(self, staged: Staged) -> None:
        """The new rows were written; they are not part of the table yet."""
        self._staged = staged

    def staged(self) -> list[DataFile]:
        """The files of the new rows, if there are any. The folders in which they lie are not
        partitions."""
        if self._staged is None:
            return []
        return [attrs.evolve(file, partition={}) for file in self._staged.files]

    @property
    def staged_schema(self) -> pa.Schema:
        """The columns of the new rows."""
        return self._schema

    def publish(
        self, replaced: Iterable[DataFile] | None = None, notes: Mapping[str, Any] | None = None
    ) -> None:
        """Put the rows that were written in the place of those of the table, or of those in some
        of its files. ``notes``: kept with the new version.

        :raises Conflict: when another process did that since this object was made.
        """
        log = self.log or DeltaLog.create(self.root, self._schema, self._what)
        number = {_PUBLISHED: log.last(_PUBLISHED) + 1}
        if replaced is None:
            log.commit(self.staged(), number, notes, replacing=self._schema)
        else:
            log.commit(self.staged(), number, notes, removing=replaced)
        log.vacuum(_KEPT_HOURS)
