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
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from disque_tx.spark.errors import BadTable, Conflict
from disque_tx.spark.paths import make_folder, opened
from disque_tx.spark.pipeline.tables.deltalog import DataFile, DeltaLog
from disque_tx.spark.pipeline.tables.footers import Staged, data_file, footer_statistics

#: Some 140 MB in memory: a set of texts, as a batch must not cost more the more jobs are known.
WINDOW_JOBS: Final = 1_000_000
_EVERYBODY: Final = "disque/jobs"
_ATTEMPTS: Final = 10
_ID: Final = "id"
_DIFFERENT: Final = ("id", "body")


def _nothing(step: str) -> None:
    return


class JobTable:
    """The table at ``root``, a resolved path; created when it is opened, or with the first batch.

    ``window``: among how many of the last jobs one is recognised. ``step``: called with the name
    of each step of a batch when it is done: written, committed.
    """

    def __init__(
        self, root: str, window: int = WINDOW_JOBS, step: Callable[[str], None] = _nothing
    ) -> None:
        self.root = root
        self.step = step
        self._window = window
        self._log: DeltaLog | None = None
        self._files: set[str] = set()
        self._added: deque[list[str]] = deque()
        self._ids: set[str] = set()

    def last(self, app: str) -> int:
        """The number of the last batch of an application, -1 if there is none."""
        log = self._current()
        return -1 if log is None else log.last(app)

    def add(self, staged: Staged, schema: pa.Schema, app: str | None = None, batch: int = 0) -> int:
        """Add files that were written to a folder of the table; returns how many jobs were new.
        ``app``, ``batch``: whose batch it is, and its number; without, only the IDs count.

        :raises BadTable: when the rows have no IDs, or it is another kind of table.
        :raises Conflict: when others commit again and again at the same time.
        """
        self.step("written")
        log = self._opened(schema)
        folder, files = staged.folder, staged.files
        ids = {file.path: self._ids_of(file.path) for file in files}
        for attempt in range(_ATTEMPTS):
            if app is not None and log.last(app) >= batch:
                self.discard(folder)
                return 0
            self._learn(log)
            files = [kept for file in files if (kept := self._without_known(file, ids))]
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
                log.refresh()
                continue
            break
        self.step("committed")
        for file in files:
            self._remember(file.path, ids[file.path])
        return sum(file.rows for file in files)

    def discard(self, folder: str) -> None:
        """Remove what was written and is not part of the table."""
        system, place = opened(self.root)
        system.delete_dir(f"{place}/{folder}")

    def open(self, schema: pa.Schema) -> None:
        """Create the table, if there is none, and add the columns that it lacks.

        :raises BadTable: when the rows have no IDs, or it is another kind of table.
        """
        self._opened(schema)

    def _opened(self, schema: pa.Schema) -> DeltaLog:
        if _ID not in schema.names:
            raise BadTable(f"Jobs need the column {_ID!r}, by which each is stored once.")
        log = self._current()
        if log is None:
            log = self._log = DeltaLog.create(self.root, schema, "jobs")
        if log.what != "jobs":
            raise BadTable(f"{self.root} is a Delta table of something else than jobs.")
        log.add_columns(schema)
        return log

    def _current(self) -> DeltaLog | None:
        """The log as it is now, if there is a table."""
        if self._log is not None:
            self._log.refresh()
        else:
            self._log = DeltaLog.find(self.root)
        return self._log

    def _learn(self, log: DeltaLog) -> None:
        """Read the IDs in files that others added, or that were there before."""
        new = [file for file in log.files() if file.path not in self._files]
        self._files.update(file.path for file in new)
        rows = 0
        recent: list[DataFile] = []
        for file in sorted(new, key=lambda file: file.modified_ms, reverse=True):
            if rows < self._window:
                rows += file.rows
                recent.append(file)
        # The oldest first, which is forgotten first.
        for file in reversed(recent):
            self._remember(file.path, self._ids_of(file.path))

    def _remember(self, path: str, ids: list[str]) -> None:
        self._files.add(path)
        self._added.append(ids)
        self._ids.update(ids)
        while len(self._ids) - len(self._added[0]) >= self._window:
            self._ids.difference_update(self._added.popleft())

    def _without_known(self, file: DataFile, ids: dict[str, list[str]]) -> DataFile | None:
        """The file, or one in its place without the jobs that are in the table already. ``ids``: of
        each file, to which those of a new one are added."""
        if self._ids.isdisjoint(ids[file.path]):
            return file
        is_new = [job_id not in self._ids for job_id in ids[file.path]]
        system, place = opened(self.root)
        rows = pq.read_table(f"{place}/{file.path}", filesystem=system, partitioning=None)
        rows = rows.filter(pa.array(is_new))
        system.delete_file(f"{place}/{file.path}")
        if not any(is_new):
            return None
        kept = write(self.root, rows, file.path.rpartition("/")[0])
        ids[kept.path] = self._ids_of(kept.path)
        return kept

    def _ids_of(self, path: str) -> list[str]:
        system, place = opened(self.root)
        table = pq.read_table(
            f"{place}/{path}", columns=[_ID], filesystem=system, partitioning=None
        )
        ids: list[str] = table.column(_ID).cast(pa.string()).to_pylist()
        return ids


def write(root: str, rows: pa.Table, folder: str) -> DataFile:
    """Write rows to a folder of a table, as one file more."""
    system, place = opened(root)
    name = f"part-{uuid4().hex}.parquet"
    make_folder(f"{root}/{folder}")
    about: list[Any] = []
    # A dictionary of what is different in each row would cost time and save nothing.
    repeated = [column for column in rows.column_names if column not in _DIFFERENT]
    pq.write_table(
        rows,
        f"{place}/{folder}/{name}",
        filesystem=system,
        compression="zstd",
        use_dictionary=repeated,
        metadata_collector=about,
    )
    size = system.get_file_info(f"{place}/{folder}/{name}").size
    return data_file(folder, name, size, rows.num_rows, footer_statistics(about[0]))


def unfinished(root: str, beginning: str) -> list[str]:
    """The folders of a table whose names begin like this."""
    system, place = opened(root)
    found = system.get_file_info(fs.FileSelector(place, allow_not_found=True))
    return [info.base_name for info in found if info.base_name.startswith(beginning)]
