"""Files of event logs: which there are to ingest, and which of them together."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs
from pyarrow import fs

from disque_tx.spark.errors import NothingToRead
from disque_tx.spark.paths import as_utf8, is_utf8, names_below, opened, resolved
from disque_tx.spark.pipeline.tables.runs import Runs

_FINISHED: Final = ".jsonl.zst"
_SUFFIXES: Final = (".jsonl", _FINISHED)
#: The names of files that nodes finished: the node, its start, and the number of the first event.
_NAMED: Final = re.compile(r"events-([0-9a-f]{8})-([0-9]{1,18})-([0-9]{1,18})\.jsonl\.zst")
_DIGITS_MAX: Final = 18
#: Those that nodes have begun, in the folder of a log or of several.
_SEGMENT: Final = re.compile(r"(?:[^/]+/)?_full-[^/]*\.events")
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


@attrs.frozen
class Found:
    """What is in folders. ``logs``: files to ingest, by their paths. ``unfinished``: how many
    segments nodes have left, on a disk, to be finished when they run again. ``unnamed``: paths, as
    far as they can be written, that are not UTF-8, as the libraries want them."""

    logs: list[LogFile]
    unfinished: int
    unnamed: list[str]


def unread(paths: Iterable[str], runs: Runs, remembered: Mapping[str, list[int]]) -> Found:
    """Every log in these folders, and these files, that was not read in its present state: neither
    by its name, nor as one of those that were ``remembered``. Names that begin with ``_`` or ``.``
    are unfinished files, and ignored.

    :raises NothingToRead: when a path does not exist.
    """
    known = _KnownNames(runs)
    hidden: set[str] = set()
    unnamed: set[str] = set()
    found = {
        log.path: log for path in paths for log in _unread(resolved(path), known, hidden, unnamed)
    }
    logs = (found[path] for path in sorted(found))
    return Found(
        [log for log in logs if not log.is_known(runs) and remembered.get(log.path) != log.state],
        len(hidden),
        sorted(unnamed),
    )


def _unread(
    path: str, known: _KnownNames, hidden: set[str], unnamed: set[str]
) -> Iterator[LogFile]:
    """``hidden``: gets the paths of segments that are not finished; ``unnamed``: those that are not
    UTF-8."""
    system, place = opened(path)
    info = system.get_file_info(place)
    if info.type == fs.FileType.NotFound:
        raise NothingToRead(f"{path} does not exist. Name folders or files of event logs.")
    if info.type != fs.FileType.Directory:
        yield _log_file(path, info)
        return
    left: list[str] = []
    names = [
        name
        for name in names_below(path, left)
        if name.endswith(_SUFFIXES) and not known.contains(name)
    ]
    hidden.update(f"{path}/{name}" for name in left if _SEGMENT.fullmatch(name))
    unnamed.update(as_utf8(f"{path}/{name}") for name in names if not is_utf8(name))
    names = [name for name in names if is_utf8(name)]
    infos = system.get_file_info([f"{place}/{name}" for name in names])
    for name, info in zip(names, infos, strict=True):
        yield _log_file(f"{path}/{name}", info)


class _KnownNames:
    """Which names say that a file was read: :meth:`LogFile.is_known` for many names, which mostly
    are of few nodes and starts."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        # A name up to the number of the first event → by nodes whose IDs begin so, where the runs
        # of that start begin, and where they end.
        self._starts: dict[str, list[tuple[list[int], list[int]]]] = {}

    def contains(self, name: str) -> bool:
        """Whether this is the name of a file that was read."""
        start, _, rest = name.rpartition("-")
        number = rest.removesuffix(_FINISHED)
        if len(number) != len(rest) - len(_FINISHED) or not _is_number(number):
            return False
        ranges = self._starts.get(start)
        if ranges is None:
            begins = _begins(name)
            nodes = self._runs.of_start(begins[0], begins[1]) if begins else ()
            ranges = self._starts[start] = [
                ([run.first for run in runs], [run.last for run in runs]) for runs in nodes
            ]
        first = int(number)
        for firsts, lasts in ranges:
            at = bisect_right(firsts, first)
            if at and lasts[at - 1] >= first:
                return True
        return False


def _is_number(text: str) -> bool:
    return 0 < len(text) <= _DIGITS_MAX and text.isascii() and text.isdigit()


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
