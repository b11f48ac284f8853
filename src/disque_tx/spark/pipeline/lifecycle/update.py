"""Results of ``lifecycle`` brought up to date by the events that were added.

Only what new events change is computed again, so that a run costs as much as there is new:

1. A job is touched if it has a new event, or if its TTL is over by now and it counts as lost. Its
   row is computed again from all of its events. These are looked for in the files from the time of
   the job as it was known, and from the time of the new events.
2. The row of a touched job is looked for among jobs whose TTL, and an hour for clocks that differ,
   was not over at the time of the first new event. The others are in files that are not read.
3. A window of a queue is computed again if a new event, or a beginning or end of a job that
   changed, is in it. From the first such window on the backlog is added up again.
4. To counts of jobs, those of touched jobs as they are now are added, and as they were before taken
   away.
5. A least or worst value over all jobs can be that of a touched job. Where it may have become
   another one, it alone is looked for among all jobs.
6. Tables of pairs of nodes stay as they are when no job moved: each query costs much beside an
   hour's events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Final

import attrs
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from disque_tx.spark.pipeline.lifecycle import nodes, queues
from disque_tx.spark.pipeline.lifecycle.findings import candidates, findings, worst
from disque_tx.spark.pipeline.lifecycle.jobs import Extent, jobs, overdue_us
from disque_tx.spark.pipeline.lifecycle.made import UP_TO_DATE, settled_us
from disque_tx.spark.pipeline.lifecycle.rules import CANDIDATE, CANDIDATES_MAX
from disque_tx.spark.pipeline.lifecycle.sizing import Sizing
from disque_tx.spark.pipeline.lifecycle.totals import (
    DISTRIBUTION_KEY,
    SIGN,
    added,
    distributions,
    sums,
    totals,
)
from disque_tx.spark.pipeline.outputs import Output
from disque_tx.spark.pipeline.tables.deltalog import DataFile
from disque_tx.spark.pipeline.tables.spans import Spans, to_replace
from disque_tx.spark.pipeline.tables.table import EventTable, reading

_HOUR_US: Final = 3_600_000_000
_EVENT_KEY: Final = ["node", "boot", "seq"]
_LIFE: Final = ("first_event_at", "last_event_at")
#: What jobs are not made of, and what may be large.
_UNUSED: Final = ("body", "body_sha256", "note", "client_id")


class Update:
    """One update. ``since``: the files that were added to the table of events, and the horizon of
    the results, as they are."""

    def __init__(
        self,
        spark: SparkSession,
        events: EventTable,
        outputs: Mapping[str, Output],
        window_s: int,
        sizing: Sizing,
        since: tuple[list[str], int],
    ) -> None:
        self._spark = spark
        self._table = events
        self._outputs = outputs
        self._window_s = window_s
        self._sizing = sizing
        self._added, self._horizon_us = since
        self._new = reading(spark, events.log.schema, events.root, self._added).drop(*_UNUSED)
        self._kept = ExitStack()
        self._files = events.log.files("time")
        self._read: set[str] = set()
        #: Table → the files whose place the rows that were written take; of others, all.
        self.replaced: dict[str, list[DataFile]] = {}

    def write(self) -> tuple[int, str]:
        """Write the new rows. Returns the horizon, and a sentence about what was read."""
        if not self._added:
            self.replaced = {part: [] for part in self._outputs}
            return self._horizon_us, UP_TO_DATE
        with self._kept:
            self._write()
        return self._horizon_us, (
            f"Brought up to date: {len(self._read)} of {len(self._files)} files of events were"
            f" read, and {len(self.replaced['jobs'])} of {len(self._outputs['jobs'].files())} files"
            " of jobs written again."
        )

    def _write(self) -> None:
        self._sizing.read(file for file in self._files if file.path in set(self._added))
        new = _by_hour(self._new)
        spans = [(row.begin, row.begin + _HOUR_US) for row in new]
        first_us = min((begin for begin, _ in spans), default=self._horizon_us)
        recent = self._to_replace("jobs", "final_at", min(first_us, self._horizon_us))
        self._horizon_us = max([self._horizon_us, *(row.last_us for row in new)])
        former = self._outputs["jobs"].former(recent)
        touched = self._keep(self._touched(former))
        before = self._keep(former.join(touched, "job_id", "left_semi"))
        spans += _spans(_hours(before, *_LIFE))
        near = self._keep(self._events(Spans(spans)).join(touched, "job_id", "left_semi"))
        extent = attrs.evolve(Extent.of(near), horizon_us=self._horizon_us)
        after = self._keep(jobs(near, extent))
        rest = former.join(touched, "job_id", "left_anti")
        self._save("jobs", rest.unionByName(after), "final_at")
        self._write_queues(before, after)
        self._write_totals(before, after)
        if any(row.moves for row in new):
            flow = added(self._former("flow"), nodes.flow(self._new), *nodes.PAIR, "queue")
            self._save("flow", flow)
        else:
            self.replaced["flow"] = []
        if extent.elsewhere:
            self._write_clocks(near, before, after)
        else:
            self.replaced["clocks"] = []
        self._write_findings(touched, after)

    def _touched(self, former: DataFrame) -> DataFrame:
        """The IDs of jobs whose rows change. ``former``: all rows that can."""
        overdue = (fn.col("outcome") == "pending") & (overdue_us() < fn.lit(self._horizon_us))
        new = self._new.where(fn.col("job_id").isNotNull())
        return new.select("job_id").union(former.where(overdue).select("job_id")).distinct()

    def _write_queues(self, before: DataFrame, after: DataFrame) -> None:
        output, window_s = self._outputs["queues"], self._window_s
        moments = _signed(queues.moments(before), queues.moments(after))
        names = [name for name in moments.columns if name != SIGN]
        changed = moments.groupBy(*names).agg(fn.sum(SIGN).alias(SIGN)).where(f"{SIGN} != 0")
        windows = changed.select("queue", queues.window("at", window_s).alias("window"))
        keys = self._keep(queues.keys(self._new, window_s).union(windows).distinct())
        hours = _spans(_hours(keys, "window", "window"))
        spans = Spans((begin, end + window_s * 1_000_000) for begin, end in hours)
        first_us = min((begin for begin, _ in hours), default=self._horizon_us)
        replaced = self._to_replace("queues", "window", first_us)
        former = output.former(replaced)
        is_later = fn.unix_micros("window") >= fn.lit(first_us)
        timed = self._events(spans).withColumn("window", queues.window("time", window_s))
        events = timed.join(keys, queues.KEY, "left_semi").drop("window")
        made = queues.windows(events, self._all_jobs(spans), window_s)
        later = former.where(is_later)
        rows = later.drop("backlog").join(keys, queues.KEY, "left_anti")
        rows = rows.unionByName(made.join(keys, queues.KEY, "left_semi"))
        rows = rows.join(self._backlog_before(later), "queue", "left")
        added_up = queues.with_backlog(rows, fn.coalesce("before", fn.lit(0))).drop("before")
        self._save("queues", former.where(~is_later).unionByName(added_up), "window")

    def _backlog_before(self, later: DataFrame) -> DataFrame:
        """Per queue the backlog ``before`` these windows, which are the last ones."""
        change = later.groupBy("queue").agg(
            fn.sum(fn.col("begun") - fn.col("ended")).alias("since")
        )
        both = self._former("totals").join(change, "queue", "left")
        before = fn.col("backlog") - fn.coalesce("since", fn.lit(0))
        return both.select("queue", before.alias("before"))

    def _write_totals(self, before: DataFrame, after: DataFrame) -> None:
        changed = _signed(before, after)
        values = added(self._former("distributions"), distributions(changed), *DISTRIBUTION_KEY)
        self._save("distributions", values.where("jobs != 0"))
        more = sums(changed)
        former = self._former("totals").select(*more.columns)
        counts = added(former, more, "queue").where("jobs != 0")
        self._save("totals", totals(counts, self._outputs["distributions"].written()))

    def _write_clocks(self, near: DataFrame, before: DataFrame, after: DataFrame) -> None:
        former = self._former("clocks").where("ahead_ms_max IS NOT NULL")
        known = former.select(*nodes.PAIR, "ahead_ms_max")
        now = self._keep(nodes.bounds(near, after))
        earlier = near.join(self._new.select(*_EVENT_KEY), _EVENT_KEY, "left_anti")
        was = nodes.bounds(earlier, before).withColumnRenamed("ahead_ms_max", "was_ms")
        is_ms = now.withColumnRenamed("ahead_ms_max", "is_ms")
        gone = known.join(was, nodes.PAIR).join(is_ms, nodes.PAIR, "left")
        if gone.where("was_ms = ahead_ms_max AND (is_ms IS NULL OR is_ms > was_ms)").isEmpty():
            both = known.unionByName(now).groupBy(*nodes.PAIR)
            bounds = both.agg(fn.min("ahead_ms_max").alias("ahead_ms_max"))
        else:
            bounds = nodes.bounds(self._events(None), self._all_jobs(None))
        self._save("clocks", nodes.both_ways(bounds))

    def _write_findings(self, touched: DataFrame, after: DataFrame) -> None:
        new = candidates(after)
        former = self._former("findings").where(fn.col("finding") == CANDIDATE)
        former = former.select(*new.columns)
        found = worst(former.join(touched, "job_id", "left_anti").unionByName(new))
        if self._outputs["findings"].rows() >= CANDIDATES_MAX:
            limit, last = _least(former), _least(found)
            if limit is not None and (last is None or last > limit):
                # One that was not among the worst before may be now.
                found = candidates(self._all_jobs(None))
        unchanged = "clocks" in self.replaced
        clocks = self._former("clocks") if unchanged else self._outputs["clocks"].written()
        rows = findings(found, self._outputs["totals"].written(), clocks)
        self._save("findings", rows)

    # -- reading and writing -----------------------------------------------------------------

    def _events(self, spans: Spans | None) -> DataFrame:
        """The events in files that may have some from these spans, or all."""
        files = self._files if spans is None else spans.among(self._files, "time", "time")
        self._read |= {file.path for file in files}
        self._sizing.read(files)
        return self._table.of(files).drop(*_UNUSED)

    def _all_jobs(self, spans: Spans | None) -> DataFrame:
        """The jobs as they are now, at least those with events in these spans."""
        output = self._outputs["jobs"]
        replaced = {file.path for file in self.replaced["jobs"]}
        files = [file for file in output.files(*_LIFE) if file.path not in replaced]
        kept = files if spans is None else spans.among(files, *_LIFE)
        self._sizing.read(kept)
        return output.former(kept).unionByName(output.written())

    def _to_replace(self, part: str, column: str, begin_us: int) -> list[DataFile]:
        """The files with rows from ``begin_us`` on."""
        self.replaced[part] = to_replace(self._outputs[part].files(column), column, begin_us)
        self._sizing.read(self.replaced[part])
        return self.replaced[part]

    def _former(self, part: str) -> DataFrame:
        """All rows of a table as they were."""
        files = self._outputs[part].files()
        self._sizing.read(files)
        return self._outputs[part].former(files)

    def _save(self, part: str, rows: DataFrame, time: str | None = None) -> None:
        self._spark.sparkContext.setJobDescription(part)
        settled = None
        if time is not None:
            settled = fn.unix_micros(time) < fn.lit(settled_us(self._horizon_us))
        self._outputs[part].write(self._sizing.together(rows), settled)

    def _keep(self, rows: DataFrame) -> DataFrame:
        """Compute rows once, which are used several times."""
        self._kept.callback(rows.unpersist)
        return rows.persist()


def _signed(before: DataFrame, after: DataFrame) -> DataFrame:
    """Rows to take away from counts, and rows to add."""
    return before.withColumn(SIGN, fn.lit(-1)).unionByName(after.withColumn(SIGN, fn.lit(1)))


def _by_hour(events: DataFrame) -> list[Row]:
    """The hours from which events are, ``begin``, with the time of the last and how many are about
    jobs that moved."""
    last_us = fn.max(fn.unix_micros("time")).alias("last_us")
    moves = fn.count_if(nodes.is_move()).alias("moves")
    return events.groupBy(_hour_us("time").alias("begin")).agg(last_us, moves).collect()


def _hours(rows: DataFrame, first: str, last: str) -> list[Row]:
    """The hours from which and until which rows last, ``begin`` and ``end``, each pair once."""
    begin, end = (_hour_us(first).alias("begin"), _hour_us(last).alias("end"))
    return rows.select(begin, end).distinct().collect()


def _hour_us(time: str) -> Column:
    at_us = fn.unix_micros(time)
    return at_us - fn.pmod(at_us, fn.lit(_HOUR_US))


def _spans(hours: Iterable[Row]) -> list[tuple[int, int]]:
    return [(row.begin, row.end + _HOUR_US) for row in hours]


def _least(found: DataFrame) -> tuple[float, str] | None:
    """The order of the last of the worst, if there are as many as are kept."""
    rows = sorted(
        (-row.measured, row.job_id) for row in found.select("measured", "job_id").collect()
    )
    return rows[-1] if len(rows) >= CANDIDATES_MAX else None
