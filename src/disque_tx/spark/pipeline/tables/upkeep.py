"""Keeping a table of events small, fast, and free of what must not be in it.

``compact_if_due``, ``optimize`` and ``vacuum`` change which files there are, but no event.
``expire`` and ``forget`` delete events; their numbers stay known, so that no ingest brings them
back. A file that left the table stays for those who read an earlier version, until ``vacuum``;
``forget`` does not wait for that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from datetime import date
from typing import Final

import attrs

from disque_tx.spark.errors import BadTable, Conflict
from disque_tx.spark.paths import files_below, opened
from disque_tx.spark.pipeline.tables.deltalog import DataFile, DeltaLog
from disque_tx.spark.pipeline.tables.events import EventTableLog, is_former

#: The application whose transactions are batches of events. Whoever adds or deletes some takes its
#: next number, so that of two at the same time one fails.
INGEST: Final = "ingest"
#: How long files that left the table stay.
KEPT_HOURS: Final = 168
#: Smaller files are merged; with this many of one day, an ingest merges them.
_SMALL_BYTES: Final = 32 << 20
_FILES_MAX: Final = 16
_ORDER: Final = "job_id"
#: Of a file of the same folder, as Spark writes it on local disks.
_CHECKSUM: Final = re.compile(r"((?:.*/)?)\.([^/]+)\.crc")


@attrs.frozen
class Optimized:
    """The result. ``merged``: number of files that ``new`` ones replace. ``files``: how many the
    table has now."""

    merged: int
    new: int
    files: int


@attrs.frozen
class Forgotten:
    """``events``: how many were deleted. ``removed``: files that had them, or that no commit named.
    ``files``: those of the table now. ``left``: files beside these."""

    events: int
    removed: int
    files: int
    left: list[str]


def next_number(table: EventTableLog) -> int:
    """The number of the next transaction of :data:`INGEST`."""
    return table.log.last(INGEST) + 1


def compact_if_due(table: EventTableLog) -> None:
    """Merge the small files of days that have many; if another process writes at this time, the
    next ingest does it. Files that left the table a week ago are removed."""
    days = _small(table.log.files(), _FILES_MAX)
    if not days:
        return
    try:
        table.log.compact(days)
    except Conflict:
        return
    if not is_former(table.root):
        table.log.vacuum(KEPT_HOURS)


def optimize(path: str, again: bool = False) -> Optimized:
    """Merge small files, and sort the events of a day along a curve by job ID, so that the events
    of a job are in few files. ``again``: also days that have no two small files.

    :raises BadTable: when ``path`` is not a table of events.
    :raises Conflict: when another process wrote to the table at the same time.
    """
    table = EventTableLog(path)
    files = table.log.files()
    days = sorted({str(file.partition["dt"]) for file in files}) if again else _small(files, 2)
    merged, new = table.log.compact(days, _ORDER)
    return Optimized(merged, new, len(table.log.files()))


def _small(files: Iterable[DataFile], least: int) -> list[str]:
    """The days with this many small files."""
    count = Counter(str(file.partition["dt"]) for file in files if file.size < _SMALL_BYTES)
    return sorted(day for day, files_of_day in count.items() if files_of_day >= least)


def vacuum(path: str, keep_hours: int = KEPT_HOURS) -> int:
    """Remove files that left the table longer ago, and those of processes that were killed; returns
    how many. ``keep_hours``: longer than any ingest and any reader takes.

    :raises BadTable: when ``path`` is not a table of events.
    """
    table = EventTableLog(path)
    _check_converted(table)
    logs = [log for log in (table.log, table.rejected()) if log is not None]
    return sum(_vacuumed(log, keep_hours) for log in logs)


def _vacuumed(log: DeltaLog, keep_hours: int) -> int:
    """How many files with rows were removed; there are also checksums, and in an object store
    objects for folders."""
    before = {name for name, _ in files_below(log.root) if name.endswith(".parquet")}
    return len(before.intersection(log.vacuum(keep_hours, every_file=True)))


def expire(path: str, before: date) -> int:
    """Delete the events of all days before one; returns how many. No file is written again.

    :raises BadTable: when ``path`` is not a table of events.
    :raises Conflict: when another process wrote to the table at the same time.
    """
    table = EventTableLog(path)
    return table.log.delete(f"dt < DATE '{before.isoformat()}'", {INGEST: next_number(table)})


def forget(path: str, queue: str | None, job: str | None) -> Forgotten:
    """Delete the events of a queue, of a job, or of a job as far as it was in a queue, with all
    files that have them, also those of earlier versions: these can no longer be read.

    :raises BadTable: when ``path`` is not a table of events.
    :raises Conflict: when another process wrote to the table at the same time.
    """
    table = EventTableLog(path)
    _check_converted(table)
    before = {name for name, _ in _events_files(table.root)}
    # From here on no ingest that runs already can commit, so all files that are there before and
    # that no commit names are of no use to anybody.
    table.log.commit([], {INGEST: next_number(table)}, table.log.notes())
    wanted = {"queue": queue, "job_id": job}
    condition = " AND ".join(
        f"{name} = {_quoted(value)}" for name, value in wanted.items() if value
    )
    events = table.log.delete(condition, {INGEST: next_number(table)})
    kept = {file.path for file in table.log.files()}
    removed, left = 0, []
    system, place = opened(table.root)
    for name, about in _events_files(table.root):
        if about in kept:
            continue
        if about not in before:
            left += [name] if name == about else []
            continue
        system.delete_file(f"{place}/{name}")
        # What Spark keeps beside a file, to check it, has no event.
        removed += name == about
    return Forgotten(events, removed, len(kept), left)


def _events_files(root: str) -> list[tuple[str, str]]:
    """The files in the folder of a table, except its log and what is beside it; each with the file
    that it is about, which is another one for checksums."""
    names = [name for name, _ in files_below(root) if not name.startswith("_")]
    return [(name, _CHECKSUM.sub(r"\1\2", name)) for name in names]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _check_converted(table: EventTableLog) -> None:
    if is_former(table.root):
        raise BadTable(
            f"{table.root} is still a table of an earlier version, too, which has the same files."
            f" 'disque-pipeline convert {table.root} --remove' ends that."
        )
