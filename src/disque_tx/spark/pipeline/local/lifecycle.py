"""``lifecycle`` by DuckDB: always from all events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from disque_tx.spark.paths import check_apart, resolved
from disque_tx.spark.pipeline.lifecycle.made import (
    RESULTS,
    UP_TO_DATE,
    Made,
    added_to,
    check_origin,
    contents,
    noted,
    origin,
    settled_us,
)
from disque_tx.spark.pipeline.local import nodes, queues
from disque_tx.spark.pipeline.local.columns import SCHEMAS
from disque_tx.spark.pipeline.local.database import Database, check_local, database
from disque_tx.spark.pipeline.local.jobs import EventExtent, jobs
from disque_tx.spark.pipeline.local.sql import typed
from disque_tx.spark.pipeline.published import SETTLED, ResultTable
from disque_tx.spark.pipeline.tables.changes import NotOnlyAdded
from disque_tx.spark.pipeline.tables.events import EventTableLog

_HOW: Final = "Computed from all events, as --engine duckdb always does."
#: Table → the column of times after which a row is not expected to change.
_LAST: Final = {"jobs": "final_at", "queues": "window"}


def lifecycle(
    table: str,
    into: str,
    window_s: int = 60,
    whole: bool = False,
    as_of: int | str | None = None,
) -> Made:
    """Make the Delta tables :data:`RESULTS` below ``into``, or replace them. Arguments and errors
    are those of :func:`disque_tx.spark.pipeline.lifecycle.results.lifecycle`."""
    target = resolved(into)
    for path in (resolved(table), target):
        check_local(path)
    events = EventTableLog(table, as_of=as_of)
    check_apart(target, [events.root])
    outputs = {part: ResultTable(f"{target}/{part}", contents(part)) for part in RESULTS}
    former = [output.notes for output in outputs.values()]
    if not whole:
        check_origin(outputs, former, origin(events.log, window_s))
    paths = {part: output.root for part, output in outputs.items()}
    if not whole and _is_up_to_date(events, former):
        notes = noted(events.log, window_s, former[0]["horizon_us"])
        for output in outputs.values():
            output.publish([], notes)
        return Made(paths, UP_TO_DATE)
    with database(target) as rows:
        rows.view("events", events.log.schema, events.root, events.log.files())
        notes = noted(events.log, window_s, _write(rows, outputs, window_s))
    for output in outputs.values():
        output.publish(None, notes)
    return Made(paths, _HOW)


def _is_up_to_date(events: EventTableLog, former: list[Mapping[str, Any]]) -> bool:
    """Whether results have all events."""
    try:
        return not added_to(events.log, former)
    except NotOnlyAdded:
        return False


def _write(rows: Database, outputs: Mapping[str, ResultTable], window_s: int) -> int:
    """Make each table from those before it; returns the horizon of the events."""
    extent = EventExtent.of(rows)
    made: dict[str, Callable[[], Iterable[str]]] = {
        "jobs": lambda: jobs(extent),
        "queues": lambda: [queues.queues(window_s)],
        "distributions": lambda: [queues.distributions()],
        "totals": lambda: [queues.totals()],
        "flow": lambda: [nodes.flow()],
        "clocks": lambda: [nodes.clocks()],
        "findings": lambda: [nodes.findings()],
    }
    for part in RESULTS:
        output, schema = outputs[part], SCHEMAS[part]
        some, partition = [typed(schema, query) for query in made[part]()], None
        if part in _LAST:
            is_settled = f'epoch_us("{_LAST[part]}") < {settled_us(extent.horizon_us)}'
            with_it = f"SELECT *, coalesce({is_settled}, false) AS {SETTLED}"
            some = [f"{with_it} FROM ({query})" for query in some]
            partition = SETTLED
        output.begin(schema)
        output.stage(rows.write(some, output.root, partition))
        # Read from the disk again, as memory is limited.
        rows.view(part, schema, output.root, output.staged())
    return extent.horizon_us
