"""``disque-pipeline ingest``: event logs into a table, each event once.

An event is identified by its node, the start time of that node, and its number. Each is in the
table once, whatever is killed at any time, and however often and under whatever path a log is read:

1. The files of a batch are parsed into a staging folder that readers ignore. If that fails or is
   killed, the table has not changed.
2. The parsed events are counted per node and start: the range of their numbers, how many, how many
   different ones. If numbers occur twice, or a range overlaps one of an earlier batch, the batch is
   written again without the events that are there already. This is decided by the numbers of the
   events, not by file names; if ranges do not overlap, no event can be in both.
3. The commit with the ranges and the file names is renamed in one step, which fails if the name
   exists. From then on the batch is part of the table.
4. Its files are moved into place, by this process or by the next one that opens the table.

Small files and commits are merged from time to time (``compaction``), so that an ingest stays as
fast as the first one.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import attrs
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as fn

from disque_tx.spark.errors import Conflict, ForeignData
from disque_tx.spark.pipeline.ingest import logs
from disque_tx.spark.pipeline.outputs import check_apart, resolved
from disque_tx.spark.pipeline.storage import Entry, Storage
from disque_tx.spark.pipeline.tables.commits import Commit, Span
from disque_tx.spark.pipeline.tables.compaction import compact_if_due
from disque_tx.spark.pipeline.tables.table import EventTable, is_table

#: Starts of nodes in one batch; a log with more of them is not genuine.
_SPANS_MAX: Final = 100_000
_UNREADABLE: Final = re.compile(
    r"FAILED_READ_FILE[^\]]*\] Encountered error while reading file (\S+)\. "
)
#: What was staged this long ago and not committed was left by a process that was killed.
_ABANDONED_MS: Final = 86_400_000
#: The low bits of a number, its position in a block of 64.
_BLOCK_BITS: Final = 6
_BLOCK_MASK: Final = 63


@attrs.frozen
class IngestReport:
    """The result of an ingest. ``events``: read; ``new``: those that were not in the table before.
    ``unreadable``: paths of files that were rejected as a whole. ``missing``: node → how many event
    numbers are missing in the whole table."""

    files: int
    events: int
    new: int
    duplicates: int
    rejected: int
    unreadable: list[str]
    missing: dict[str, int]


def ingest(
    spark: SparkSession,
    paths: Iterable[str],
    into: str,
    step: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.time,
) -> IngestReport:
    """Add all logs in ``paths`` that are not in the table ``into`` yet to it.

    ``step``: called with the name of each step when it is done, once per batch: staged, counted,
    kept (rejected lines), committed, settled. ``clock``: the time of day in s.

    :raises NothingToRead: when a path does not exist.
    :raises BadTable: when ``into`` is something else, or of another version.
    :raises OutputOverlaps: when a new table would be in a path, or around one.
    :raises Conflict: when another process ingested at the same time.
    :raises ForeignData: when a batch contains more than 100,000 starts of nodes.
    """
    paths = list(paths)
    if not is_table(storage := Storage(spark), into):
        check_apart(storage, resolved(storage, into), paths)
    table = EventTable(spark, into, create=True)

    def now_ms() -> int:
        return int(clock() * 1000)

    table.sweep(now_ms() - _ABANDONED_MS)
    unread = logs.unread(logs.find(table.storage, paths), table.commits)
    unreadable: list[str] = []
    done = []
    for files in logs.batches(unread):
        batch = _Batch(spark, table, files, step, now_ms)
        done.append(batch.run())
        unreadable += batch.unreadable
    compact_if_due(table, now_ms)
    new = sum(_events(commit.spans) for commit in done)
    duplicates = sum(commit.duplicates for commit in done)
    return IngestReport(
        files=len(unread),
        events=new + duplicates,
        new=new,
        duplicates=duplicates,
        rejected=sum(commit.rejected for commit in done),
        unreadable=unreadable,
        missing=missing(table.commits),
    )


def missing(commits: Iterable[Commit]) -> dict[str, int]:
    """Node → how many of its event numbers are missing. Each event is in the table once, so
    counting is enough."""
    runs = defaultdict(list)
    for commit in commits:
        for span in commit.spans:
            runs[span.node, span.boot].append(span)
    answer: dict[str, int] = {}
    for (node, _), spans in sorted(runs.items()):
        # A node numbers its events from 0.
        given = max(span.last for span in spans) + 1
        answer[node] = answer.get(node, 0) + given - _events(spans)
    return answer


class _Batch:
    """Files that become part of the table together. ``unreadable``: paths of those that cannot
    be decompressed to their end."""

    def __init__(
        self,
        spark: SparkSession,
        table: EventTable,
        files: list[Entry],
        step: Callable[[str], None],
        now_ms: Callable[[], int],
    ) -> None:
        self.unreadable: list[str] = []
        self._spark = spark
        self._table = table
        self._files = files
        self._step = step
        self._now_ms = now_ms

    def run(self) -> Commit:
        """Do all steps; returns the commit."""
        staged, paths, bad = self._stage()
        self._step("staged")
        spans, read = self._count(staged)
        if read > _events(spans) or self._overlapping(spans):
            staged = self._without_duplicates(staged, spans)
            spans, _ = self._count(staged)
        duplicates = read - _events(spans)
        self._step("counted")
        rejected = self._keep_rejected(staged, paths, bad)
        self._step("kept")
        commit = self._commit(staged, spans, duplicates, rejected)
        self._step("committed")
        self._table.move_into_place(commit)
        self._step("settled")
        return commit

    def _stage(self) -> tuple[str, list[str], int]:
        """Parse what can be read. Returns the folder, the files and the number of invalid lines."""
        paths = [file.path for file in self._files]
        while paths:
            staged = uuid4().hex
            counts = Observation()
            parsed = logs.parsed(self._spark, paths)
            bad = fn.count_if(~logs.is_event()).alias("bad")
            try:
                self._write(logs.events(parsed.observe(counts, bad)), staged)
            except (PySparkException, Py4JJavaError) as error:
                paths = self._without_unreadable(paths, error)
                self._table.storage.remove(self._table.staging(staged))
            else:
                return staged, paths, int(counts.get["bad"])
        return uuid4().hex, [], 0

    def _without_unreadable(self, paths: list[str], error: Exception) -> list[str]:
        named = _UNREADABLE.search(str(error))
        bad = _plain(named.group(1)) if named else None
        rest = [path for path in paths if _plain(path) != bad]
        if len(rest) == len(paths):
            raise error
        self.unreadable += sorted(set(paths) - set(rest))
        return rest

    def _write(self, events: DataFrame, staged: str) -> None:
        folder = self._table.staging(staged)
        events.write.option("compression", "zstd").partitionBy("dt").parquet(folder)

    def _count(self, staged: str) -> tuple[list[Span], int]:
        """The ranges of numbers per node, and how many events there are, including duplicates."""
        if not self._table.staged_files(staged):
            return [], 0
        rows = spans(self._table.staged(staged)).limit(_SPANS_MAX + 1).collect()
        if len(rows) > _SPANS_MAX:
            raise ForeignData(
                f"Files from {self._files[0].path} on contain more than {_SPANS_MAX} starts of "
                "nodes, which no event log does. Leave out files that are something else."
            )
        found = [Span(row.node, row.boot, row.first, row.last, row.different) for row in rows]
        return found, sum(row.events for row in rows)

    def _overlapping(self, spans: list[Span]) -> list[Span]:
        """The spans that may contain events that are already in the table."""
        runs = defaultdict(list)
        for commit in self._table.commits:
            for span in commit.spans:
                runs[span.node, span.boot].append(span)
        return [span for span in spans if any(map(span.overlaps, runs[span.node, span.boot]))]

    def _without_duplicates(self, staged: str, spans: list[Span]) -> str:
        """Write the batch again with each new event once. Returns the new folder."""
        events = self._table.staged(staged)
        if old := self._overlapping(spans):
            names = ("node", "boot", "first", "last")
            ranges = self._small_table({n: [getattr(span, n) for span in old] for n in names})
            there = (
                self._table.events().select(*logs.KEY).join(fn.broadcast(ranges), ["node", "boot"])
            )
            there = there.where("seq BETWEEN first AND last").select(*logs.KEY)
            events = events.join(there, list(logs.KEY), "left_anti")
        again = uuid4().hex
        self._write(events.dropDuplicates(list(logs.KEY)), again)
        self._table.storage.remove(self._table.staging(staged))
        return again

    def _keep_rejected(self, staged: str, paths: list[str], bad: int) -> int:
        """Store the lines that are not events; returns how many there are."""
        counts = Observation()
        if bad:
            parsed = logs.parsed_with_text(self._spark, paths)
            kept = logs.rejected(parsed).observe(counts, fn.count("*").alias("lines"))
            kept.write.json(f"{self._table.rejects(staged)}/lines")
        if self.unreadable:
            reasons = ["unreadable"] * len(self.unreadable)
            rows = self._small_table({"file": self.unreadable, "reason": reasons}).coalesce(1)
            rows.write.json(f"{self._table.rejects(staged)}/files")
        return int(counts.get["lines"]) if bad else 0

    def _small_table(self, columns: dict[str, list[Any]]) -> DataFrame:
        """A table of a few rows. As Arrow data it needs no Python in the tasks."""
        return self._spark.createDataFrame(pa.table(columns))

    def _commit(self, staged: str, spans: list[Span], duplicates: int, rejected: int) -> Commit:
        files = self._table.staged_files(staged)
        commit = Commit(
            number=self._table.log.next_number,
            staged=staged,
            files=list(files),
            sizes=list(files.values()),
            inputs=[(file.path, file.size, file.changed_ms) for file in self._files],
            spans=spans,
            duplicates=duplicates,
            rejected=rejected,
            at_ms=self._now_ms(),
        )
        if not self._table.log.publish(commit):
            raise Conflict(
                f"Another process ingested into {self._table.root} at the same time. Nothing of "
                "this batch was added. Run the command again."
            )
        return commit


def spans(events: DataFrame) -> DataFrame:
    """Per node and start: the ``first`` and ``last`` number, ``events``, and how many of them are
    ``different``. Numbers are counted as bits, 64 to a row, so that what is shuffled is small."""
    bit = fn.expr(f"shiftleft(1L, CAST(seq & {_BLOCK_MASK} AS INT))")
    block = fn.shiftright("seq", _BLOCK_BITS).alias("block")
    blocks = events.groupBy("node", "boot", block).agg(
        fn.bit_or(bit).alias("bits"),
        fn.count("*").alias("events"),
        fn.min("seq").alias("first"),
        fn.max("seq").alias("last"),
    )
    return blocks.groupBy("node", "boot").agg(
        fn.min("first").alias("first"),
        fn.max("last").alias("last"),
        fn.sum("events").alias("events"),
        fn.sum(fn.bit_count("bits")).cast("bigint").alias("different"),
    )


def _events(spans: Iterable[Span]) -> int:
    return sum(span.events for span in spans)


def _plain(path: Any) -> str:
    """A path without its scheme: Spark and Hadoop write ``file:`` with a different number of /."""
    return unquote(urlsplit(path).path)
