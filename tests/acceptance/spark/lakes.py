"""A process that stores a queue in a Delta table until it is killed; it prints each step.

Arguments: ``stream``, ``rows`` (a stream without the option ``deltaTable``) or ``drain``, SERVERS,
TABLE, and how many jobs a batch has.
"""

from __future__ import annotations

import sys
import threading

from disque_tx.spark import session
from disque_tx.spark.foreach.delta import DeltaSink
from disque_tx.spark.options import read_options
from disque_tx.spark.pipeline.tables.jobs import JobTable
from disque_tx.spark.pipeline.transfer import drain


def tell(step: str) -> None:
    """Say that a step is done."""
    print(step, flush=True)


def main(how: str, servers: str, table: str, batch: int) -> None:
    """Run until killed."""
    target = JobTable(table, step=tell)
    options = {"disque.servers": servers, "subscribe": "q"}
    if how == "drain":
        drain._JOBS_MAX = batch  # type: ignore[misc]
        drain.drain(read_options(options, streaming=False), target, True, threading.Event())
    options["checkpointLocation"] = f"{table}/_checkpoint"
    if how == "stream":
        options["deltaTable"] = table
    spark = session("killed", "local[2]", {"spark.local.dir": f"{table}/_local"})
    stream = spark.readStream.format("disque").option("maxJobsPerTrigger", str(batch))
    writer = stream.options(**options).load().writeStream.foreachBatch(DeltaSink(target))
    writer.option("checkpointLocation", options["checkpointLocation"]).start().awaitTermination()


if __name__ == "__main__":
    how, servers, table, batch = sys.argv[1:]
    main(how, servers, table, int(batch))
