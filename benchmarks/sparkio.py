"""Jobs per second of the Spark sink and the Spark stream source, with one daemon, on local[2].

    python -m benchmarks.sparkio [--jobs N] [--compiled FOLDER]

Each is measured after a run of the same kind that warms Java up. Exit status 1 below the bars.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.nodes import running
from disque_tx.spark import session

_PORT = 17_711
_SERVERS = f"127.0.0.1:{_PORT}"
_SINK_JOBS_PER_S = 15_000
_SOURCE_JOBS_PER_S = 8_000
_BODY = "lpad(CAST(id AS STRING), 100, 'x')"


def write(spark: SparkSession, jobs: int) -> None:
    """A table into a queue."""
    table = spark.range(jobs).selectExpr("'bench' AS queue", f"{_BODY} AS body")
    table.write.format("disque").mode("append").option("disque.servers", _SERVERS).save()


def drain(spark: SparkSession, folder: Path) -> None:
    """The queue into a table."""
    stream = spark.readStream.format("disque").option("disque.servers", _SERVERS)
    checkpoint = str(folder / "checkpoint")
    stream = stream.option("subscribe", "bench").option("checkpointLocation", checkpoint)
    writer = stream.load().writeStream.format("parquet").option("path", str(folder / "out"))
    writer = writer.option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()


def timed(work: Callable[[], None]) -> float:
    """Seconds."""
    begun_s = time.monotonic()
    work()
    return time.monotonic() - begun_s


def measure(spark: SparkSession, folder: Path, jobs: int) -> tuple[float, float]:
    """Jobs per second of the sink and of the source."""
    write(spark, jobs // 10)
    drain(spark, folder / "warm")
    written_s = timed(lambda: write(spark, jobs))
    drained_s = timed(lambda: drain(spark, folder / "measured"))
    stored = spark.read.parquet(str(folder / "measured" / "out")).select("id").distinct().count()
    if stored != jobs:
        raise SystemExit(f"{jobs} jobs were written and {stored} stored.")
    return jobs / written_s, jobs / drained_s


def main() -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--compiled", default="build/compiled", help="the compiled package")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(_PORT, folder / "node", given.compiled):
            spark = session("sparkio", "local[2]", {"spark.local.dir": name})
            sink, source = measure(spark, folder, given.jobs)
            spark.stop()
    print(f"sink    {sink:10,.0f} jobs/s, at least {_SINK_JOBS_PER_S:,} wanted")
    print(f"source  {source:10,.0f} jobs/s, at least {_SOURCE_JOBS_PER_S:,} wanted")
    return 0 if sink >= _SINK_JOBS_PER_S and source >= _SOURCE_JOBS_PER_S else 1


if __name__ == "__main__":
    sys.exit(main())
