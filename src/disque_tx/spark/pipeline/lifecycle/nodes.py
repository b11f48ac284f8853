"""Pairs of nodes: how many jobs moved between them, and how far their clocks differ.

A job is exported before it is imported, and added before another node delivers it. The difference
of the two times, each by the clock of its node, is the duration plus how far the second clock is
ahead. So the smallest difference from A to B is an upper bound of how far B's clock is ahead of
A's, and the smallest one from B to A gives the lower bound.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

PAIR: Final = ["from_node", "to_node"]
_STEPS: Final = ("exported", "imported", "delivered")


def is_move() -> Column:
    """Whether an event says that a job moved between two nodes."""
    return fn.col("kind").isin("exported", "imported") & fn.col("peer").isNotNull()


def is_elsewhere() -> Column:
    """Whether an event is about a job at another node than the one in its ID, or on its way there:
    only such ones show how clocks differ."""
    foreign = fn.substring("job_id", 3, 8) != fn.substring("node", 1, 8)
    return is_move() | ((fn.col("kind") == "delivered") & foreign)


def flow(events: DataFrame) -> DataFrame:
    """Per pair of nodes and queue: how many jobs the first logged as exported, and the second as
    imported."""
    moves = events.where(is_move())
    out = fn.col("kind") == "exported"
    ways = moves.select(
        fn.when(out, fn.col("node")).otherwise(fn.col("peer")).alias("from_node"),
        fn.when(out, fn.col("peer")).otherwise(fn.col("node")).alias("to_node"),
        *("queue", "kind"),
    )
    return ways.groupBy(*PAIR, "queue").agg(
        fn.count_if(fn.col("kind") == "exported").alias("exported"),
        fn.count_if(fn.col("kind") == "imported").alias("imported"),
    )


def clocks(events: DataFrame, jobs: DataFrame) -> DataFrame:
    """Per pair of nodes: by how many ms the clock of ``to_node`` is ahead of that of
    ``from_node``, at least (``ahead_ms_min``) and at most (``ahead_ms_max``). Null: not known.

    ``jobs``: what :func:`disque_tx.spark.pipeline.lifecycle.jobs.jobs` makes of the same events.
    """
    return both_ways(bounds(events, jobs))


def bounds(events: DataFrame, jobs: DataFrame) -> DataFrame:
    """The same with ``ahead_ms_max`` only, where it is known."""
    ways = _ways(events)
    steps = _moved(ways).unionByName(_delivered_elsewhere(ways, jobs))
    return steps.groupBy(*PAIR).agg(fn.min("step_ms").alias("ahead_ms_max"))


def both_ways(bounds: DataFrame) -> DataFrame:
    """What :func:`bounds` found, with the bounds of the opposite pairs."""
    back = bounds.select(
        fn.col("to_node").alias("from_node"),
        fn.col("from_node").alias("to_node"),
        (-fn.col("ahead_ms_max")).alias("ahead_ms_min"),
    )
    return bounds.join(back, PAIR, "full").select(*PAIR, "ahead_ms_min", "ahead_ms_max")


def _ways(events: DataFrame) -> DataFrame:
    """When a job left one node for another, arrived there, and was delivered there. Deliveries by
    another node than the one in the job's ID have no ``from_node``."""
    kind, node, peer = fn.col("kind"), fn.col("node"), fn.col("peer")
    at_us = fn.unix_micros("time")
    ways = events.where(is_elsewhere()).select(
        "job_id",
        fn.when(kind == "exported", node).when(kind == "imported", peer).alias("from_node"),
        fn.when(kind == "exported", peer).otherwise(node).alias("to_node"),
        *(fn.when(kind == name, at_us).alias(f"{name}_us") for name in _STEPS),
    )
    return ways.groupBy("job_id", *PAIR).agg(
        fn.count("exported_us").alias("exports"),
        fn.count("imported_us").alias("imports"),
        *(fn.min(f"{name}_us").alias(f"{name}_us") for name in _STEPS),
    )


def _moved(ways: DataFrame) -> DataFrame:
    """Exported, then imported. A job that moved twice between the same nodes is left out, because
    it is not known which events belong together."""
    once = ways.where("exports = 1 AND imports = 1")
    return once.select(*PAIR, _step_ms(fn.col("exported_us"), fn.col("imported_us")))


def _delivered_elsewhere(ways: DataFrame, jobs: DataFrame) -> DataFrame:
    """Added, then delivered by another node than the one in the job's ID."""
    first = jobs.where("size(nodes) > 1 AND made_on IS NOT NULL AND added_at IS NOT NULL")
    second = ways.where("delivered_us IS NOT NULL").select("job_id", "to_node", "delivered_us")
    both = first.select("job_id", fn.col("made_on").alias("from_node"), "added_at").join(
        second, "job_id"
    )
    step_ms = _step_ms(fn.unix_micros("added_at"), fn.col("delivered_us"))
    return both.where("from_node != to_node").select(*PAIR, step_ms)


def _step_ms(first_us: Column, second_us: Column) -> Column:
    return ((second_us - first_us) / 1000).alias("step_ms")
