"""``ingest`` and ``lifecycle`` beside what somebody would write by hand with Spark, in turn.

``python -m benchmarks.byhand [--events N] [--rounds N]``, by the same logs of five nodes:

- ``ingest`` beside a job that reads the same lines with the same columns, and stores all of them as
  Parquet, unexamined.
- ``lifecycle``, which makes all of its tables, beside one query in SQL that makes the columns of
  its table of jobs, as far as a query alone can: no findings, no queues, no outcome.

CPU seconds are those of this process, Java and Spark's workers on ``local[2]``, each way once
before, to warm up. Prints the medians of the rounds and of their ratios as Markdown. Exit status 1
below the bars: 0.85 of the speed of the job, and 2.5 times the time of the query.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from benchmarks.eventlogs import generate
from benchmarks.lakes import adopt_orphans, cpu_s
from disque_tx.spark import session
from disque_tx.spark.pipeline.engines.runner import SETTINGS
from disque_tx.spark.pipeline.ingest.ingestion import ingest
from disque_tx.spark.pipeline.lifecycle.results import lifecycle
from disque_tx.spark.pipeline.lifecycle.rules import ACKED, ADDED_WITH, COUNTED, FIRST
from disque_tx.spark.pipeline.tables.table import EventTable
from disque_tx.spark.schema import EVENTS_DDL

#: Command → the most of the reference's time that it may take.
_BARS: Final = {"ingest": 1 / 0.85, "lifecycle": 2.5}


def _is(kinds: Iterable[str], reason: str | None = None) -> str:
    words = ", ".join(f"'{kind}'" for kind in kinds)
    return f"kind IN ({words})" + (f" AND reason <=> '{reason}'" if reason else "")


def jobs_query() -> str:
    """A row for each job of the view ``events``."""
    times = [f"min(time) FILTER (WHERE {_is(kinds)}) AS {name}" for name, kinds in FIRST.items()]
    counts = [f"count_if({_is(*what)}) AS {name}" for name, what in COUNTED.items()]
    columns = [
        "job_id",
        "max(queue) AS queue",
        f"max(node) FILTER (WHERE {_is(['added'])}) AS made_on",
        *(f"max({name}) AS {name}" for name in ("size", "copies", *ADDED_WITH)),
        f"bool_or({_is(['added'], 'async')}) AS asynchronous",
        *times,
        f"max(time) FILTER (WHERE {_is(['delivered'])}) AS last_delivered_at",
        "min(time) AS first_event_at",
        "max(time) AS last_event_at",
        *counts,
        f"sum(wait_ms) FILTER (WHERE {_is(['delivered'])}) AS wait_ms",
        f"max(run_ms) FILTER (WHERE {_is(ACKED)}) AS run_ms",
        "array_sort(collect_set(node)) AS nodes",
    ]
    return f"SELECT {', '.join(columns)} FROM events WHERE job_id IS NOT NULL GROUP BY job_id"


def ways(spark: SparkSession, folder: Path) -> dict[str, tuple[Callable[[], None], ...]]:
    """Command → itself, and its reference. What each made before is replaced."""
    logs, table = str(folder / "logs"), str(folder / "table")
    by_hand, results = str(folder / "by-hand"), str(folder / "results")

    def ingested() -> None:
        shutil.rmtree(table, ignore_errors=True)
        ingest(spark, [logs], table)

    def stored() -> None:
        lines = spark.read.schema(EVENTS_DDL).json(f"{logs}/*/*/*.jsonl.zst")
        lines.write.mode("overwrite").parquet(by_hand)

    def made() -> None:
        lifecycle(spark, table, results, whole=True)

    def queried() -> None:
        EventTable(spark, table).events().createOrReplaceTempView("events")
        spark.sql(jobs_query()).write.mode("overwrite").parquet(by_hand)

    return {"ingest": (ingested, stored), "lifecycle": (made, queried)}


def main() -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    adopt_orphans()
    good = True
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        events = generate(folder / "logs", given.events)
        spark = session("by hand", "local[2]", SETTINGS)
        print("| | CPU s | by hand | ratio | min | max | wanted |\n|---|---|---|---|---|---|---|")
        for name, both in ways(spark, folder).items():
            rounds: list[list[float]] = []
            for turn in range(given.rounds + 1):
                taken: list[float] = []
                for way in both:
                    begun_s = cpu_s(set())
                    way()
                    taken.append(cpu_s(set()) - begun_s)
                if turn:
                    rounds.append(taken)
            own, reference = (statistics.median(times) for times in zip(*rounds, strict=True))
            ratios = [ours / theirs for ours, theirs in rounds]
            ratio = statistics.median(ratios)
            print(
                f"| {name} | {own:.1f} | {reference:.1f} | {ratio:.2f} | {min(ratios):.2f} "
                f"| {max(ratios):.2f} | {_BARS[name]:.2f} |",
                flush=True,
            )
            good = good and ratio <= _BARS[name]
        spark.stop()
    print(f"\n{events:,} events.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
