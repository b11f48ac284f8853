"""The table of events: where its files are, and which of them count.

::

    TABLE/
      _disque-table                says that the folder was made for a table
      _commits/                    what each batch added, and where its files were staged
      _staging/<unique name>/      files of a batch that is not committed, or was not moved yet
      _rejected/<unique name>/     rejected lines and files
      dt=2026-11-20/*.parquet      the events

A batch is part of the table as soon as its commit has its name
(:mod:`disque_tx.spark.pipeline.tables.commits`). Its files are moved after that; the next process
that opens the table moves those that are left. So a batch is never half in the table.

The commits determine which files are read, not the folders: files that were merged
(:mod:`disque_tx.spark.pipeline.tables.compaction`) stay for programs that began to read them
before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from disque_tx.spark.errors import BadTable
from disque_tx.spark.pipeline.storage import Storage
from disque_tx.spark.pipeline.tables.commits import Commit, CommitLog

_COMMITS: Final = "_commits"
_STAGING: Final = "_staging"
_REJECTED: Final = "_rejected"
#: Until the first commit nothing else says that what is staged may be removed.
_MARKER: Final = "_disque-table"
#: The columns of the table except ``dt``, by which it is partitioned.
EVENT_COLUMNS: Final = """\
node STRING, boot BIGINT, seq BIGINT, time TIMESTAMP, kind STRING, job_id STRING, queue STRING,
size BIGINT, nacks BIGINT, additional_deliveries BIGINT, wait_ms BIGINT, run_ms BIGINT,
client_id STRING, retry_s BIGINT, ttl_s BIGINT, delay_s BIGINT, replicate BIGINT, copies BIGINT,
reason STRING, peer STRING, paused STRING, jobs BIGINT, body STRING, body_sha256 STRING"""
_SCHEMA: Final = f"{EVENT_COLUMNS}, dt DATE"


def is_table(storage: Storage, path: str) -> bool:
    """Whether events were ingested into this folder."""
    return storage.find(f"{path}/{_COMMITS}") is not None


class EventTable:
    """A table of events.

    ``create``: whether to create it in an empty or missing folder. Files that an earlier process
    committed but did not move are moved.

    :raises BadTable: when it is not a table, or of another version.
    """

    def __init__(self, spark: SparkSession, path: str, create: bool = False) -> None:
        self._spark = spark
        self.storage = Storage(spark)
        self.root = self.storage.absolute(path)
        self._check(create)
        self.log = CommitLog(self.storage, self.root)
        staged = {entry.name for entry in self.storage.entries(f"{self.root}/{_STAGING}")}
        for commit in self.log.commits:
            if commit.staged in staged:
                self.move_into_place(commit)

    def _check(self, create: bool) -> None:
        names = [entry.name for entry in self.storage.entries(self.root)]
        if _COMMITS in names or (create and _MARKER in names):
            return
        if create and not names:
            self.storage.publish(f"{self.root}/{_MARKER}", "A table of 'disque-pipeline ingest'.\n")
            return
        what = "is not a table of events" if names else "does not exist or is empty"
        raise BadTable(
            f"{self.root} {what}. 'disque-pipeline ingest' creates one, in a new folder."
        )

    @property
    def commits(self) -> list[Commit]:
        """The commits, in order."""
        return self.log.commits

    def events(self) -> DataFrame:
        """All events, with the columns of :data:`EVENT_COLUMNS` and ``dt``."""
        return self.read(self.log.live())

    def read(self, names: Iterable[str]) -> DataFrame:
        """The events in these files of the table."""
        paths = [f"{self.root}/{name}" for name in names]
        if not paths:
            return self._spark.createDataFrame([], _SCHEMA)
        return self._spark.read.schema(_SCHEMA).option("basePath", self.root).parquet(*paths)

    def staged(self, name: str) -> DataFrame:
        """Events of a batch that is not part of the table yet."""
        return self._spark.read.schema(_SCHEMA).parquet(self.staging(name))

    def staging(self, name: str) -> str:
        """The folder of a batch that is not part of the table yet."""
        return f"{self.root}/{_STAGING}/{name}"

    def rejects(self, name: str) -> str:
        """The folder for what a batch rejected, which is moved with it."""
        return f"{self.staging(name)}/{_REJECTED}"

    def staged_files(self, name: str) -> dict[str, int]:
        """Names of the files of a batch, with their folder ``dt=…``, and their sizes in bytes."""
        found = self.storage.entries(self.staging(name))
        days = [entry for entry in found if entry.is_folder and entry.name.startswith("dt=")]
        return {
            f"{day.name}/{file.name}": file.size
            for day in days
            for file in self.storage.entries(day.path)
            if file.name.endswith(".parquet") and file.size
        }

    def move_into_place(self, commit: Commit) -> None:
        """Move the files of a committed batch into place."""
        staging = self.staging(commit.staged)
        if commit.staged and self.storage.find(staging) is not None:
            for name in commit.files:
                self.storage.move(f"{staging}/{name}", f"{self.root}/{name}")
            if self.storage.find(self.rejects(commit.staged)) is not None:
                self.storage.move(
                    self.rejects(commit.staged), f"{self.root}/{_REJECTED}/{commit.staged}"
                )
            self.storage.remove(staging)

    def sweep(self, before_ms: int) -> None:
        """Remove what was staged before a time, in ms since 1970, and never committed."""
        for entry in self.storage.entries(f"{self.root}/{_STAGING}"):
            if entry.changed_ms < before_ms:
                self.storage.remove(entry.path)
