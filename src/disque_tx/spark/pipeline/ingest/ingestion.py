"""``disque-pipeline ingest``: event logs into a table, each event once.

An event is known by its node, when that began, and its number. Why each is in the table once,
whatever is killed when, and however often and under whatever path a log is given:

1. The files of a batch are parsed into a folder that no reader looks into. If that fails or is
   killed, nothing has happened.
2. What was parsed is counted by node and run of a node: from which number to which, how many, how
   many different ones. If numbers come twice, or a range meets one that an earlier batch brought,
   the batch is written again without what is there already. That is decided by the numbers of the
   events, not by the names of files; when ranges do not meet, no event can be in both.
3. The commit with the ranges and the names of the files gets its name in one step, which fails if
   it exists. Before it the batch does not count; from then on it does.
4. Its files are moved into place, by this process or by whoever opens the table next.

Small files are merged and commits put together now and then (``compaction``), so that an ingest
costs the same however many there were before it.
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
from disque_tx.spark.pipeline.storage import Entry
from disque_tx.spark.pipeline.tables.commits import Commit, Span
from disque_tx.spark.pipeline.tables.compaction import tidy
from disque_tx.spark.pipeline.tables.table import Table

#: Runs of nodes in one batch; a log in which more begin is made up.
_SPANS_MAX: Final = 100_000
_UNREADABLE: Final = re.compile(
    r"FAILED_READ_FILE[^\]]*\] Encountered error while reading file (\S+)\. "
)
#: What a batch staged so long ago, and did not commit, is of somebody who was killed.
_ABANDONED_MS: Final = 86_400_000
#: Bits of a number that say where it stands among 64.
_BLOCK_BITS: Final = 6
_BLOCK_MASK: Final = 63


@attrs.frozen
class Report:
    """What an ingest did. ``events``: read; ``new``: of those, not in the table before.
    ``unreadable``: paths of files that were rejected as a whole. ``missing``: node → numbers that
    it gave and that are in no log so far, in the whole table."""

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
) -> Report:
    """Bring all logs in ``paths`` that are not there yet into the table ``into``.

    ``step``: called with the name of each step when it is done, once per batch: staged, counted,
    kept (rejected lines), committed, settled. ``clock``: the time of day in s.

    :raises NothingToRead: when a path does not exist.
    :raises BadTable: when ``into`` is something else already, or of another version.
    :raises Conflict: when somebody else ingested at the same time.
    :raises ForeignData: when a batch tells of more than 100,000 runs of nodes.
    """
    table = Table(spark, into, create=True)

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
    tidy(table, now_ms)
    new = sum(_events(commit.spans) for commit in done)
    duplicates = sum(commit.duplicates for commit in done)
    return Report(
        files=len(unread),
        events=new + duplicates,
        new=new,
        duplicates=duplicates,
        rejected=sum(commit.rejected for commit in done),
        unreadable=unreadable,
        missing=missing(table.commits),
    )


def missing(commits: Iterable[Commit]) -> dict[str, int]:
    """Node → how many numbers it gave in between that no log told. Each event is there once, so
    that counting is enough."""
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
        table: Table,
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
        """All steps."""
        staged, paths, bad = self._stage()
        self._step("staged")
        spans, read = self._count(staged)
        if read > _events(spans) or self._old(spans):
            staged = self._without_duplicates(staged, spans)
            spans, _ = self._count(staged)
        duplicates = read - _events(spans)
        self._step("counted")
        rejected = self._keep_rejected(staged, paths, bad)
        self._step("kept")
        commit = self._commit(staged, spans, duplicates, rejected)
        self._step("committed")
        self._table.settle(commit)
        self._step("settled")
        return commit

    def _stage(self) -> tuple[str, list[str], int]:
        """Parse what can be read. Returns the folder, the files, and how many lines are bad."""
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
        """Which numbers of which nodes there are, and how many events, copies included."""
        if not self._table.staged_files(staged):
            return [], 0
        rows = spans(self._table.staged(staged)).limit(_SPANS_MAX + 1).collect()
        if len(rows) > _SPANS_MAX:
            raise ForeignData(
                f"Files from {self._files[0].path} on tell of more than {_SPANS_MAX} starts of "
                "nodes. No event log does; leave out what is something else."
            )
        found = [Span(row.node, row.boot, row.first, row.last, row.different) for row in rows]
        return found, sum(row.events for row in rows)

    def _old(self, spans: list[Span]) -> list[Span]:
        """Those that could hold events that are in the table."""
        runs = defaultdict(list)
        for commit in self._table.commits:
            for span in commit.spans:
                runs[span.node, span.boot].append(span)
        return [span for span in spans if any(map(span.meets, runs[span.node, span.boot]))]

    def _without_duplicates(self, staged: str, spans: list[Span]) -> str:
        """Write the batch again with each new event once. Returns the new folder."""
        events = self._table.staged(staged)
        if old := self._old(spans):
            names = ("node", "boot", "first", "last")
            ranges = self._handful({n: [getattr(span, n) for span in old] for n in names})
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
        """Put aside what is no event; returns how many lines that are."""
        counts = Observation()
        if bad:
            parsed = logs.parsed_with_text(self._spark, paths)
            kept = logs.rejected(parsed).observe(counts, fn.count("*").alias("lines"))
            kept.write.json(f"{self._table.rejects(staged)}/lines")
        if self.unreadable:
            reasons = ["unreadable"] * len(self.unreadable)
            rows = self._handful({"file": self.unreadable, "reason": reasons}).coalesce(1)
            rows.write.json(f"{self._table.rejects(staged)}/files")
        return int(counts.get["lines"]) if bad else 0

    def _handful(self, columns: dict[str, list[Any]]) -> DataFrame:
        """Rows from here. As Arrow they need no Python on the other side."""
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
                f"Somebody else ingested into {self._table.root} at the same time. Nothing of this "
                "batch was added. Run the command again."
            )
        return commit


def spans(events: DataFrame) -> DataFrame:
    """Per node and run: the ``first`` and ``last`` number, ``events``, and how many of them are
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
