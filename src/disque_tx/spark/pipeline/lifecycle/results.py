"""``disque-pipeline lifecycle``: the tables that it writes, from all events or from new ones.

A run on results that are there brings them up to date by the events that were added since, with
the same rows as a run that computes them from all events. That is done instead where it is not
known what was added, and is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from disque_tx.spark.paths import check_apart, resolved
from disque_tx.spark.pipeline.lifecycle import nodes, queues
from disque_tx.spark.pipeline.lifecycle.findings import candidates, findings
from disque_tx.spark.pipeline.lifecycle.jobs import Extent, jobs
from disque_tx.spark.pipeline.lifecycle.made import (
    RESULTS,
    Made,
    added_to,
    check_origin,
    contents,
    noted,
    origin,
    settled_us,
)
from disque_tx.spark.pipeline.lifecycle.sizing import Sizing
from disque_tx.spark.pipeline.lifecycle.totals import SIGN, distributions, sums, totals
from disque_tx.spark.pipeline.lifecycle.update import Update
from disque_tx.spark.pipeline.outputs import Output
from disque_tx.spark.pipeline.tables.changes import NotOnlyAdded
from disque_tx.spark.pipeline.tables.table import EventTable
from disque_tx.spark.sessions import check_classic

#: Of a table with fewer events, a run over all of them costs less than one over new ones.
WHOLE_BELOW: Final = 100_000


def lifecycle(
    spark: SparkSession,
    table: str,
    into: str,
    window_s: int = 60,
    whole: bool = False,
    as_of: int | str | None = None,
) -> Made:
    """Make the Delta tables :data:`RESULTS` below ``into``, or bring them up to date.

    Each gets its new rows by one commit, after all of them have been computed. ``whole``: compute
    them from all events, and replace also those of another table or window. ``as_of``: the version
    or time of the table of events that they are made from.

    :raises RemoteSession: when the session is one of Spark Connect. :raises BadTable: when
    ``table`` is not a table, or has no such version. :raises OutputExists:
    when ``into`` holds something else. :raises OutputOverlaps: when ``into`` is the table, in it,
    or around it. :raises Conflict: when another process published results at the same time.
    """
    check_classic(spark, "lifecycle")
    events, target = EventTable(spark, table, as_of=as_of), resolved(into)
    check_apart(target, [events.root])
    outputs = {part: Output(spark, f"{target}/{part}", contents(part)) for part in RESULTS}
    former = [output.notes for output in outputs.values()]
    if not whole:
        check_origin(outputs, former, origin(events.log, window_s))
    with Sizing(spark) as sizing:
        try:
            if whole:
                raise NotOnlyAdded("that was asked for")
            since = _since(events, former)
            update = Update(spark, events, outputs, window_s, sizing, since)
            horizon_us, how = update.write()
            replaced = update.replaced
        except NotOnlyAdded as why:
            sizing.read(events.log.files())
            horizon_us = _write(spark, events.events(), outputs, window_s)
            replaced = {}
            how = f"Computed from all events: {why}."
    notes = noted(events.log, window_s, horizon_us)
    for part, output in outputs.items():
        output.publish(replaced.get(part), notes)
    return Made({part: output.root for part, output in outputs.items()}, how)


def _since(events: EventTable, former: list[Mapping[str, Any]]) -> tuple[list[str], int]:
    """The files that were added since the results were made, and the horizon of these.

    :raises NotOnlyAdded: when the results cannot be brought up to date.
    """
    added = added_to(events.log, former)
    if added and sum(file.rows for file in events.log.files()) < WHOLE_BELOW:
        raise NotOnlyAdded("there are few, so this is faster")
    return added, former[0]["horizon_us"]


def _write(
    spark: SparkSession, events: DataFrame, outputs: Mapping[str, Output], window_s: int
) -> int:
    """Make each table from those before it, which are read from the disk again; returns the
    horizon of the events."""

    def read(part: str) -> DataFrame:
        return outputs[part].written()

    def counted() -> DataFrame:
        return read("jobs").withColumn(SIGN, fn.lit(1))

    extent = Extent.of(events)
    settled = fn.lit(settled_us(extent.horizon_us))
    made: dict[str, Callable[[], DataFrame]] = {
        "jobs": lambda: jobs(events, extent),
        "queues": lambda: queues.with_backlog(queues.windows(events, read("jobs"), window_s)),
        "distributions": lambda: distributions(counted()),
        "totals": lambda: totals(sums(counted()), read("distributions")),
        "flow": lambda: nodes.flow(events),
        "clocks": lambda: nodes.clocks(events, read("jobs")),
        "findings": lambda: findings(candidates(read("jobs")), read("totals"), read("clocks")),
    }
    last = {
        "jobs": fn.unix_micros("final_at") < settled,
        "queues": fn.unix_micros("window") < settled,
    }
    for part in RESULTS:
        spark.sparkContext.setJobDescription(part)
        outputs[part].write(made[part](), last.get(part))
    return extent.horizon_us
