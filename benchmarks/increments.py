"""What it costs to bring results of ``lifecycle`` up to date, on ``local[2]`` after a warm-up.

``python -m benchmarks.increments [JOBS]``, with how many jobs an hour has (50), prints two ratios
of CPU seconds: the 30th daily run beside the 2nd (bar: 1.2), and a run for an hour after a year
beside one for this hour alone (bar: 3). Exit status 1 above a bar.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from disque_tx.spark import session
from disque_tx.spark.pipeline.engines.runner import SETTINGS
from disque_tx.spark.pipeline.lifecycle import lifecycle
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.tables.events import EVENTS, event_schema
from disque_tx.spark.pipeline.tables.footers import written

_BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)
_DAYS: Final = 30
_YEAR_DAYS: Final = 365
_DAILY_BAR: Final = 1.2
_YEAR_BAR: Final = 3.0


class Events:
    """A table of events of one node, which runs jobs all the time."""

    def __init__(self, folder: Path, jobs_per_hour: int) -> None:
        self.root = str(folder)
        self._log = DeltaLog.create(self.root, event_schema(), EVENTS, ("dt",))
        self._per_hour = jobs_per_hour
        self._seq = 0
        self._chance = random.Random(1)

    def add(self, first_hour: int, hours: int) -> None:
        """Add the events of these hours, all of the same day, as one file."""
        rows = [row for hour in range(hours) for row in self._hour(first_hour + hour)]
        schema = event_schema().remove(event_schema().get_field_index("dt"))
        columns = {name: [row.get(name) for row in rows] for name in schema.names}
        day = _BEGIN + timedelta(hours=first_hour)
        path = Path(self.root, f"batch-{first_hour}", f"dt={day:%Y-%m-%d}", "x.parquet")
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table(columns, schema), path, compression="zstd")
        self._log.commit(written(self.root, f"batch-{first_hour}"))

    def _hour(self, hour: int) -> Iterator[dict[str, Any]]:
        for _ in range(self._per_hour):
            at = _BEGIN + timedelta(hours=hour, seconds=self._chance.uniform(0, 3590))
            wait_ms, run_ms = int(self._chance.expovariate(0.01)), self._chance.randrange(5000)
            job = f"D-{'a' * 8}-{self._chance.randbytes(12).hex()}-05a1"
            queue = self._chance.choice(["mail", "orders", "thumbnails"])
            given = {"retry_s": 60, "ttl_s": 86_400, "delay_s": 0, "replicate": 1}
            begun = at + timedelta(milliseconds=wait_ms)
            for kind, when, more in (
                ("added", at, given),
                ("queued", at, {}),
                ("delivered", begun, {"wait_ms": wait_ms}),
                ("acked", begun + timedelta(milliseconds=run_ms), {"run_ms": run_ms}),
            ):
                yield {
                    **{"node": "a" * 40, "boot": 1, "seq": self._seq, "time": when},
                    **{"kind": kind, "job_id": job, "queue": queue, "size": 100},
                    **{"nacks": 0, "additional_deliveries": 0, **more},
                }
                self._seq += 1


def _run_s(spark: SparkSession, events: Events, out: Path) -> float:
    """Run it; returns the CPU seconds of this process and of Java."""
    before = _cpu_s(spark)
    print(lifecycle(spark, events.root, str(out)).how)
    return _cpu_s(spark) - before


def _cpu_s(spark: SparkSession) -> float:
    java: Any = spark._jvm
    pid = java.java.lang.ProcessHandle.current().pid()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def daily(spark: SparkSession, folder: Path, per_hour: int) -> float:
    """The 30th daily run beside the 2nd; each is the least of two neighbours."""
    events, taken = Events(folder / "days", per_hour), []
    for day in range(_DAYS):
        events.add(24 * day, 24)
        taken.append(_run_s(spark, events, folder / "daily"))
        print(f"day {day + 1}: {taken[-1]:.1f} s", flush=True)
    return min(taken[-2:]) / min(taken[1:3])


def after_a_year(spark: SparkSession, folder: Path, per_hour: int) -> float:
    """An hour after a year beside this hour alone."""
    year, alone = Events(folder / "year", per_hour), Events(folder / "hour", per_hour)
    for day in range(_YEAR_DAYS):
        year.add(24 * day, 24)
    print(f"a year: {_run_s(spark, year, folder / 'of-year'):.1f} s", flush=True)
    taken = []
    for hour in range(3):
        year.add(24 * _YEAR_DAYS + hour, 1)
        taken.append(_run_s(spark, year, folder / "of-year"))
        print(f"an hour more: {taken[-1]:.1f} s", flush=True)
    alone.add(24 * _YEAR_DAYS, 1)
    single = [_run_s(spark, alone, folder / f"alone-{again}") for again in range(2)]
    print(f"an hour alone: {min(single):.1f} s", flush=True)
    return min(taken) / min(single)


def main(per_hour: int) -> bool:
    """Print both ratios; returns whether they are within their bars."""
    spark = session("increments", "local[2]", SETTINGS)
    with tempfile.TemporaryDirectory() as name:
        ratios = {
            "an hour after a year": (after_a_year(spark, Path(name), per_hour), _YEAR_BAR),
            "the 30th day": (daily(spark, Path(name), per_hour), _DAILY_BAR),
        }
    for what, (ratio, bar) in ratios.items():
        print(f"{what}: {ratio:.2f} (bar {bar})")
    return all(ratio <= bar for ratio, bar in ratios.values())


if __name__ == "__main__":
    sys.exit(0 if main(int(sys.argv[1]) if len(sys.argv) > 1 else 50) else 1)
