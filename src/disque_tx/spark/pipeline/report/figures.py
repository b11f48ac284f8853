"""The figures of a report: small aggregates of the tables of ``lifecycle`` and of events.

However large the tables are, no more than :data:`BUCKETS_MAX` steps of time, ``top`` queues and
``top`` rows of each kind of finding come back from DuckDB.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from disque_tx.spark.pipeline.lifecycle.verdicts import Audit
from disque_tx.spark.pipeline.local import sql
from disque_tx.spark.pipeline.local.auditing import COUNTS, audited
from disque_tx.spark.pipeline.local.counting import all_runs
from disque_tx.spark.pipeline.local.database import database
from disque_tx.spark.pipeline.report.axis import BUCKETS_MAX, Axis
from disque_tx.spark.pipeline.report.latencies import Course, course, latencies
from disque_tx.spark.pipeline.report.queries import Queries, Query, Row
from disque_tx.spark.pipeline.report.returns import returns
from disque_tx.spark.pipeline.report.slo import Burn, Slo, burns
from disque_tx.spark.pipeline.report.slowest import Slowest, slowest
from disque_tx.spark.pipeline.report.sources import ReportViews, View, results_root
from disque_tx.spark.pipeline.report.spans import Period
from disque_tx.spark.pipeline.report.tenants import by_tenant
from disque_tx.spark.pipeline.tables.events import EventTableLog

__all__ = ["BUCKETS_MAX", "COUNTED", "FINDINGS", "Checked", "Figures", "measure"]

COUNTED: Final = ("added", "delivered", "acked", "redelivered", "nacked", "expired")
FINDINGS: Final = ("retry-too-short", "redelivered", "dead-letter-candidate", "clock-skew")
_DEFAULT_WINDOW_S: Final = 60
_LINES_MAX: Final = 4
_PAIRS_MAX: Final = 400
_SUSPECTS_MAX: Final = 20
_AUDIT: Final = "Jobs for which a guarantee was violated, or may have been"
_TOO_LARGE: Final = "Free some, or make the report on another machine."


@attrs.frozen
class Checked:
    """The result of the audit. ``missing``: node → how many events are missing from the logs."""

    audit: Audit
    missing: dict[str, int]


@attrs.frozen
class ReportScope:
    """What a report is about, beside tables. ``last_ms``: the length of its period, which ends with
    the last event in the tables; without, all of the time. ``against_ms``: how much earlier the
    period is that it is compared with; without ``last_ms`` both are as long as that. ``slos``:
    objectives, to be compared with what was reached. ``tenants``: names, each with a pattern for
    queues; one may have several."""

    last_ms: int | None = None
    against_ms: int | None = None
    slos: tuple[Slo, ...] = ()
    tenants: tuple[tuple[str, str], ...] = ()

    @property
    def period_ms(self) -> int | None:
        """The length of the period, if there is one."""
        return self.last_ms or self.against_ms


_EVERYTHING: Final = ReportScope()
_NONE_SLOW: Final = Slowest([], [], [])


@attrs.frozen
class Comparison:
    """``summary``: of jobs of an earlier period, if there are any. ``is_whole``: whether the tables
    go back to its beginning."""

    period: Period
    summary: Row | None
    is_whole: bool


@attrs.frozen
class Figures:
    """``rates``: a count per step for each of :data:`COUNTED`. ``backlog``: jobs at the end of each
    step, of all queues (``""``) and of the longest ones. ``waits``, ``runs``: step and band of
    latencies → jobs. ``course``: their percentiles over time. ``totals`` and ``worst``: rows of the
    table ``totals``, by jobs and by what went wrong. ``flow``: nodes → jobs exported and imported.
    ``found``: finding → how many there are, and the worst of them. ``views``, ``queries``: what the
    figures were made by. ``period``: that of the jobs and windows; without, all of the time.
    ``burns``, ``tenants``: as they were asked for. ``errors``: of :func:`~disque_tx.spark.pipeline
    .report.returns.returns`, if there are events."""

    summary: Row
    outcomes: dict[str, int]
    axis: Axis
    rates: dict[str, list[int]]
    backlog: dict[str, list[int]]
    waits: dict[tuple[int, int], int]
    runs: dict[tuple[int, int], int]
    course: Course
    totals: list[Row]
    worst: list[Row]
    flow: dict[tuple[str, str], tuple[int, int]]
    found: dict[str, tuple[int, list[Row]]]
    checked: Checked | None
    views: list[View] = attrs.field(factory=list)
    queries: list[Query] = attrs.field(factory=list)
    period: Period | None = None
    compared: Comparison | None = None
    burns: list[Burn] = attrs.field(factory=list)
    tenants: list[Row] = attrs.field(factory=list)
    errors: list[Row] | None = None
    slowest: Slowest = _NONE_SLOW


def measure(out: str, events: str | None, top: int, asked: ReportScope = _EVERYTHING) -> Figures:
    """All figures of a report.

    ``out``: what ``lifecycle`` made. ``events``: the table that it was made from, if it is to
    be audited. ``top``: queues and rows of a table.

    :raises BadTable: when ``out`` or ``events`` has not the expected tables.
    """
    root = results_root(out)
    table = None if events is None else EventTableLog(events)
    with database(root, _TOO_LARGE) as rows:
        sources, ask = ReportViews(rows), Queries(rows)
        every = "" if asked.period_ms is None else "all_"
        sources.open_results(root, _views(every))
        if table is not None:
            sources.open_events(table, f"{every}events")
        period = compared = None
        if asked.period_ms is not None:
            period, compared = _limited(ask, sources, asked.period_ms, asked.against_ms)
        axis, summary = _axis(ask), _summary(ask)
        end_us = period.end_us if period else summary["end_us"] or 0
        return Figures(
            summary=summary,
            outcomes=_outcomes(ask),
            axis=axis,
            rates=_rates(ask, axis),
            backlog=_backlog(ask, axis, f"{every}queues"),
            waits=latencies(ask, axis, "first_delivered_at", "wait_ms"),
            runs=latencies(ask, axis, "acked_at", "run_ms"),
            course=course(ask, axis),
            totals=_totals(ask, top),
            worst=_worst(ask, top),
            flow=_flow(ask),
            found={finding: _found(ask, finding, top) for finding in FINDINGS},
            checked=None if table is None else _checked(ask, table, f"{every}events"),
            views=sources.views,
            queries=ask.made,
            period=period,
            compared=compared,
            burns=burns(ask, axis, asked.slos, end_us),
            tenants=by_tenant(ask, asked.tenants),
            slowest=slowest(ask, top),
            errors=None if table is None else returns(rows, ask),
        )


def _views(every: str) -> dict[str, str]:
    """Table of ``lifecycle`` → view. ``every``: how the names of views of all of the time begin,
    from which those of a period are made."""
    if not every:
        return {part: part for part in ("jobs", "queues", "totals", "flow", "findings")}
    parts = {part: f"{every}{part}" for part in ("jobs", "queues")}
    return {**parts, "flow": "flow", "clocks": "clocks"}


def _limited(
    ask: Queries, sources: ReportViews, last_ms: int, against_ms: int | None
) -> tuple[Period, Comparison | None]:
    """Make the views of the period, and of an earlier one."""
    known = ask.row(
        "extent",
        "The time that the tables are about",
        """
SELECT epoch_us(min(coalesce(added_at, began_at))) AS begin_us,
    epoch_us(max(last_event_at)) AS end_us
FROM all_jobs""",
    )
    period = Period.last(known["end_us"] or 0, last_ms)
    earlier = None if against_ms is None else period.earlier(against_ms)
    sources.limit(period, earlier)
    if earlier is None:
        return period, None
    summary = _summary(ask, "earlier_jobs", "earlier")
    begin_us = known["begin_us"]
    is_whole = begin_us is not None and begin_us <= earlier.begin_us
    return period, Comparison(earlier, summary if summary["jobs"] else None, is_whole)


def _checked(ask: Queries, table: EventTableLog, view: str) -> Checked:
    """``view``: of all events, for a person who runs the statements."""
    with database(table.root, _TOO_LARGE) as rows:
        found = audited(rows, table, _SUSPECTS_MAX)
        first = [] if view == "events" else [f"CREATE TEMP VIEW events AS FROM {view}"]
        statements = ";\n\n".join([*first, *rows.statements, COUNTS])
        ask.made.append(Query("audit", _AUDIT, statements))
        noted = table.noted()
        runs = all_runs(rows, table) if noted is None else noted[0]
    return Checked(found, {node: count for node, count in runs.missing().items() if count})


def _axis(ask: Queries) -> Axis:
    """Steps that are multiples of the windows, whose length follows from their rates."""
    lengths = ", ".join(f"{name} / nullif({name}_per_s, 0)" for name in COUNTED[:3])
    span = ask.row(
        "axis",
        "The first and the last window, and their length",
        f"""
SELECT epoch_us(min("window")) // 1000000 AS first_s, epoch_us(max("window")) // 1000000 AS last_s,
    round(max(greatest({lengths}))) AS window_s
FROM queues""",
    )
    if span["first_s"] is None:
        return Axis(0, _DEFAULT_WINDOW_S, 1)
    return Axis.of_windows(
        span["first_s"], span["last_s"], int(span["window_s"] or _DEFAULT_WINDOW_S)
    )


def _summary(ask: Queries, jobs: str = "jobs", name: str = "summary") -> Row:
    return ask.row(
        name,
        f"Summary of the view {jobs}",
        f"""
SELECT count(*) AS jobs, sum(size) AS bytes, count(DISTINCT queue) AS queues,
    (SELECT count(DISTINCT node) FROM (SELECT unnest(nodes) AS node FROM {jobs})) AS nodes,
    epoch_us(min(coalesce(added_at, began_at))) AS begin_us,
    epoch_us(max(last_event_at)) AS end_us,
    coalesce(sum(deliveries), 0) AS deliveries, coalesce(sum(nacks), 0) AS nacks,
    count(*) FILTER (deliveries > 1) AS redelivered_jobs, count(added_at) AS added,
    count(*) FILTER (outcome = 'acked') AS acked
FROM {jobs}""",
    )


def _outcomes(ask: Queries) -> dict[str, int]:
    rows = ask.rows(
        "outcomes",
        "What became of the jobs",
        "SELECT outcome, count(*) AS jobs FROM jobs GROUP BY outcome ORDER BY jobs DESC, outcome",
    )
    return {row["outcome"]: row["jobs"] for row in rows}


def _rates(ask: Queries, axis: Axis) -> dict[str, list[int]]:
    sums = ", ".join(f"sum({name}) AS {name}" for name in COUNTED)
    found = ask.rows(
        "rates",
        "Events per step of time",
        f"""
SELECT {axis.of('"window"')} AS step,
    {sums}
FROM queues GROUP BY step ORDER BY step""",
    )
    rows = {row["step"]: row for row in found}
    return {
        name: [int(rows[step][name]) if step in rows else 0 for step in range(axis.steps)]
        for name in COUNTED
    }


def _backlog(ask: Queries, axis: Axis, every: str) -> dict[str, list[int]]:
    """Of all queues, and of those with the longest backlogs, of which a plot can show a few.
    ``every``: the view of all windows, as a backlog begins before a period does."""
    rows = ask.rows(
        "backlog",
        "By how much the backlog of all queues, and of the longest ones, changed per step of time",
        f"""
WITH longest AS (
    SELECT queue, max(backlog) AS most FROM queues GROUP BY queue HAVING max(backlog) > 0
    ORDER BY most DESC, queue LIMIT {_LINES_MAX}
),
changes AS (
    SELECT queue, {axis.of('"window"')} AS step,
        begun - ended AS change
    FROM {every}
)
SELECT '' AS queue, NULL AS most, step, sum(change) AS change FROM changes GROUP BY step
UNION ALL
SELECT queue, most, step, sum(change) FROM changes JOIN longest USING (queue)
GROUP BY queue, most, step
ORDER BY most DESC NULLS FIRST, queue, step""",
    )
    changes = {(row["queue"], row["step"]): int(row["change"]) for row in rows}
    queues = dict.fromkeys(["", *(row["queue"] for row in rows)])
    return {queue: _running(changes, queue, axis.steps) for queue in queues}


def _running(changes: Mapping[tuple[str, int], int], queue: str, steps: int) -> list[int]:
    """Sums from the first step to each."""
    sums, so_far = [], 0
    for step in range(steps):
        so_far += changes.get((queue, step), 0)
        sums.append(so_far)
    return sums


def _totals(ask: Queries, top: int) -> list[Row]:
    return ask.rows(
        "queues",
        "The queues with the most jobs",
        f"SELECT * FROM totals ORDER BY jobs DESC, queue LIMIT {top}",
    )


def _worst(ask: Queries, top: int) -> list[Row]:
    return ask.rows(
        "worst",
        "The queues in which the most went wrong",
        f"""
SELECT *, redelivered_jobs + nacks + expired + lost AS bad FROM totals WHERE bad > 0
ORDER BY bad DESC, queue LIMIT {top}""",
    )


def _flow(ask: Queries) -> dict[tuple[str, str], tuple[int, int]]:
    """The busiest pairs of nodes."""
    rows = ask.rows(
        "flow",
        "The pairs of nodes between which the most jobs went",
        f"""
SELECT from_node, to_node, sum(exported) AS exported, sum(imported) AS imported
FROM flow GROUP BY from_node, to_node
ORDER BY sum(exported) + sum(imported) DESC, from_node, to_node LIMIT {_PAIRS_MAX}""",
    )
    return {
        (row["from_node"], row["to_node"]): (int(row["exported"]), int(row["imported"]))
        for row in rows
    }


def _found(ask: Queries, finding: str, top: int) -> tuple[int, list[Row]]:
    """How many findings of a kind there are, and the worst of them."""
    rows = ask.rows(
        finding,
        f"The worst findings of the kind {finding}, and how many there are",
        f"""
SELECT queue, job_id, node, peer, measured, advice, count(*) OVER () AS found
FROM findings WHERE finding = {sql.text(finding)}
ORDER BY measured DESC, queue NULLS FIRST, job_id NULLS FIRST, node NULLS FIRST, peer NULLS FIRST
LIMIT {top}""",
    )
    return (rows[0]["found"] if rows else 0), rows
