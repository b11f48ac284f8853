"""``disque-pipeline ingest``: event logs into a table, each event once.

An event is identified by its node, the start time of that node, and its number. Each is in the
table once, whatever is killed at any time, and however often and under whatever path a log is read:

1. The files of a batch are read to their ends; those that cannot be are refused by name.
2. The others are parsed, and their events written as Parquet that is not part of the table yet. If
   that fails or is killed, the table has not changed.
3. The numbers of the events are counted per node and start, as runs without gaps. If numbers occur
   twice, or some are known already, the batch is written again without these. This is decided by
   the numbers of the events, not by file names.
4. One commit makes the batch part of the table. It has the known runs, and as transactions
   ``ingest`` the number of the batch, so that of two ingests at the same time one fails, and
   ``ingest/NODE/START`` the last number of each node.

The names of files that nodes made say with which event they begin, so most files are known by
these. The others that were read are remembered in the commit, and so are those that were refused
for what is in them.

An engine says where files are read, and does what is done with the rows of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

import attrs

from disque_tx.spark.errors import Conflict, ForeignData
from disque_tx.spark.paths import resolved
from disque_tx.spark.pipeline.ingest import files as logs
from disque_tx.spark.pipeline.ingest.examination import examined, unreadable
from disque_tx.spark.pipeline.ingest.staging import StagedLines, stage_events, stage_rejected
from disque_tx.spark.pipeline.ingest.workers import Workers
from disque_tx.spark.pipeline.tables.events import EventTableLog
from disque_tx.spark.pipeline.tables.footers import Staged, discard
from disque_tx.spark.pipeline.tables.runs import Run, Runs
from disque_tx.spark.pipeline.tables.upkeep import INGEST, compact_if_due, next_number

#: Runs of numbers in one batch; a log with more gaps is not genuine.
_RUNS_MAX: Final = 100_000
#: Files that names say nothing about, of which the newest are remembered.
_REMEMBERED_MAX: Final = 1_000
#: Called with the name of each step of a batch when it is done.
Step = Callable[[str], None]


@attrs.frozen
class IngestReport:
    """The result of an ingest. ``events``: read; ``new``: those that were not in the table before.
    ``refused``: path → why the file was left out. ``missing``: node → how many event numbers are
    missing in the whole table. ``unfinished``: segments that nodes have yet to finish."""

    files: int
    events: int
    new: int
    duplicates: int
    rejected: int
    refused: dict[str, str]
    missing: dict[str, int]
    unfinished: int


class IngestEngine(Protocol):
    """What an engine does with the rows of a table of events, and where files are read."""

    def workers(self, size_bytes: int) -> Workers:
        """What reads files of this size together, in bytes."""

    def known(self, table: EventTableLog) -> tuple[Runs, Mapping[str, list[int]]]:
        """What ``table.noted()`` says; the numbers are counted if it says nothing."""

    def runs(self, table: EventTableLog, staged: Staged, limit: int) -> list[Run]:
        """The numbers of events that were written; of more runs than the limit, some."""

    def without(self, table: EventTableLog, staged: Staged, known: list[Run]) -> Staged:
        """Write events again, each once, and none that is known."""


def add_logs(
    engine: IngestEngine, paths: Iterable[str], into: str, step: Step = lambda _: None
) -> IngestReport:
    """Add all logs in ``paths`` that are not in the table ``into`` yet to it.

    ``step``: called with staged, counted, kept (rejected lines) and committed, once per batch.

    :raises NothingToRead: when a path does not exist.
    :raises BadTable: when ``into`` is something else, or of an earlier version.
    :raises OutputOverlaps: when a new table would be in a path, or around one.
    :raises Conflict: when another process ingested at the same time.
    :raises ForeignData: when the numbers of a batch have more than 100,000 gaps.
    """
    paths = list(paths)
    table = EventTableLog(into, create=True, inputs=map(resolved, paths))
    runs, remembered = engine.known(table)
    memory = _Memory(table, runs, dict(remembered), next_number(table))
    found = logs.unread(paths, runs, remembered)
    done = [_Batch(engine, memory, files, step).run() for files in logs.batches(found.logs)]
    compact_if_due(table)
    new, read = sum(batch.new for batch in done), sum(batch.read for batch in done)
    return IngestReport(
        files=len(found.logs),
        events=read,
        new=new,
        duplicates=read - new,
        rejected=sum(batch.rejected for batch in done),
        refused={path: why for batch in done for path, why in batch.refused.items()}
        | dict.fromkeys(found.unnamed, "its name is not UTF-8"),
        missing=runs.missing(),
        unfinished=found.unfinished,
    )


@attrs.frozen
class _Done:
    """What a batch added."""

    read: int
    new: int
    rejected: int
    refused: dict[str, str]


@attrs.define
class _Memory:
    """A table, and what is known of it: ``runs`` of event numbers, and files that names say nothing
    about. ``number``: of the next batch."""

    table: EventTableLog
    runs: Runs
    remembered: dict[str, list[int]]
    number: int

    def check(self) -> None:
        """:raises Conflict: when another process added events since this one knows the table."""
        if next_number(self.table) != self.number:
            raise Conflict(
                f"Another process ingested into {self.table.root} at the same time. Nothing of"
                " this batch was added. Run the command again."
            )

    def after(self, new: Runs, files: Iterable[logs.LogFile]) -> Mapping[str, Any]:
        """Learn what a batch adds; returns the notes of its commit."""
        self.number += 1
        self.runs.add(new)
        for file in files:
            if not file.is_known(self.runs):
                self.remembered.pop(file.path, None)
                self.remembered[file.path] = file.state
        for path in list(self.remembered)[:-_REMEMBERED_MAX]:
            del self.remembered[path]
        return {"runs": self.runs.to_notes(), "files": self.remembered}


class _Batch:
    """Files that become part of the table together."""

    def __init__(
        self, engine: IngestEngine, memory: _Memory, files: list[logs.LogFile], step: Step
    ) -> None:
        self._engine = engine
        self._memory = memory
        self._table = memory.table
        self._files = files
        self._step = step

    def run(self) -> _Done:
        """Do all steps."""
        sizes = {file.path: file.size for file in self._files}
        workers = self._engine.workers(sum(sizes.values()))
        refused = examined(workers, list(sizes))
        readable = {path: size for path, size in sizes.items() if path not in refused}
        lines = stage_events(workers, self._table.root, readable.items())
        self._step("staged")
        staged, new = self._deduplicated(lines)
        self._step("counted")
        # Before the commit, which decides; a batch that is repeated replaces them.
        bad = [(path, sizes[path]) for path in lines.bad]
        rejected = self._keep_rejected(workers, bad) if bad else 0
        self._step("kept")
        again = unreadable(workers, list(refused))
        self._commit(staged, new, [file for file in self._files if file.path not in again])
        self._step("committed")
        return _Done(lines.events, new.events, rejected, refused)

    def _deduplicated(self, lines: StagedLines) -> tuple[Staged, Runs]:
        """Each new event once, and their numbers."""
        staged = lines.staged
        new = self._count(staged)
        known = self._memory.runs.overlapping(new)
        if lines.events <= new.events and not known:
            return staged, new
        again = self._engine.without(self._table, staged, known)
        discard(self._table.root, staged.folder)
        return again, self._count(again)

    def _count(self, staged: Staged) -> Runs:
        """The numbers of the events."""
        files = staged.files
        found = self._engine.runs(self._table, staged, _RUNS_MAX + 1) if files else []
        if len(found) > _RUNS_MAX:
            raise ForeignData(
                f"The numbers of events in files from {self._files[0].path} on have more than"
                f" {_RUNS_MAX} gaps, which no event log has. Leave out files that are something"
                " else."
            )
        return Runs(found)

    def _keep_rejected(self, workers: Workers, bad: list[tuple[str, int]]) -> int:
        """Store the lines that are not events; returns how many there are."""
        log, number = self._table.create_rejected(), self._memory.number
        files = stage_rejected(workers, log, bad, number).files
        # A batch with this number that was killed before its commit may have left the same lines.
        log.commit(files, {INGEST: number}, replacing=log.schema, among=("batch", str(number)))
        return sum(file.rows for file in files)

    def _commit(self, staged: Staged, new: Runs, done: list[logs.LogFile]) -> None:
        """``done``: the files that need not be read again."""
        self._memory.check()
        numbers = {INGEST: self._memory.number}
        numbers |= {f"ingest/{node}/{boot}": last for (node, boot), last in new.last().items()}
        self._table.log.commit(staged.files, numbers, self._memory.after(new, done))
