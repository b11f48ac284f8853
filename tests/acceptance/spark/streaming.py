"""A process that stores a queue until it is killed; arguments: SERVERS QUEUE FOLDER JOBS."""

from __future__ import annotations

import sys

from disque_tx.spark import session


def main(servers: str, queue: str, folder: str, jobs: str) -> None:
    """Run until killed, in batches of ``jobs`` jobs."""
    spark = session("killed", "local[2]", {"spark.local.dir": f"{folder}/local"})
    stream = spark.readStream.format("disque").option("disque.servers", servers)
    stream = stream.option("subscribe", queue).option("maxJobsPerTrigger", jobs)
    stream = stream.option("checkpointLocation", f"{folder}/checkpoint")
    query = (
        stream.load()
        .writeStream.format("parquet")
        .option("path", f"{folder}/out")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
