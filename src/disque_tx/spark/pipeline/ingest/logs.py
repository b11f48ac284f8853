"""Event logs: which files there are to ingest, and their lines as rows of the table of events
(docs/reference/pipeline.md).

The formats that Spark reads by itself decompress ``.zst``; everything else about lines is
expressions that Spark compiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from disque_tx.messages.events import KIND_NAMES
from disque_tx.spark.errors import NothingToRead
from disque_tx.spark.pipeline.storage import Entry, Storage
from disque_tx.spark.pipeline.tables.commits import Commit
from disque_tx.spark.schema import CORRUPT_COLUMN, EVENTS_DDL

#: What identifies an event: the node, the time of its start, and the number of the event.
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
    """Lines of these files as the columns of :data:`EVENTS_DDL`; lines that are not JSON in
    :data:`CORRUPT_COLUMN`. Folder names ``dt=…`` are ignored: the day comes from the lines."""
    return (
        spark.read.schema(f"{EVENTS_DDL}, {CORRUPT_COLUMN} STRING")
        .option("columnNameOfCorruptRecord", CORRUPT_COLUMN)
        .option("recursiveFileLookup", "true")
        .json(paths)
    )


def parsed_with_text(spark: SparkSession, paths: list[str]) -> DataFrame:
    """The lines as :func:`parsed` returns them, with each unchanged line in ``line``, and its file
    in ``file``."""
    options = {"columnNameOfCorruptRecord": CORRUPT_COLUMN}
    event = fn.from_json("value", f"{EVENTS_DDL}, {CORRUPT_COLUMN} STRING", options)
    lines = spark.read.option("recursiveFileLookup", "true").text(paths)
    named = lines.select("value", event.alias("event"), fn.col("_metadata.file_path").alias("file"))
    return named.where(fn.trim("value") != "").select(
        fn.col("value").alias("line"), "file", "event.*"
    )


def is_event() -> Column:
    """Whether a parsed line is an event of a node."""
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
    """The others: ``file``, ``reason`` (``torn``: not JSON, or values of wrong types;
    ``foreign``: not an event) and ``line``."""
    torn = fn.col(CORRUPT_COLUMN).isNotNull()
    reason = fn.when(torn, "torn").otherwise("foreign").alias("reason")
    return lines.where(~is_event()).select("file", reason, "line")


_SUFFIXES: Final = (".jsonl", ".jsonl.zst")
#: Deeper than ``dt=…/hour=…`` below a folder for each node.
_DEPTH_MAX: Final = 16
#: Limits of a batch. Its commit lists each file; the bytes limit the cost of a failure to minutes.
_BATCH_FILES: Final = 10_000
_BATCH_BYTES: Final = 1 << 30


def find(storage: Storage, paths: Iterable[str]) -> list[Entry]:
    """Every log in these folders, and these files. Names that begin with ``_`` or ``.`` are
    unfinished files, and ignored.

    :raises NothingToRead: when a path does not exist.
    """
    logs: dict[str, Entry] = {}
    for path in paths:
        entry = storage.find(path)
        if entry is None:
            raise NothingToRead(f"{path} does not exist. Name folders or files of event logs.")
        logs.update((log.path, log) for log in _below(storage, entry, _DEPTH_MAX))
    return [logs[path] for path in sorted(logs)]


def _below(storage: Storage, entry: Entry, depth: int) -> Iterator[Entry]:
    if not entry.is_folder:
        if entry.name.endswith(_SUFFIXES):
            yield entry
        return
    for child in storage.entries(entry.path) if depth else ():
        if not child.name.startswith(("_", ".")):
            yield from _below(storage, child, depth - 1)


def unread(logs: Iterable[Entry], commits: Iterable[Commit]) -> list[Entry]:
    """The log files that no batch has read in their present state."""
    known = {tuple(known) for commit in commits for known in commit.inputs}
    return [log for log in logs if (log.path, log.size, log.changed_ms) not in known]


def batches(logs: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Files that are ingested together."""
    batch: list[Entry] = []
    size = 0
    for log in logs:
        if batch and (len(batch) == _BATCH_FILES or size + log.size > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(log)
        size += log.size
    if batch:
        yield batch
