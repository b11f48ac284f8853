"""Which files there are to ingest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from disque_tx.spark.pipeline.errors import NothingToRead
from disque_tx.spark.pipeline.storage import Entry, Storage
from disque_tx.spark.pipeline.tables.commits import Commit

_SUFFIXES: Final = (".jsonl", ".jsonl.zst")
#: Deeper than ``dt=…/hour=…`` below a folder for each node.
_DEPTH_MAX: Final = 16
#: Of a batch. Its commit names each file; the bytes keep what a failure costs to some minutes.
_BATCH_FILES: Final = 10_000
_BATCH_BYTES: Final = 1 << 30


def found(storage: Storage, paths: Iterable[str]) -> list[Entry]:
    """Every log in these folders, and these files. Names that begin with ``_`` or ``.`` are work
    in progress of somebody.

    :raises NothingToRead: when a path does not exist.
    """
    logs: dict[str, Entry] = {}
    for path in paths:
        entry = storage.find(path)
        if entry is None:
            raise NothingToRead(f"{path} does not exist. Name folders or files of event logs.")
        logs.update((log.path, log) for log in _below(storage, entry, _DEPTH_MAX))
    return [logs[path] for path in sorted(logs)]


def _below(storage: Storage, entry: Entry, depth: int) -> Iterator[Entry]:
    if not entry.is_folder:
        if entry.name.endswith(_SUFFIXES):
            yield entry
        return
    for child in storage.entries(entry.path) if depth else ():
        if not child.name.startswith(("_", ".")):
            yield from _below(storage, child, depth - 1)


def new(logs: Iterable[Entry], commits: Iterable[Commit]) -> list[Entry]:
    """Those that no batch has read as they are now."""
    known = {tuple(known) for commit in commits for known in commit.inputs}
    return [log for log in logs if (log.path, log.size, log.changed_ms) not in known]


def batches(logs: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Files that are ingested together."""
    batch: list[Entry] = []
    size = 0
    for log in logs:
        if batch and (len(batch) == _BATCH_FILES or size + log.size > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(log)
        size += log.size
    if batch:
        yield batch
