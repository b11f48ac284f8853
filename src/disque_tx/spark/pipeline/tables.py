"""The table of events: where its files are, and which of them count.

::

    TABLE/
      _commits/000000000000.json   what the first batch brought, and where its files were staged
      _staging/<unique name>/      files of a batch that is not committed, or was not moved yet
      _rejected/<unique name>/     lines and files that were no events
      dt=2026-11-20/*.parquet      the events

A batch is part of the table from the moment at which its commit has its name, which only one
process can give it. Its files are moved after that; whoever opens the table next moves what is
left. So there is no moment at which half a batch would stay.
"""

from __future__ import annotations

import json
from typing import Any, Final

import attrs
from pyspark.sql import DataFrame, SparkSession

from disque_tx.spark.pipeline.errors import BadTable
from disque_tx.spark.pipeline.lines import EVENT_COLUMNS
from disque_tx.spark.pipeline.storage import Storage

VERSION: Final = 1
_COMMITS: Final = "_commits"
_STAGING: Final = "_staging"
_REJECTED: Final = "_rejected"


@attrs.frozen
class Span:
    """Numbers that one node gave, from ``first`` to ``last``, of which ``events`` are there."""

    node: str
    boot: int
    first: int
    last: int
    events: int

    def meets(self, other: Span) -> bool:
        """Whether both could hold the same event."""
        same = (self.node, self.boot) == (other.node, other.boot)
        return same and self.first <= other.last and other.first <= self.last


@attrs.frozen
class Commit:
    """What a batch brought. ``staged``: the name of its folder. ``files``: names in there.
    ``inputs``: path, size and time of change in ms of each file that was read or rejected."""

    number: int
    staged: str
    files: list[str]
    inputs: list[tuple[str, int, int]]
    spans: list[Span]
    duplicates: int
    rejected: int

    def text(self) -> str:
        """As JSON."""
        return json.dumps({"version": VERSION, **attrs.asdict(self)}, indent=1) + "\n"

    @classmethod
    def parsed(cls, text: str) -> Commit:
        """:raises ValueError: when it is none."""
        fields: dict[str, Any] = json.loads(text)
        fields.pop("version")
        spans = [Span(**span) for span in fields.pop("spans")]
        inputs = [(str(path), int(size), int(ms)) for path, size, ms in fields.pop("inputs")]
        return cls(spans=spans, inputs=inputs, **fields)


class Table:
    """A table of events.

    ``create``: whether an empty or missing folder becomes one. What an earlier process committed
    and had no time to move is moved.

    :raises BadTable: when it is none, or of another version.
    """

    def __init__(self, spark: SparkSession, path: str, create: bool = False) -> None:
        self._spark = spark
        self.storage = Storage(spark)
        self.root = self.storage.absolute(path)
        self._check(create)
        self.commits = [
            self._commit(entry.path)
            for entry in self.storage.entries(f"{self.root}/{_COMMITS}")
            if entry.name.endswith(".json") and not entry.name.startswith("_")
        ]
        for commit in self.commits:
            self.settle(commit)

    def _check(self, create: bool) -> None:
        names = [entry.name for entry in self.storage.entries(self.root)]
        if _COMMITS in names or (create and not set(names) - {_STAGING, _REJECTED}):
            return
        what = "is no table of events" if names else "does not exist or is empty"
        raise BadTable(f"{self.root} {what}. 'disque-pipeline ingest' makes one, in a new folder.")

    def _commit(self, path: str) -> Commit:
        text = self.storage.read(path)
        try:
            version = json.loads(text)["version"]
            if version == VERSION:
                return Commit.parsed(text)
        except (ValueError, TypeError, KeyError) as error:
            raise BadTable(f"{path} is damaged: {error}. Restore it from a copy.") from error
        raise BadTable(
            f"{self.root} was written by another version ({version}, this one reads {VERSION}). "
            "Use that version, or ingest the event logs again into a new folder."
        )

    def events(self) -> DataFrame:
        """All events, with the columns of :data:`EVENT_COLUMNS` and ``dt``."""
        return self._read(self.root)

    def staged(self, name: str) -> DataFrame:
        """Events of a batch that is not part of the table yet."""
        return self._read(self.staging(name))

    def _read(self, path: str) -> DataFrame:
        return self._spark.read.schema(f"{EVENT_COLUMNS}, dt DATE").parquet(path)

    def staging(self, name: str) -> str:
        """The folder of a batch that is not part of the table yet."""
        return f"{self.root}/{_STAGING}/{name}"

    def rejects(self, name: str) -> str:
        """The folder for what a batch cannot use, which moves with it."""
        return f"{self.staging(name)}/{_REJECTED}"

    def staged_files(self, name: str) -> list[str]:
        """Names of the files of a batch, with their folder ``dt=…``."""
        found = self.storage.entries(self.staging(name))
        days = [entry for entry in found if entry.is_folder and entry.name.startswith("dt=")]
        return [
            f"{day.name}/{file.name}"
            for day in days
            for file in self.storage.entries(day.path)
            if file.name.endswith(".parquet") and file.size
        ]

    def publish(self, commit: Commit) -> bool:
        """Make a batch part of the table; ``False`` if somebody else took the number."""
        path = f"{self.root}/{_COMMITS}/{commit.number:012d}.json"
        if not self.storage.publish(path, commit.text()):
            return False
        self.commits.append(commit)
        return True

    def settle(self, commit: Commit) -> None:
        """Move the files of a batch that is part of the table to where they belong."""
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
        """Remove what was staged before a moment, in ms since 1970, and never committed."""
        for entry in self.storage.entries(f"{self.root}/{_STAGING}"):
            if entry.changed_ms < before_ms:
                self.storage.remove(entry.path)
