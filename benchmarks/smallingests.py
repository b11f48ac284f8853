"""What one small ingest costs after many: ``python -m benchmarks.smallingests [COUNT]``.

Ingests a folder to which a file of ten events is added each time, and prints, for each tenth of the
count, the median, minimum and maximum of the time of an ingest, and of opening the table alone.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from disque_tx.spark import session
from disque_tx.spark.pipeline.ingest.ingestion import ingest
from disque_tx.spark.pipeline.tables.table import EventTable
from tests.spark.pipeline.logs import Node, job_id, segment

#: So that the work of Spark does not hide what grows.
_SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.log.level": "OFF",
}


def main(count: int) -> None:
    """Run everything."""
    spark = session("small ingests", "local[1]", _SETTINGS)
    node = Node("a")
    print("| ingests | one ingest: median s | min | max | opening: median s | files | version |")
    print("|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="disque-ingests-") as folder:
        table = f"{folder}/table"
        ingests: list[float] = []
        openings: list[float] = []
        for number in range(1, count + 1):
            before = len(node.events)
            for step in range(5):
                node.log(number + step / 10, "delivered", job_id(before + step))
                node.log(number + step / 10 + 0.05, "acked", job_id(before + step))
            segment(Path(folder, "logs"), node.events[before:])
            begun_s = time.perf_counter()
            ingest(spark, [f"{folder}/logs"], table)
            ingests.append(time.perf_counter() - begun_s)
            if number % 5 == 0:
                begun_s = time.perf_counter()
                opened = EventTable(spark, table)
                openings.append(time.perf_counter() - begun_s)
            if number % (count // 10) == 0:
                print(
                    f"| {number} | {statistics.median(ingests):.2f} | {min(ingests):.2f}"
                    f" | {max(ingests):.2f} | {statistics.median(openings):.3f}"
                    f" | {len(opened.log.files())} | {opened.log.version} |",
                    flush=True,
                )
                ingests, openings = [], []
        events = EventTable(spark, table).events().count()
        print(f"\n{events} events of {len(node.events)}.")
    spark.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
