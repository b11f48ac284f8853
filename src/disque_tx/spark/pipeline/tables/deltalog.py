"""The log of a Delta table: which files belong to it, and what was committed.

Spark's tasks write Parquet files below the folder of the table, and the driver commits them with
the library ``deltalake``, which needs neither Java nor archives for Spark. A commit has a
transaction number for each application that it belongs to. The library accepts a number twice, so
who commits reads the last number from the same :class:`DeltaLog` before: of two processes that did
so at the same time, one fails with :class:`Conflict`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from time import time_ns
from typing import Any, Final, TypeVar

import attrs
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Field, Transaction, WriterProperties
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from disque_tx.spark.errors import BadTable, Conflict
from disque_tx.spark.objectstore import options
from disque_tx.spark.paths import DELTA_LOG, check_table, exists

#: How a table says that this pipeline made it; the rest is what it contains.
MAKER: Final = "disque-pipeline "
#: Commits between two checkpoints, so that a table opens as fast after years.
_CONFIGURATION: Final = {
    "delta.checkpointInterval": "20",
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 7 days",
}
_NOTES: Final = "disque"
#: How many commits are looked through first for notes; other programs may have made some.
_NOTES_AMONG: Final = (1, 20, None)
#: What changes no rows repeats the notes that it found when it began, so that some are left when
#: earlier commits leave the log. Others may have been added while it ran.
_REPEATS: Final = frozenset(("OPTIMIZE", "VACUUM START", "VACUUM END"))
_Answer = TypeVar("_Answer")


@attrs.frozen
class DataFile:
    """A Parquet file. ``path``: below the folder of the table. ``partition``: column → value, as
    text. ``statistics``: as the Delta protocol has them, in JSON. ``spans``: column of times → the
    earliest and the latest, in µs since 1970, as far as they were asked for and are known."""

    path: str
    size: int
    modified_ms: int
    rows: int
    partition: Mapping[str, str | None]
    statistics: str = "{}"
    spans: Mapping[str, tuple[int, int]] = attrs.field(factory=dict)


class NoTable(BadTable):
    """A path at which a Delta table was looked for in vain."""


class DeltaLog:
    """The log of the table at ``root``, a resolved path.

    ``as_of``: a version, or a time in ISO 8601, at which the table is looked at.

    :raises BadTable: when there is no Delta table, or no such version.
    :raises BadPath: when the library would look for the table at another path.
    """

    def __init__(self, root: str, as_of: int | str | None = None) -> None:
        check_table(root)
        self.root = root
        try:
            self._table = DeltaTable(root, storage_options=options(root))
            if as_of is not None:
                self._table.load_as_version(_version_of(self._table, as_of))
        except TableNotFoundError as error:
            raise NoTable(f"{root} is not a Delta table.") from error
        except (DeltaError, ValueError, OverflowError) as error:
            raise BadTable(f"{root} cannot be read as of {as_of}: {error}") from error

    @staticmethod
    def exists(root: str) -> bool:
        """Whether there is a Delta table."""
        return exists(f"{root}/{DELTA_LOG}") and DeltaTable.is_deltatable(root, options(root))

    @classmethod
    def find(cls, root: str, as_of: int | str | None = None) -> DeltaLog | None:
        """The log, if there is a table, of which the folder is looked at once."""
        if not exists(f"{root}/{DELTA_LOG}"):
            return None
        try:
            return cls(root, as_of)
        except NoTable:
            return None

    @classmethod
    def create(
        cls, root: str, schema: pa.Schema, what: str, partition_by: tuple[str, ...] = ()
    ) -> DeltaLog:
        """Create a table; one that appeared in the meantime is opened. ``what``: it contains.

        :raises BadPath: when the library would look for the table at another path.
        """
        check_table(root)
        DeltaTable.create(
            root,
            schema,
            mode="ignore",
            partition_by=list(partition_by),
            description=f"{MAKER}{what}",
            configuration=dict(_CONFIGURATION),
            storage_options=options(root),
        )
        return cls(root)

    @property
    def version(self) -> int:
        """The version of the table as it was read."""
        return self._table.version()

    @property
    def what(self) -> str:
        """What the table contains, if this pipeline made it; otherwise nothing."""
        description = self._table.metadata().description or ""
        return description.removeprefix(MAKER) if description.startswith(MAKER) else ""

    @property
    def id(self) -> str:
        """Which table it is, wherever it lies; one that is made again has another ID."""
        return str(self._table.metadata().id)

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return pa.schema(self._table.schema().to_arrow())

    def last(self, app: str) -> int:
        """The last transaction number of an application, -1 if there is none."""
        number = self._table.transaction_version(app)
        return -1 if number is None else number

    def notes(self) -> Mapping[str, Any] | None:
        """The notes of the last commit that has some of its own; those that an upkeep repeated, if
        there is none."""
        repeated: str | None = None
        for count in _NOTES_AMONG:
            for commit in self._table.history(count):
                if _NOTES in commit:
                    if commit.get("operation") not in _REPEATS:
                        return _read(commit[_NOTES])
                    repeated = repeated or commit[_NOTES]
        return None if repeated is None else _read(repeated)

    def files(self, *times: str) -> list[DataFile]:
        """The files of the table. ``times``: columns whose spans are wanted."""
        actions = pa.table(self._table.get_add_actions(flatten=True))
        keys = [name for name in actions.column_names if name.startswith("partition.")]
        ends = {time: (f"min.{time}", f"max.{time}") for time in times}
        known = {time: pair for time, pair in ends.items() if pair[1] in actions.column_names}
        bounds = [name for pair in known.values() for name in pair]
        return [
            DataFile(
                path=row["path"],
                size=row["size_bytes"],
                modified_ms=row["modification_time"],
                rows=row["num_records"] or 0,
                partition={key.partition(".")[2]: _text(row[key]) for key in keys},
                spans={
                    time: (_micros(row[least]), _micros(row[greatest]) + _CUT_US)
                    for time, (least, greatest) in known.items()
                    if row[least] is not None and row[greatest] is not None
                },
            )
            for row in actions.select(
                ["path", "size_bytes", "modification_time", "num_records", *keys, *bounds]
            ).to_pylist()
        ]

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The commits, the newest first."""
        return self._table.history(limit)

    def refresh(self) -> None:
        """Look at the table as it is now."""
        self._table.update_incremental()

    # -- changes -----------------------------------------------------------------------------

    def commit(
        self,
        files: Iterable[DataFile],
        numbers: Mapping[str, int] = {},
        notes: Mapping[str, Any] | None = None,
        replacing: pa.Schema | None = None,
        among: tuple[str, str] | None = None,
        removing: Iterable[DataFile] = (),
    ) -> None:
        """Add files. ``numbers``: application → transaction number. ``notes``: kept with the
        commit. ``replacing``: the files take the place of all others, with these columns;
        ``among``: only of those with this value of a partition. ``removing``: files whose place the
        new ones take, if they have the same columns.

        :raises Conflict: when another process committed one of the applications' transactions
            since this log was read.
        """
        actions = [
            AddAction(
                file.path,
                file.size,
                dict(file.partition),
                file.modified_ms,
                True,
                file.statistics,
            )
            for file in files
        ]
        now_ms = time_ns() // 1_000_000
        removed = [
            RemoveAction(file.path, True, now_ms, file.size, dict(file.partition))
            for file in removing
        ]
        self._committing(
            lambda: self._table.create_write_transaction(
                [*actions, *removed],
                "append" if replacing is None else "overwrite",
                self.schema if replacing is None else replacing,
                self._table.metadata().partition_columns,
                partition_filters=None if among is None else [(among[0], "=", among[1])],
                commit_properties=_properties(numbers, notes),
            )
        )

    def add_columns(self, schema: pa.Schema) -> None:
        """Add those columns that the table lacks; rows that are there have no values in them."""
        known = set(self.schema.names)
        new = [Field.from_arrow(field) for field in schema if field.name not in known]
        if new:
            self._committing(lambda: self._table.alter.add_columns(new))

    def delete(self, condition: str, numbers: Mapping[str, int]) -> int:
        """Delete rows by a condition in SQL; returns how many."""
        before, kept = self.rows(), _properties(numbers, self.notes())

        def delete() -> int:
            self._table.delete(condition, writer_properties=_WRITING, commit_properties=kept)
            # Before the table is looked at again, which may have got others meanwhile.
            return before - self.rows()

        return self._committing(delete)

    def compact(self, days: Iterable[str], order: str | None = None) -> tuple[int, int]:
        """Write the files of these partitions again, as fewer ones, sorted by the Z-order of the
        column ``order`` if there is one. Returns how many files became how many."""
        before = after = 0
        optimize, kept = self._table.optimize, _properties({}, self.notes())
        for day in days:
            more: dict[str, Any] = {
                "partition_filters": [("dt", "=", day)],
                "writer_properties": _WRITING,
                "commit_properties": kept,
            }
            run = optimize.compact if order is None else partial(optimize.z_order, [order])
            done = self._committing(partial(run, **more))
            before += done["numFilesRemoved"]
            after += done["numFilesAdded"]
        return before, after

    def vacuum(self, keep_hours: int, every_file: bool = False) -> list[str]:
        """Remove files that left the table longer ago; returns their paths below it, also of those
        that were removed before. ``every_file``: also those that were never committed and are
        older."""
        return self._table.vacuum(
            keep_hours,
            dry_run=False,
            enforce_retention_duration=False,
            full=every_file,
            commit_properties=_properties({}, self.notes()),
        )

    def rows(self) -> int:
        """How many rows the table has."""
        return sum(file.rows for file in self.files())

    def _committing(self, change: Callable[[], _Answer]) -> _Answer:
        try:
            done = change()
        except CommitFailedError as error:
            raise Conflict(
                f"Another process wrote to {self.root} at the same time. Nothing of this was"
                " added. Run the command again."
            ) from error
        self._table.update_incremental()
        return done


def _version_of(table: DeltaTable, as_of: int | str) -> int:
    """The version that is meant. ``ValueError`` if there was none: the library itself would look
    for each that could be between."""
    if isinstance(as_of, str):
        return _version_at(table, as_of)
    if as_of > table.version():
        raise ValueError(f"the newest version is {table.version()}")
    return as_of


def _version_at(table: DeltaTable, time: str) -> int:
    """The version at a time, by the times that ``history`` shows; the library itself goes by those
    of files, which are later. ``ValueError`` if there was none."""
    at = datetime.fromisoformat(time)
    at_ms = round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    known = [int(commit["version"]) for commit in table.history() if commit["timestamp"] <= at_ms]
    if not known:
        raise ValueError("the table is younger, or its log does not go back so far")
    return max(known)


_WRITING: Final = WriterProperties(compression="ZSTD")


def _read(notes: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(notes)
    return found


def _properties(numbers: Mapping[str, int], notes: Mapping[str, Any] | None) -> CommitProperties:
    return CommitProperties(
        custom_metadata=None if notes is None else {_NOTES: json.dumps(notes)},
        app_transactions=[Transaction(app, number) for app, number in numbers.items()],
    )


#: Statistics have times in ms, rounded down.
_CUT_US: Final = 999


def _micros(at: datetime) -> int:
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1_000_000)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
