"""Lines of event logs as rows of the table of events (docs/reference/pipeline.md).

The formats that Spark reads by itself decompress ``.zst``; everything else here is expressions that
Spark compiles.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from disque_tx.events import KIND_NAMES
from disque_tx.spark.schema import CORRUPT_COLUMN, EVENTS_DDL

#: What identifies an event: the node, when it began, and the number it gave.
KEY: Final = ("node", "boot", "seq")

_NODE: Final = "^disque:[0-9a-f]{40}$"
_NUMBER: Final = "^[0-9]{1,18}[.][0-9]{1,18}$"
_OTHER_TYPES: Final = {"paused": "disque.queue.paused", "flushed": "disque.node.flushed"}
_TYPES: Final = [_OTHER_TYPES.get(kind, f"disque.job.{kind}") for kind in KIND_NAMES if kind]
_RENAMED: Final = {
    "subject": "job_id",
    "messaging.destination.name": "queue",
    "messaging.message.body.size": "size",
    "messaging.client.id": "client_id",
}
_SAME: Final = (
    *("nacks", "additional_deliveries", "wait_ms", "run_ms", "retry_s", "ttl_s", "delay_s"),
    *("replicate", "copies", "reason", "peer", "paused", "jobs", "body", "body_sha256"),
)


def parsed(spark: SparkSession, paths: list[str]) -> DataFrame:
    """Lines of these files as the columns of :data:`EVENTS_DDL`; what is no JSON in
    :data:`CORRUPT_COLUMN`. Folders named ``dt=…`` mean nothing: the lines say what day it is."""
    return (
        spark.read.schema(f"{EVENTS_DDL}, {CORRUPT_COLUMN} STRING")
        .option("columnNameOfCorruptRecord", CORRUPT_COLUMN)
        .option("recursiveFileLookup", "true")
        .json(paths)
    )


def parsed_with_text(spark: SparkSession, paths: list[str]) -> DataFrame:
    """As :func:`parsed`, with each line as it is in ``line``, and its file in ``file``."""
    options = {"columnNameOfCorruptRecord": CORRUPT_COLUMN}
    event = fn.from_json("value", f"{EVENTS_DDL}, {CORRUPT_COLUMN} STRING", options)
    lines = spark.read.option("recursiveFileLookup", "true").text(paths)
    named = lines.select("value", event.alias("event"), fn.col("_metadata.file_path").alias("file"))
    return named.where(fn.trim("value") != "").select(
        fn.col("value").alias("line"), "file", "event.*"
    )


def is_event() -> Column:
    """Whether a parsed line is an event of a node of ours."""
    answer = (
        fn.col(CORRUPT_COLUMN).isNull()
        & (fn.col("specversion") == "1.0")
        & fn.col("type").isin(_TYPES)
        & fn.col("time").isNotNull()
        & fn.col("source").rlike(_NODE)
        & fn.col("id").rlike(_NUMBER)
        & (~fn.col("type").startswith("disque.job.") | fn.col("subject").isNotNull())
    )
    return fn.coalesce(answer, fn.lit(False))


def events(lines: DataFrame) -> DataFrame:
    """The events among parsed lines, with the columns of the table and ``dt``."""
    same = [fn.col(name) for name in _SAME]
    renamed = [fn.col(f"`{old}`").alias(new) for old, new in _RENAMED.items()]
    return lines.where(is_event()).select(
        fn.substring("source", 8, 40).alias("node"),
        fn.substring_index("id", ".", 1).cast("bigint").alias("boot"),
        fn.substring_index("id", ".", -1).cast("bigint").alias("seq"),
        "time",
        fn.substring_index("type", ".", -1).alias("kind"),
        *(*renamed, *same),
        fn.to_date("time").alias("dt"),
    )


def rejected(lines: DataFrame) -> DataFrame:
    """The others: ``file``, ``reason`` (``torn``: no JSON, or values of other types; ``foreign``:
    no event of ours) and ``line``."""
    torn = fn.col(CORRUPT_COLUMN).isNotNull()
    reason = fn.when(torn, "torn").otherwise("foreign").alias("reason")
    return lines.where(~is_event()).select("file", reason, "line")
