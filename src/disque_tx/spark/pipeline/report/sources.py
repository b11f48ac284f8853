"""The views that the queries of a report stand on, as statements that a person can run, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import attrs
import pyarrow as pa

from disque_tx.spark.errors import BadTable
from disque_tx.spark.paths import resolved
from disque_tx.spark.pipeline import wording
from disque_tx.spark.pipeline.lifecycle.made import RESULTS
from disque_tx.spark.pipeline.local import nodes, queues, sql
from disque_tx.spark.pipeline.local.columns import SCHEMAS
from disque_tx.spark.pipeline.local.database import Database
from disque_tx.spark.pipeline.report.spans import Period
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.tables.events import EventTableLog, event_schema

#: Files of a table that a page lists.
FILES_SHOWN: Final = 100
#: Times are shown and compared in UTC.
UTC_STATEMENT: Final = "SET TimeZone = 'UTC'"


@attrs.frozen
class View:
    """``statement``: makes it, with the files of a table if it reads one. ``what``: the table and
    its version, or what else it has. ``left_out``: how many files the statement does not list."""

    name: str
    what: str
    statement: str
    root: str = ""
    version: int = 0
    left_out: int = 0


def results_root(out: str) -> str:
    """The resolved path of what ``lifecycle`` wrote to ``out``.

    :raises BadTable: when there is something else, or nothing.
    """
    root = resolved(out)
    absent = [part for part in RESULTS if not DeltaLog.exists(f"{root}/{part}")]
    if absent:
        raise BadTable(
            f"{root} has no {', '.join(absent)}. 'disque-pipeline lifecycle TABLE --into OUT'"
            " makes the tables for a report; pass its OUT."
        )
    return root


class ReportViews:
    """Makes views in a database. ``views``: all that were made, in order."""

    def __init__(self, rows: Database) -> None:
        self._rows = rows
        self.views: list[View] = []

    def open_results(self, root: str, names: Mapping[str, str]) -> None:
        """Make views of tables below a resolved path. ``names``: table → view."""
        for part, view in names.items():
            self._open(view, SCHEMAS[part], DeltaLog(f"{root}/{part}"))

    def open_events(self, events: EventTableLog, view: str) -> None:
        """Make a view of a table of events."""
        self._open(view, event_schema(), events.log)

    def limit(self, period: Period, earlier: Period | None) -> None:
        """Make the views ``jobs``, ``queues``, ``totals`` and ``findings`` of a period from those
        of all of the time, ``all_jobs``, ``all_queues`` and ``clocks``; and ``events`` from
        ``all_events``, if that is there. ``earlier``: a period for ``earlier_jobs``."""
        begin = sql.moment(period.begin_us)
        added = "coalesce(added_at, began_at)"
        self._make("jobs", "Jobs of the period.", f"FROM all_jobs WHERE {added} >= {begin}")
        self._make("queues", "Its windows.", f'FROM all_queues WHERE "window" >= {begin}')
        if any(view.name == "all_events" for view in self.views):
            self._make("events", "Its events.", f"FROM all_events WHERE time >= {begin}")
        self._make("distributions", "How many of its jobs have a value.", queues.distributions())
        self._make("totals", "Its queues.", queues.totals(), kept=True)
        self._make("findings", "What was found about them.", nodes.findings(), kept=True)
        if earlier is not None:
            since, until = sql.moment(earlier.begin_us), sql.moment(earlier.end_us)
            within = f"{added} >= {since} AND {added} < {until}"
            self._make("earlier_jobs", "Earlier jobs.", f"FROM all_jobs WHERE {within}")

    def _make(self, view: str, what: str, query: str, kept: bool = False) -> None:
        """Make a view of other views. ``kept``: as a table, as its rows are few and asked for
        several times."""
        statement = f"{'TABLE' if kept else 'VIEW'} {view} AS {query.strip()}"
        self._rows.run(f"CREATE TEMP {statement}")
        self.views.append(View(view, what, f"CREATE {statement}"))

    def _open(self, view: str, columns: pa.Schema, log: DeltaLog) -> None:
        files = log.files()
        self._rows.view(view, columns, log.root, files)
        names = [f"{log.root}/{file.path}" for file in files]
        left_out = max(len(names) - FILES_SHOWN, 0)
        if left_out:
            # As no file has this name, the statement fails instead of reading some of the rows.
            names = [*names[:FILES_SHOWN], f"({left_out} more files)"]
        query = f"SELECT {_columns(columns, log.schema)} FROM {sql.parquet(names)}"
        statement = query if names else sql.no_rows(columns)
        self.views.append(
            View(
                view,
                f"Version {log.version} of the table {log.root}.",
                f"CREATE VIEW {view} AS {statement}",
                log.root,
                log.version,
                left_out,
            )
        )


def script(views: Iterable[View]) -> str:
    """The statements that make views, for a person who pastes them."""
    lines = [f"{UTC_STATEMENT};"]
    for view in views:
        lines.append(f"-- {wording.sentence(view.what)}\n{view.statement};")
    return "\n".join(lines)


def _columns(wanted: pa.Schema, stored: pa.Schema) -> str:
    """All columns; those that a table of an earlier version lacks have no values."""
    absent = [field for field in wanted if field.name not in stored.names]
    return ", ".join(["*", *(f"CAST(NULL AS {sql.kind(f)}) AS {sql.name(f.name)}" for f in absent)])
