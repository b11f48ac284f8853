"""The figures of a report: small aggregates of the tables of ``lifecycle`` and of events.

However large the tables are, no more than :data:`BUCKETS_MAX` steps of time, ``top`` queues and
``top`` rows of each kind of finding come back from Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from disque_tx.spark.errors import BadTable
from disque_tx.spark.paths import resolved
from disque_tx.spark.pipeline.lifecycle.audit import audit
from disque_tx.spark.pipeline.lifecycle.made import RESULTS
from disque_tx.spark.pipeline.lifecycle.verdicts import Audit
from disque_tx.spark.pipeline.tables.events import is_table
from disque_tx.spark.pipeline.tables.table import EventTable, Table

BUCKETS_MAX: Final = 60
#: Steps of a scale of latencies, per power of ten, and at most: some 30 years.
BANDS_PER_DECADE: Final = 3
BANDS_MAX: Final = 36
COUNTED: Final = ("added", "delivered", "acked", "redelivered", "nacked", "expired")
FINDINGS: Final = ("retry-too-short", "redelivered", "dead-letter-candidate", "clock-skew")
#: Multiples of a window of a minute or a second that make a round step of time.
_MULTIPLES: Final = (1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1440, 10_080, 43_200)
_DEFAULT_WINDOW_S: Final = 60
_PAIRS_MAX: Final = 400
_SUSPECTS_MAX: Final = 20


@attrs.frozen
class Axis:
    """Steps of time. ``begin_s``: since 1970."""

    begin_s: int
    step_s: int
    steps: int

    def of(self, time: str) -> Column:
        """The step of a time; times outside count for the first or last step."""
        step = fn.floor((fn.unix_seconds(time) - self.begin_s) / self.step_s)
        return fn.least(fn.greatest(step, fn.lit(0)), fn.lit(self.steps - 1)).cast("int")


@attrs.frozen
class Checked:
    """The result of the audit. ``missing``: node → how many events are missing from the logs."""

    audit: Audit
    missing: dict[str, int]


@attrs.frozen
class Figures:
    """``rates``: a count per step for each of :data:`COUNTED`. ``backlog``: jobs at the end of each
    step, of all queues (``""``) and of the longest ones. ``waits``, ``runs``: step and band of
    latencies → jobs. ``totals`` and ``worst``: rows of the table ``totals``, by jobs and by what
    went wrong. ``flow``: nodes → jobs exported and imported. ``found``: finding → how many there
    are, and the worst of them."""

    summary: Row
    outcomes: dict[str, int]
    axis: Axis
    rates: dict[str, list[int]]
    backlog: dict[str, list[int]]
    waits: dict[tuple[int, int], int]
    runs: dict[tuple[int, int], int]
    totals: list[Row]
    worst: list[Row]
    flow: dict[tuple[str, str], tuple[int, int]]
    found: dict[str, tuple[int, list[Row]]]
    checked: Checked | None


def measure(spark: SparkSession, out: str, events: str | None, top: int) -> Figures:
    """All figures of a report.

    ``out``: what ``lifecycle`` made. ``events``: the table that it was made from, if it is to
    be audited. ``top``: queues and rows of a table.

    :raises BadTable: when ``out`` or ``events`` has not the expected tables.
    """
    read = _reader(spark, out)
    checked = None if events is None else _checked(spark, events)
    jobs, windows, totals = read("jobs").persist(), read("queues"), read("totals")
    try:
        axis = _axis(windows)
        return Figures(
            summary=_summary(jobs, totals),
            outcomes=_outcomes(jobs),
            axis=axis,
            rates=_rates(windows, axis),
            backlog=_backlog(windows, axis, _longest(windows)),
            waits=_latencies(jobs, axis, "first_delivered_at", "wait_ms"),
            runs=_latencies(jobs, axis, "acked_at", "run_ms"),
            totals=totals.orderBy(fn.desc("jobs"), "queue").head(top),
            worst=_worst(totals).head(top),
            flow=_flow(read("flow")),
            found=_found(read("findings"), top),
            checked=checked,
        )
    finally:
        jobs.unpersist()


def _reader(spark: SparkSession, out: str) -> Callable[[str], DataFrame]:
    root = resolved(out)
    absent = [part for part in RESULTS if not is_table(f"{root}/{part}")]
    if absent:
        raise BadTable(
            f"{root} has no {', '.join(absent)}. 'disque-pipeline lifecycle TABLE --into OUT' makes"
            " the tables for a report; pass its OUT."
        )
    return lambda part: Table(spark, f"{root}/{part}").rows()


def _checked(spark: SparkSession, events: str) -> Checked:
    found = audit(spark, events, limit=_SUSPECTS_MAX)
    absent = EventTable(spark, events).known()[0].missing()
    return Checked(found, {node: count for node, count in absent.items() if count})


def _only(table: DataFrame) -> Row:
    """The only row of an aggregate."""
    return table.collect()[0]


def _summary(jobs: DataFrame, totals: DataFrame) -> Row:
    nodes = fn.size(fn.array_distinct(fn.flatten(fn.collect_set("nodes")))).alias("nodes")
    begin = fn.unix_micros(fn.min(fn.coalesce("added_at", "began_at"))).alias("begin_us")
    end = fn.unix_micros(fn.max("last_event_at")).alias("end_us")
    of_jobs = jobs.agg(
        *(fn.count("*").alias("jobs"), fn.sum("size").alias("bytes"), begin, end, nodes),
        *(fn.coalesce(fn.sum(name), fn.lit(0)).alias(name) for name in ("deliveries", "nacks")),
        fn.count_if(fn.col("deliveries") > 1).alias("redelivered_jobs"),
        fn.count("added_at").alias("added"),
    )
    return _only(of_jobs.crossJoin(totals.agg(fn.count("*").alias("queues"))))


def _outcomes(jobs: DataFrame) -> dict[str, int]:
    rows = jobs.groupBy("outcome").count().orderBy(fn.desc("count"), "outcome").collect()
    return {row.outcome: row["count"] for row in rows}


def _axis(windows: DataFrame) -> Axis:
    """Steps that are multiples of the windows, whose length follows from their rates."""
    lengths = (fn.try_divide(name, f"{name}_per_s") for name in ("added", "delivered", "acked"))
    span = _only(
        windows.agg(
            fn.unix_seconds(fn.min("window")).alias("first_s"),
            fn.unix_seconds(fn.max("window")).alias("last_s"),
            fn.round(fn.max(fn.greatest(*lengths))).alias("window_s"),
        )
    )
    if span.first_s is None:
        return Axis(0, _DEFAULT_WINDOW_S, 1)
    window_s = int(span.window_s or _DEFAULT_WINDOW_S)
    wanted = (span.last_s - span.first_s) // window_s + 1
    enough = (multiple for multiple in _MULTIPLES if multiple * BUCKETS_MAX >= wanted)
    step_s = window_s * next(enough, -(-wanted // BUCKETS_MAX))
    return Axis(span.first_s, step_s, (span.last_s - span.first_s) // step_s + 1)


def _rates(windows: DataFrame, axis: Axis) -> dict[str, list[int]]:
    summed = windows.groupBy(axis.of("window").alias("step")).agg(
        *(fn.sum(name).alias(name) for name in COUNTED)
    )
    rows = {row.step: row for row in summed.collect()}
    return {
        name: [rows[step][name] if step in rows else 0 for step in range(axis.steps)]
        for name in COUNTED
    }


def _longest(windows: DataFrame) -> list[str]:
    """The queues with the longest backlogs, of which a plot can show a few."""
    longest = windows.groupBy("queue").agg(fn.max("backlog").alias("backlog"))
    rows = longest.where("backlog > 0").orderBy(fn.desc("backlog"), "queue").head(4)
    return [row.queue for row in rows]


def _backlog(windows: DataFrame, axis: Axis, queues: list[str]) -> dict[str, list[int]]:
    change = fn.sum(fn.col("begun") - fn.col("ended")).alias("change")
    step = axis.of("window").alias("step")
    chosen = fn.col("queue").isin(queues)
    several = windows.where(chosen).groupBy("queue", step).agg(change)
    whole = windows.groupBy(step).agg(change).select(fn.lit("").alias("queue"), "step", "change")
    changes = {(row.queue, row.step): row.change for row in several.union(whole).collect()}
    return {queue: _running(changes, queue, axis.steps) for queue in ("", *queues)}


def _running(changes: Mapping[tuple[str, int], int], queue: str, steps: int) -> list[int]:
    """Sums from the first step to each."""
    sums, so_far = [], 0
    for step in range(steps):
        so_far += changes.get((queue, step), 0)
        sums.append(so_far)
    return sums


def _latencies(
    jobs: DataFrame, axis: Axis, time: str, latency_ms: str
) -> dict[tuple[int, int], int]:
    """Step and band → jobs. Band 0 is everything below 2.15 ms, the cube root of ten."""
    band = fn.floor(fn.log10(fn.greatest(latency_ms, fn.lit(1))) * BANDS_PER_DECADE + 1e-9)
    known = jobs.where(fn.col(time).isNotNull() & fn.col(latency_ms).isNotNull())
    cells = known.groupBy(
        axis.of(time).alias("step"),
        fn.least(band, fn.lit(BANDS_MAX - 1)).cast("int").alias("band"),
    )
    return {(row.step, row.band): row["count"] for row in cells.count().collect()}


def _worst(totals: DataFrame) -> DataFrame:
    bad = fn.col("redelivered_jobs") + fn.col("nacks") + fn.col("expired") + fn.col("lost")
    return totals.withColumn("bad", bad).where("bad > 0").orderBy(fn.desc("bad"), "queue")


def _flow(ways: DataFrame) -> dict[tuple[str, str], tuple[int, int]]:
    """The busiest pairs of nodes."""
    pairs = ways.groupBy("from_node", "to_node").agg(
        fn.sum("exported").alias("exported"), fn.sum("imported").alias("imported")
    )
    busiest = fn.desc(fn.col("exported") + fn.col("imported"))
    rows = pairs.orderBy(busiest, "from_node", "to_node").head(_PAIRS_MAX)
    return {(row.from_node, row.to_node): (row.exported, row.imported) for row in rows}


def _found(findings: DataFrame, top: int) -> dict[str, tuple[int, list[Row]]]:
    counts = {row.finding: row["count"] for row in findings.groupBy("finding").count().collect()}
    return {
        finding: (counts.get(finding, 0), _of_kind(findings, finding, top)) for finding in FINDINGS
    }


def _of_kind(findings: DataFrame, finding: str, top: int) -> list[Any]:
    order = (fn.desc("measured"), "queue", "job_id", "node", "peer")
    return findings.where(fn.col("finding") == finding).orderBy(*order).head(top)
