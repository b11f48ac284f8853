"""``disque-pipeline lifecycle``: what became of jobs, and how queues and nodes did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from disque_tx.spark.pipeline.errors import OutputExists
from disque_tx.spark.pipeline.lifecycle import findings, nodes, queues
from disque_tx.spark.pipeline.lifecycle.jobs import Extent, jobs
from disque_tx.spark.pipeline.tables.table import Table

#: Tables below OUT, in the order in which they are made.
PARTS: Final = ("jobs", "queues", "totals", "flow", "clocks", "findings")


def lifecycle(
    spark: SparkSession, table: str, into: str, window_s: int = 60, overwrite: bool = False
) -> dict[str, str]:
    """Make the tables :data:`PARTS` below ``into``; returns their paths.

    They appear together, when all of them are done.

    :raises BadTable: when ``table`` is none, or of another version.
    :raises OutputExists: when ``into`` exists and is not to be replaced.
    """
    events = Table(spark, table)
    storage, target = events.storage, events.storage.absolute(into)
    if storage.find(target) is not None and not overwrite:
        raise OutputExists(f"{target} exists. Name a new folder, or add --overwrite to replace it.")
    parent, _, name = target.rpartition("/")
    work = f"{parent}/_{name}-{uuid4().hex}"
    try:
        _write(spark, events.events(), work, window_s)
        if overwrite:
            storage.remove(target)
        storage.move(work, target)
    finally:
        storage.remove(work)
    return {part: f"{target}/{part}" for part in PARTS}


def _write(spark: SparkSession, events: DataFrame, work: str, window_s: int) -> None:
    """Each table is made from those before it, which are read from the disk again."""

    def read(part: str) -> DataFrame:
        return spark.read.parquet(f"{work}/{part}")

    extent = Extent.of(events)
    made: dict[str, Callable[[], DataFrame]] = {
        "jobs": lambda: jobs(events, extent),
        "queues": lambda: queues.windows(events, read("jobs"), window_s),
        "totals": lambda: queues.totals(read("jobs")),
        "flow": lambda: nodes.flow(events),
        "clocks": lambda: nodes.clocks(events, read("jobs")),
        "findings": lambda: findings.findings(read("jobs"), read("totals"), read("clocks")),
    }
    for part in PARTS:
        spark.sparkContext.setJobDescription(part)
        made[part]().write.option("compression", "zstd").parquet(f"{work}/{part}")
