"""Delta tables of jobs, to which streams and drains add each job once.

1. A batch that was added is not added again: each writer has an application, whose transaction
   number is that of its last batch.
2. A job may be delivered again after it was stored, if its acknowledgement was lost, or if its
   RETRY was over before. It is recognised by its ID, if it is among the last million jobs of the
   table; the files of a batch that has such a job are written again without it.
3. All writers share one more application, so that of two that commit at the same time, one looks
   at what the other has added before it tries again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from disque_tx.spark.errors import BadTable, Conflict
from disque_tx.spark.paths import opened
from disque_tx.spark.pipeline.tables.deltalog import DataFile, DeltaLog, written

#: Some 40 MB in memory.
WINDOW_JOBS: Final = 1_000_000
_EVERYBODY: Final = "disque/jobs"
_ATTEMPTS: Final = 10
_ID: Final = "id"


def _nothing(step: str) -> None:
    return


class JobTable:
    """The table at ``root``, a resolved path; created with the first batch.

    ``window``: among how many of the last jobs one is recognised. ``step``: called with the name
    of each step of a batch when it is done: written, committed.
    """

    def __init__(
        self, root: str, window: int = WINDOW_JOBS, step: Callable[[str], None] = _nothing
    ) -> None:
        self.root = root
        self.step = step
        self._window = window
        self._known: set[str] = set()
        self._ids: deque[pa.ChunkedArray] = deque()
        self._count = 0

    def last(self, app: str) -> int:
        """The number of the last batch of an application, -1 if there is none."""
        return DeltaLog(self.root).last(app) if DeltaLog.exists(self.root) else -1

    def add(self, folder: str, schema: pa.Schema, app: str | None = None, batch: int = 0) -> int:
        """Add the files that were written to a folder of the table; returns how many jobs were new.
        ``app``, ``batch``: whose batch it is, and its number; without, only the IDs count.

        :raises BadTable: when the rows have no IDs, or it is another kind of table.
        :raises Conflict: when others commit again and again at the same time.
        """
        self.step("written")
        log = self._opened(schema)
        files = written(self.root, folder)
        for attempt in range(_ATTEMPTS):
            if app is not None and log.last(app) >= batch:
                self.discard(folder)
                return 0
            self._learn(log)
            files = [kept for file in files if (kept := self._without_known(file)) is not None]
            if not files:
                self.discard(folder)
                return 0
            numbers = {_EVERYBODY: log.last(_EVERYBODY) + 1}
            if app is not None:
                numbers[app] = batch
            try:
                log.commit(files, numbers)
            except Conflict:
                if attempt == _ATTEMPTS - 1:
                    raise
                log = DeltaLog(self.root)
                continue
            break
        self.step("committed")
        for file in files:
            self._remember(file.path, self._ids_of(file.path))
        return sum(file.rows for file in files)

    def discard(self, folder: str) -> None:
        """Remove what was written and is not part of the table."""
        system, place = opened(self.root)
        system.delete_dir(f"{place}/{folder}")

    def _opened(self, schema: pa.Schema) -> DeltaLog:
        if _ID not in schema.names:
            raise BadTable(f"Jobs need the column {_ID!r}, by which each is stored once.")
        if not DeltaLog.exists(self.root):
            DeltaLog.create(self.root, schema, "jobs")
        log = DeltaLog(self.root)
        if log.what != "jobs":
            raise BadTable(f"{self.root} is a Delta table of something else than jobs.")
        log.add_columns(schema)
        return log

    def _learn(self, log: DeltaLog) -> None:
        """Read the IDs in files that others added, or that were there before, the newest first."""
        new = [file for file in log.files() if file.path not in self._known]
        rows = 0
        for file in sorted(new, key=lambda file: file.modified_ms, reverse=True):
            if rows >= self._window:
                self._known.add(file.path)
                continue
            rows += file.rows
            self._remember(file.path, self._ids_of(file.path))

    def _remember(self, path: str, ids: pa.ChunkedArray) -> None:
        self._known.add(path)
        self._ids.append(ids)
        self._count += len(ids)
        while self._count - len(self._ids[0]) >= self._window:
            self._count -= len(self._ids.popleft())

    def _without_known(self, file: DataFile) -> DataFile | None:
        """The file, or one in its place without the jobs that are in the table already."""
        ids = self._ids_of(file.path)
        chunks = [chunk for known in self._ids for chunk in known.chunks]
        is_known = pc.is_in(ids, value_set=pa.chunked_array(chunks, pa.string()))
        if not pc.any(is_known, min_count=0).as_py():
            return file
        system, place = opened(self.root)
        rows = pq.read_table(f"{place}/{file.path}", filesystem=system, partitioning=None)
        rows = rows.filter(pc.invert(is_known))
        system.delete_file(f"{place}/{file.path}")
        folder = file.path.rpartition("/")[0]
        return write(self.root, rows, folder) if len(rows) else None

    def _ids_of(self, path: str) -> pa.ChunkedArray:
        system, place = opened(self.root)
        table = pq.read_table(
            f"{place}/{path}", columns=[_ID], filesystem=system, partitioning=None
        )
        return table.column(_ID).cast(pa.string())


def write(root: str, rows: pa.Table, folder: str) -> DataFile:
    """Write rows to a folder of a table, as one file more."""
    system, place = opened(root)
    name = f"part-{uuid4().hex}.parquet"
    system.create_dir(f"{place}/{folder}", recursive=True)
    pq.write_table(rows, f"{place}/{folder}/{name}", filesystem=system, compression="zstd")
    (file,) = (file for file in written(root, folder) if file.path == f"{folder}/{name}")
    return file


def unfinished(root: str, beginning: str) -> list[str]:
    """The folders of a table whose names begin like this."""
    system, place = opened(root)
    found = system.get_file_info(fs.FileSelector(place, allow_not_found=True))
    return [info.base_name for info in found if info.base_name.startswith(beginning)]
