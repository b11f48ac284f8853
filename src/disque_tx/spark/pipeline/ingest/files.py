"""Files of event logs: which there are to ingest, and which of them together."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs
from pyarrow import fs

from disque_tx.spark.errors import NothingToRead
from disque_tx.spark.paths import names_below, opened, resolved
from disque_tx.spark.pipeline.tables.runs import Runs

_SUFFIXES: Final = (".jsonl", ".jsonl.zst")
#: The names of files that nodes finished: the node, its start, and the number of the first event.
_NAMED: Final = re.compile(r"events-([0-9a-f]{8})-(\d{1,18})-(\d{1,18})\.jsonl\.zst")
#: Limits of a batch, which bound the cost of a failure to minutes.
_BATCH_FILES: Final = 10_000
_BATCH_BYTES: Final = 1 << 30


@attrs.frozen
class LogFile:
    """A file of a log. ``path``: resolved. ``changed_ms``: since 1970. ``begins``: node, start and
    number of its first event, if its name says so."""

    path: str
    size: int
    changed_ms: int
    begins: tuple[str, int, int] | None

    @property
    def state(self) -> list[int]:
        """What changes when the file does."""
        return [self.size, self.changed_ms]

    def is_known(self, runs: Runs) -> bool:
        """Whether its name says that it was read."""
        return self.begins is not None and runs.contains(*self.begins)


def unread(paths: Iterable[str], runs: Runs, remembered: Mapping[str, list[int]]) -> list[LogFile]:
    """Every log in these folders, and these files, that was not read in its present state: neither
    by its name, nor as one of those that were ``remembered``. Names that begin with ``_`` or ``.``
    are unfinished files, and ignored.

    :raises NothingToRead: when a path does not exist.
    """
    found = {log.path: log for path in paths for log in _unread(resolved(path), runs)}
    logs = (found[path] for path in sorted(found))
    return [log for log in logs if not log.is_known(runs) and remembered.get(log.path) != log.state]


def unfinished(paths: Iterable[str]) -> int:
    """How many segments nodes have left in these folders, on a disk, to be finished when they run
    again."""
    folders = [resolved(path) for path in paths]
    return sum(
        len(glob.glob(f"{glob.escape(folder)}/{below}_full-*.events"))
        for folder in folders
        for below in ("", "*/")
    )


def _unread(path: str, runs: Runs) -> Iterator[LogFile]:
    system, place = opened(path)
    info = system.get_file_info(place)
    if info.type == fs.FileType.NotFound:
        raise NothingToRead(f"{path} does not exist. Name folders or files of event logs.")
    if info.type == fs.FileType.File:
        yield _log_file(path, info)
        return
    names = [
        name
        for name in names_below(path)
        if name.endswith(_SUFFIXES) and not ((begins := _begins(name)) and runs.contains(*begins))
    ]
    infos = system.get_file_info([f"{place}/{name}" for name in names])
    for name, info in zip(names, infos, strict=True):
        yield _log_file(f"{path}/{name}", info)


def _log_file(path: str, info: fs.FileInfo) -> LogFile:
    return LogFile(path, info.size or 0, (info.mtime_ns or 0) // 1_000_000, _begins(path))


def _begins(path: str) -> tuple[str, int, int] | None:
    match = _NAMED.fullmatch(path, path.rfind("/") + 1)
    return (match[1], int(match[2]), int(match[3])) if match else None


def batches(logs: Iterable[LogFile]) -> Iterator[list[LogFile]]:
    """Files that are ingested together."""
    batch: list[LogFile] = []
    size = 0
    for log in logs:
        if batch and (len(batch) == _BATCH_FILES or size + log.size > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(log)
        size += log.size
    if batch:
        yield batch
