"""Jobs of a stream that become a file at once, and no rows of Spark.

With the option ``deltaTable``, the source writes the jobs of a batch as a Parquet file to the
folder of that table; the driver does, as it has fetched them, or with ``includeDetails`` each task,
as that has to read them. The rows of the stream are then these files, which ``disque_delta`` adds
to the table: no body is moved to Spark and back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from uuid import uuid4

import attrs
import pyarrow as pa

from disque_tx.spark.pipeline.tables.deltalog import DataFile
from disque_tx.spark.pipeline.tables.jobs import write
from disque_tx.spark.schema import STAGED_DDL, arrow_schema


@attrs.frozen
class Staging:
    """Where a batch is put: in a folder of its own, below the table at ``root``. ``beginning``: of
    the names of all folders of the query. ``seq``: number of the batch."""

    root: str
    beginning: str
    seq: int
    name: str = attrs.field(factory=lambda: uuid4().hex)

    @property
    def folder(self) -> str:
        """The folder, below that of the table."""
        return f"{self.beginning}{self.seq}-{self.name}"

    def store(self, jobs: Iterable[pa.RecordBatch], ddl: str) -> pa.RecordBatch:
        """Write jobs, which have the columns ``ddl``; returns the row that says where."""
        table = pa.Table.from_batches(jobs, arrow_schema(ddl))
        found = StagedFile(self, ddl, write(self.root, table, self.folder))
        return pa.record_batch([[found.as_text()]], arrow_schema(STAGED_DDL))


@attrs.frozen
class StagedFile:
    """A row of such a stream. ``ddl``: the columns of the file."""

    staging: Staging
    ddl: str
    file: DataFile

    def as_text(self) -> str:
        """The value of the only column."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def of(cls, text: str) -> StagedFile:
        """The file of a row."""
        kept = json.loads(text)
        return cls(Staging(**kept["staging"]), kept["ddl"], DataFile(**kept["file"]))
