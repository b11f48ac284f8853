"""Lines of files as Parquet files that are not part of a table yet. Each worker gets a share of the
files, and writes its own. What was written for a share that failed, and was done again, is part of
no table, and ``vacuum`` removes it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from heapq import heappop, heappush
from typing import Final
from uuid import uuid4

import attrs
import pyarrow as pa

from disque_tx.spark.pipeline.ingest.lines import FilePart, Unreadable, parts, read
from disque_tx.spark.pipeline.ingest.rows import event_rows, rejected_rows
from disque_tx.spark.pipeline.ingest.workers import Workers
from disque_tx.spark.pipeline.tables.deltalog import DataFile, DeltaLog
from disque_tx.spark.pipeline.tables.events import event_schema, rejected_schema
from disque_tx.spark.pipeline.tables.footers import Staged
from disque_tx.spark.pipeline.tables.partitions import PartitionedFiles

#: Larger files are divided, unless they are compressed, and larger shares made more.
_SHARE_BYTES: Final = 64 << 20
_FAILURES: Final = (Unreadable, OSError, pa.ArrowException)
#: Columns in which there is little to gain from equal values.
_DISTINCT: Final = ("seq", "time", "job_id")


@attrs.frozen
class StagedLines:
    """What was made of the lines of files. ``staged``: the events. ``events``: how many. ``bad``:
    the files with other lines."""

    staged: Staged
    events: int
    bad: list[str]


@attrs.frozen
class _StagedShare:
    """The same for a share. ``failed``: what ended it. It is not raised, since an error of a task
    would reach the caller as a page of Java."""

    files: list[DataFile]
    events: int = 0
    bad: list[str] = attrs.Factory(list)
    failed: Exception | None = None


def stage_events(workers: Workers, root: str, files: Iterable[tuple[str, int]]) -> StagedLines:
    """Write the events in files, of which paths and sizes in bytes are given, by day.

    :raises Unreadable: when a file has changed since it was examined.
    :raises OSError: when they cannot be written.
    """
    folder = _new_folder()
    written = _map(workers, partial(_write_events, root, folder), files)
    found = [file for each in written for file in each.files]
    bad = sorted({path for each in written for path in each.bad})
    return StagedLines(Staged(folder, found), sum(each.events for each in written), bad)


def stage_rejected(
    workers: Workers, log: DeltaLog, files: Iterable[tuple[str, int]], batch: int
) -> Staged:
    """Write the lines in files that are not events. ``batch``: the number of the ingest.

    :raises Unreadable: when a file has changed since it was examined.
    :raises OSError: when they cannot be written.
    """
    folder = _new_folder()
    written = _map(workers, partial(_write_rejected, log.root, folder, batch), files)
    return Staged(folder, [file for each in written for file in each.files])


def _new_folder() -> str:
    return f"batch-{uuid4().hex}"


def _map(
    workers: Workers, write: partial[_StagedShare], files: Iterable[tuple[str, int]]
) -> list[_StagedShare]:
    written = workers.map(write, _shares(files, workers.count))
    for each in written:
        if each.failed is not None:
            raise each.failed
    return written


def _shares(files: Iterable[tuple[str, int]], count: int) -> list[list[FilePart]]:
    """Files, or parts of them, in shares of about the same size, one for each worker if they are
    not too large. The largest come first, each to the share that is least until then."""
    found = sorted(parts(files, _SHARE_BYTES), key=lambda each: each[1], reverse=True)
    wanted = max(count, sum(size for _, size in found) // _SHARE_BYTES)
    shares: list[tuple[int, int, list[FilePart]]] = [(0, at, []) for at in range(wanted)]
    for part, size in found:
        taken, at, share = heappop(shares)
        share.append(part)
        heappush(shares, (taken + max(size, 1), at, share))
    return [share for _, _, share in sorted(shares, key=lambda each: each[1]) if share]


def _write_events(root: str, folder: str, share: Iterable[FilePart]) -> _StagedShare:
    events, bad = 0, set[str]()
    try:
        with PartitionedFiles(root, folder, event_schema(), "dt", _DISTINCT) as files:
            for part in share:
                for some in read(part):
                    events += len(some.events)
                    files.write(event_rows(some.events))
                    if some.others:
                        bad.add(part.path)
            return _StagedShare(files.close(), events, sorted(bad))
    except _FAILURES as error:
        return _StagedShare([], failed=error)


def _write_rejected(root: str, folder: str, batch: int, share: Iterable[FilePart]) -> _StagedShare:
    try:
        with PartitionedFiles(root, folder, rejected_schema(), "batch") as files:
            for part in share:
                for some in read(part):
                    for rows in rejected_rows(part.path, some.others, batch):
                        files.write(rows)
            return _StagedShare(files.close())
    except _FAILURES as error:
        return _StagedShare([], failed=error)
