"""Lines of event logs as rows of the table of events, by Spark (docs/reference/pipeline.md).

The formats that Spark reads by itself decompress ``.zst`` from Spark 4.1 on; before, and from
object stores, this package reads the lines. Everything else about lines is expressions that Spark
compiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from disque_tx.messages.events import KIND_NAMES
from disque_tx.spark.objectstore import is_in
from disque_tx.spark.offered import decompresses_zstd
from disque_tx.spark.paths import for_spark
from disque_tx.spark.pipeline.ingest.fields import (
    JOINT,
    NODE,
    NUMBER,
    NUMBER_MAX,
    NUMBERS,
    RENAMED,
    SAME,
    TYPE,
)
from disque_tx.spark.pipeline.tables import stored
from disque_tx.spark.pipeline.tables.table import DAY
from disque_tx.spark.schema import CORRUPT_COLUMN, EVENTS_DDL

#: Known types of events, which :data:`TYPE` matches as well.
_TYPES: Final = [f"disque.job.{name}" for name in KIND_NAMES if name]
#: Nodes that are named in a query at most.
_SOURCES_MAX: Final = 1_000
_READING: Final = {"__globPaths__": "false", "recursiveFileLookup": "true"}


def parsed(spark: SparkSession, paths: Iterable[str]) -> DataFrame:
    """Lines of these files as the columns of :data:`EVENTS_DDL`; lines that are not JSON in
    :data:`CORRUPT_COLUMN`. Folder names ``dt=…`` are ignored: the day comes from the lines."""
    paths = list(paths)
    if not all(_is_for_spark(spark, path) for path in paths):
        return parsed_with_text(spark, paths).drop("line", "file")
    reader = spark.read.schema(f"{EVENTS_DDL}, {CORRUPT_COLUMN} STRING").options(**_READING)
    reader = reader.option("columnNameOfCorruptRecord", CORRUPT_COLUMN)
    return reader.json([for_spark(path) for path in paths])


def parsed_with_text(spark: SparkSession, paths: Iterable[str]) -> DataFrame:
    """The lines as :func:`parsed` returns them, with each unchanged line in ``line``, and its file
    in ``file``. Several objects on a line become several lines."""
    options = {"columnNameOfCorruptRecord": CORRUPT_COLUMN}
    line = fn.explode(fn.split("value", JOINT)).alias("line")
    named = _lines(spark, list(paths)).select(line, "file").where(fn.trim("line") != "")
    event = fn.from_json("line", f"{EVENTS_DDL}, {CORRUPT_COLUMN} STRING", options)
    return named.withColumn("event", event).select("line", "file", "event.*")


def _lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """The lines of files, ``value``, and the ``file`` of each."""
    local = [for_spark(path) for path in paths if _is_for_spark(spark, path)]
    others = [path for path in paths if not _is_for_spark(spark, path)]
    found = stored.lines(spark, others) if others else None
    if not local:
        assert found is not None
        return found
    text = spark.read.options(**_READING).text(local)
    named = text.select("value", fn.col("_metadata.file_path").alias("file"))
    return named if found is None else named.unionByName(found)


def _is_for_spark(spark: SparkSession, path: str) -> bool:
    """Whether Spark reads this file by itself."""
    return not is_in(path) and (not path.endswith(".zst") or decompresses_zstd(spark.version))


def is_event(sources: Iterable[str] = ()) -> Column:
    """Whether a parsed line is an event of a node. ``sources``: of nodes, or empty; to find a text
    among some takes less time than to match a pattern."""
    nodes = sorted({source for source in sources if source})[:_SOURCES_MAX]
    numbers = [fn.col(f"`{name}`") for name in NUMBERS]
    usual = (fn.greatest(*numbers) <= NUMBER_MAX) & (fn.least(*numbers) >= -NUMBER_MAX)
    answer = (
        fn.col(CORRUPT_COLUMN).isNull()
        & (fn.col("specversion") == "1.0")
        & (fn.col("type").isin(_TYPES) | fn.col("type").rlike(TYPE))
        & fn.col("time").isNotNull()
        & (fn.col("source").isin(nodes) | fn.col("source").rlike(NODE))
        & fn.col("id").rlike(NUMBER)
        & fn.coalesce(usual, fn.lit(True))
        & (~fn.col("type").startswith("disque.job.") | fn.col("subject").isNotNull())
    )
    return fn.coalesce(answer, fn.lit(False))


def events(lines: DataFrame, wanted: Column | None = None) -> DataFrame:
    """The events among parsed lines, with the columns of the table and ``dt``. ``wanted``: what
    :func:`is_event` found, if it is a column of the lines."""
    named = [fn.col(f"`{old}`").alias(new) for old, new in RENAMED.items()]
    return lines.where(is_event() if wanted is None else wanted).select(
        fn.substring("source", 8, 40).alias("node"),
        fn.substring_index("id", ".", 1).cast("bigint").alias("boot"),
        fn.substring_index("id", ".", -1).cast("bigint").alias("seq"),
        "time",
        fn.substring_index("type", ".", -1).alias("kind"),
        *named,
        *SAME,
        fn.expr(DAY).alias("dt"),
    )


def rejected(lines: DataFrame) -> DataFrame:
    """The others: ``file``, ``reason`` (``torn``: not JSON, or values of wrong types;
    ``foreign``: not an event) and ``line``."""
    torn = fn.col(CORRUPT_COLUMN).isNotNull()
    reason = fn.when(torn, "torn").otherwise("foreign").alias("reason")
    return lines.where(~is_event()).select("file", reason, "line")
