"""A process that writes to a queue and streams it into a Delta table, with an event log of Spark;
it prints all plans and the progress. Arguments: SERVERS, FOLDER, an OPTION=VALUE with the password.
"""

from __future__ import annotations

import json
import sys

from disque_tx.spark import session
from disque_tx.spark.foreach import disque_delta


def main(servers: str, folder: str, secret: str) -> None:
    """Write and stream a few jobs."""
    log = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{folder}/log"}
    log["spark.eventLog.compress"] = "false"
    spark = session("secret", "local[1]", {**log, "spark.local.dir": f"{folder}/local"})
    name, _, value = secret.partition("=")
    options = {"disque.servers": servers, name: value}
    table = spark.range(5).selectExpr("'q' AS queue", "CAST(id AS STRING) AS body")
    table.write.format("disque").mode("append").options(**options).save()
    options |= {"subscribe": "q"}
    waiting = spark.read.format("disque").options(**options).load()
    waiting.explain("extended")
    print(waiting.count())
    place = {"checkpointLocation": f"{folder}/checkpoint"}
    stream = spark.readStream.format("disque").options(**options, **place).load()
    writer = stream.writeStream.foreachBatch(disque_delta(f"{folder}/table")).options(**place)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    query.explain(True)
    print(json.dumps([progress.json for progress in query.recentProgress]))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
