"""``disque-pipeline stream``: queues into a Delta table, by a query of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from disque_tx.spark.errors import BadOption
from disque_tx.spark.foreach import disque_delta
from disque_tx.spark.objectstore import is_in
from disque_tx.spark.paths import for_spark, resolved
from disque_tx.spark.pipeline.transfer.target import connection, connection_options

if TYPE_CHECKING:
    from disque_tx.spark.pipeline.engines.runner import PipelineRunner

#: In the folder of the table; programs that read Delta tables ignore it.
_CHECKPOINT = "_checkpoint"
#: No body goes through Java, so that to compile better costs it more than it would save.
JAVA: Final = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def started(
    spark: SparkSession, table: str, options: dict[str, str], follow: bool, every_s: float
) -> StreamingQuery:
    """Start the query. ``options``: of the source; without checkpointLocation, the checkpoint lies
    in the folder of the table. ``follow``: not only the jobs that are queued now.

    :raises BadOption: when the table is in an object store, and there is no checkpointLocation.
    """
    root = resolved(table)
    if is_in(root) and "checkpointLocation" not in options:
        raise BadOption(
            f"The state of a query into {root} cannot lie in there. Name a folder on a disk that"
            " the next run has, too, with --checkpoint."
        )
    mine = {"checkpointLocation": f"{for_spark(root)}/{_CHECKPOINT}", "deltaTable": root}
    options = {**mine, **options}
    writer = (
        spark.readStream.format("disque")
        .options(**options)
        .load()
        .writeStream.foreachBatch(disque_delta(table))
        .option("checkpointLocation", options["checkpointLocation"])
    )
    if follow:
        return writer.trigger(processingTime=f"{every_s} seconds").start()
    return writer.trigger(availableNow=True).start()


@click.command("stream")
@click.argument("queues", nargs=-1, required=True)
@click.option("--into", "table", required=True, help="The table; created if it does not exist.")
@click.option("--checkpoint", help="A folder for the query's state; by default in the table's.")
@click.option("--follow", is_flag=True, help="Go on until Ctrl-C, not only until all are stored.")
@click.option("--every", "every_s", type=float, default=10.0, help="With --follow: seconds.")
@connection_options
@click.pass_obj
def stream_command(
    runner: PipelineRunner,
    /,
    queues: tuple[str, ...],
    table: str,
    checkpoint: str | None,
    follow: bool,
    every_s: float,
    servers: str,
    **words: Any,
) -> None:
    """Store the jobs of queues in a Delta table, each once, and acknowledge them.

    With one Spark for many machines; 'drain' is faster on one.
    """
    options = {"disque.servers": servers, "subscribe": ",".join(queues), **connection(**words)}
    if checkpoint is not None:
        options["checkpointLocation"] = for_spark(resolved(checkpoint))
    with runner.spark(JAVA) as spark:
        query = started(spark, table, options, follow, every_s)
        try:
            query.awaitTermination()
        except KeyboardInterrupt:
            query.stop()
