"""``disque-pipeline compact``: opening and reading a table takes the same time, however often
events were ingested.

Small files of a day are merged. The commit with the merged file says which files it replaces, so a
reader sees either those or the new one. The replaced files stay for a day, for programs that have
begun to read them, and are removed by the next run after that. Then all commits are merged into
one.

If it is killed at any moment, nothing is lost: before its commit a merge has not happened; after it
the next process that opens the table moves the merged files into place.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final
from uuid import uuid4

import attrs
from pyspark.sql import SparkSession

from disque_tx.spark.errors import BadTable, Conflict
from disque_tx.spark.pipeline.tables.commits import Commit
from disque_tx.spark.pipeline.tables.table import EventTable

#: Smaller files are merged.
_SMALL_BYTES: Final = 32 << 20
#: With this many small files of one day, or more commits than this, ingest merges them.
_FILES_MAX: Final = 16
_COMMITS_MAX: Final = 32
#: Bytes that are merged at once, which limits the cost of a failure.
_MERGE_BYTES: Final = 1 << 30
_ROWS_PER_FILE: Final = 10_000_000
#: How long a reader may take.
KEPT_MS: Final = 86_400_000


@attrs.frozen
class Compacted:
    """The result. ``merged``: number of files that were replaced by ``new`` ones. ``removed``:
    files that were replaced earlier. ``files``: how many the table has now."""

    merged: int
    new: int
    removed: int
    files: int


def compact(
    spark: SparkSession,
    path: str,
    step: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.time,
    kept_ms: int = KEPT_MS,
) -> Compacted:
    """Merge all small files of the table at ``path``, and its commits.

    ``step``: called with the name of each step when it is done: merged, committed, settled (once
    per merge), removed, checkpointed. ``clock``: the time of day in s. ``kept_ms``: how long files
    that were replaced stay.

    :raises BadTable: when there is no table, or its files do not match its commits.
    :raises Conflict: when another process wrote to the table at the same time.
    """
    table = EventTable(spark, path)
    return _Compaction(table, step, lambda: int(clock() * 1000), kept_ms).run(2)


def compact_if_due(table: EventTable, now_ms: Callable[[], int]) -> None:
    """Compact if it is due; if another process writes at this time, the next ingest does it."""
    try:
        compaction = _Compaction(table, lambda _: None, now_ms, KEPT_MS)
        if compaction.is_due():
            compaction.run(_FILES_MAX)
    except Conflict:
        pass


class _Compaction:
    """See :func:`compact`; ``now_ms``: since 1970."""

    def __init__(
        self,
        table: EventTable,
        step: Callable[[str], None],
        now_ms: Callable[[], int],
        kept_ms: int,
    ) -> None:
        self._table = table
        self._step = step
        self._now_ms = now_ms
        self._kept_ms = kept_ms

    def is_due(self) -> bool:
        """Whether there are too many commits, or small files of one day."""
        log = self._table.log
        return len(log.commits) > _COMMITS_MAX or any(self._groups(log.live(), _FILES_MAX))

    def run(self, least: int) -> Compacted:
        """Compact days with ``least`` small files or more."""
        log = self._table.log
        merged = new = 0
        for names in self._groups(self._known(log.live(), least), least):
            merged += len(names)
            new += len(self._merge(names).files)
        kept, removed = self._remove_replaced()
        self._step("removed")
        log.checkpoint(kept)
        self._step("checkpointed")
        return Compacted(merged, new, removed, len(log.live()))

    def _known(self, files: dict[str, int], least: int) -> dict[str, int]:
        """The files with unknown sizes looked up, where needed; earlier versions did not record
        them."""
        days = {_day(name) for names in self._groups(files, least) for name in names}
        sizes = dict(files)
        for day in days if -1 in files.values() else ():
            for entry in self._table.storage.entries(f"{self._table.root}/{day}"):
                name = f"{day}/{entry.name}"
                if sizes.get(name) == -1:
                    sizes[name] = entry.size
        return sizes

    @staticmethod
    def _groups(files: dict[str, int], least: int) -> list[list[str]]:
        """Files that are merged together: all small ones of some days."""
        days: defaultdict[str, list[str]] = defaultdict(list)
        for name, size in files.items():
            if size < _SMALL_BYTES:
                days[_day(name)].append(name)
        groups: list[list[str]] = []
        room = 0
        for day in sorted(days):
            if len(days[day]) < least:
                continue
            size = sum(files[name] for name in days[day])
            if not groups or size > room:
                groups.append([])
                room = _MERGE_BYTES
            groups[-1] += days[day]
            room -= size
        return groups

    def _merge(self, names: list[str]) -> Commit:
        table = self._table
        staged = uuid4().hex
        events = table.read(names)
        # All of a day in one task, so that it becomes one file.
        writer = events.repartition("dt").write.option("compression", "zstd")
        writer = writer.option("maxRecordsPerFile", _ROWS_PER_FILE)
        writer.partitionBy("dt").parquet(table.staging(staged))
        before, after = events.count(), table.staged(staged).count()
        if before != after:
            raise BadTable(
                f"{before} events of {table.root} became {after} while files were merged. Nothing"
                " was changed. Check the disk, and look for files that were modified."
            )
        self._step("merged")
        files = table.staged_files(staged)
        commit = Commit(
            number=table.log.next_number,
            staged=staged,
            files=list(files),
            sizes=list(files.values()),
            inputs=[],
            spans=[],
            duplicates=0,
            rejected=0,
            replaces=names,
            at_ms=self._now_ms(),
        )
        if not table.log.publish(commit):
            table.storage.remove(table.staging(staged))
            raise Conflict(
                f"Another process wrote to {table.root} at the same time. Nothing was merged. Run"
                " the command again."
            )
        self._step("committed")
        table.move_into_place(commit)
        self._step("settled")
        return commit

    def _remove_replaced(self) -> tuple[Iterable[str], int]:
        """Remove files that were replaced long ago; returns those that remain, and how many were
        removed."""
        before_ms = self._now_ms() - self._kept_ms
        replaced = self._table.log.replaced()
        kept = [name for name, at_ms in replaced.items() if at_ms > before_ms]
        for name in replaced.keys() - set(kept):
            self._table.storage.remove(f"{self._table.root}/{name}")
        return kept, len(replaced) - len(kept)


def _day(name: str) -> str:
    """The folder of a file, ``dt=…``."""
    return name.partition("/")[0]
