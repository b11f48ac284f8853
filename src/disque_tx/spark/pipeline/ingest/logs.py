"""Event logs: which files there are to ingest, and their lines as rows of the table of events
(docs/reference/pipeline.md).

The formats that Spark reads by itself decompress ``.zst``; everything else about lines is
expressions that Spark compiles.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs
from pyarrow import fs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from disque_tx.spark.errors import NothingToRead
from disque_tx.spark.objectstore import is_in
from disque_tx.spark.paths import for_spark, names_below, opened, resolved
from disque_tx.spark.pipeline.tables import stored
from disque_tx.spark.pipeline.tables.runs import Runs
from disque_tx.spark.pipeline.tables.table import DAY
from disque_tx.spark.schema import CORRUPT_COLUMN, EVENTS_DDL

#: What identifies an event: the node, the time of its start, and the number of the event.
KEY: Final = ("node", "boot", "seq")

_NODE: Final = "^disque:[0-9a-f]{40}$"
_NUMBER: Final = "^[0-9]{1,18}[.][0-9]{1,18}$"
#: Also of kinds that this version does not know: an audit after an upgrade may need them.
_TYPE: Final = "^disque[.][a-z][a-z0-9-]*[.][a-z][a-z0-9-]*$"
#: Between two objects on a line. In a text the quotation mark would end it, and no colon follow.
_JOINT: Final = r'(?<=\})[ \t]*(?=\{[ \t]*"[^"\\]*"[ \t]*:)'
_RENAMED: Final = {
    "subject": "job_id",
    "messaging.destination.name": "queue",
    "messaging.message.body.size": "size",
    "messaging.client.id": "client_id",
}
_SAME: Final = (
    *("nacks", "additional_deliveries", "wait_ms", "run_ms", "retry_s", "ttl_s", "delay_s"),
    *("replicate", "copies", "reason", "backoff_ms", "note", "successor", "schedule"),
    *("occurrence_s", "peer", "paused", "jobs", "body", "body_sha256"),
)
_READING: Final = {"__globPaths__": "false", "recursiveFileLookup": "true"}


def parsed(spark: SparkSession, paths: Iterable[str]) -> DataFrame:
    """Lines of these files as the columns of :data:`EVENTS_DDL`; lines that are not JSON in
    :data:`CORRUPT_COLUMN`. Folder names ``dt=…`` are ignored: the day comes from the lines."""
    paths = list(paths)
    if any(map(is_in, paths)):
        return parsed_with_text(spark, paths).drop("line", "file")
    reader = spark.read.schema(f"{EVENTS_DDL}, {CORRUPT_COLUMN} STRING").options(**_READING)
    reader = reader.option("columnNameOfCorruptRecord", CORRUPT_COLUMN)
    return reader.json([for_spark(path) for path in paths])


def parsed_with_text(spark: SparkSession, paths: Iterable[str]) -> DataFrame:
    """The lines as :func:`parsed` returns them, with each unchanged line in ``line``, and its file
    in ``file``. Several objects on a line become several lines."""
    options = {"columnNameOfCorruptRecord": CORRUPT_COLUMN}
    line = fn.explode(fn.split("value", _JOINT)).alias("line")
    named = _lines(spark, list(paths)).select(line, "file").where(fn.trim("line") != "")
    event = fn.from_json("line", f"{EVENTS_DDL}, {CORRUPT_COLUMN} STRING", options)
    return named.withColumn("event", event).select("line", "file", "event.*")


def _lines(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """The lines of files, ``value``, and the ``file`` of each."""
    local = [for_spark(path) for path in paths if not is_in(path)]
    remote = [path for path in paths if is_in(path)]
    found = stored.lines(spark, remote) if remote else None
    if not local:
        assert found is not None
        return found
    text = spark.read.options(**_READING).text(local)
    named = text.select("value", fn.col("_metadata.file_path").alias("file"))
    return named if found is None else named.unionByName(found)


def is_event() -> Column:
    """Whether a parsed line is an event of a node."""
    answer = (
        fn.col(CORRUPT_COLUMN).isNull()
        & (fn.col("specversion") == "1.0")
        & fn.col("type").rlike(_TYPE)
        & fn.col("time").isNotNull()
        & fn.col("source").rlike(_NODE)
        & fn.col("id").rlike(_NUMBER)
        & (~fn.col("type").startswith("disque.job.") | fn.col("subject").isNotNull())
    )
    return fn.coalesce(answer, fn.lit(False))


def events(lines: DataFrame) -> DataFrame:
    """The events among parsed lines, with the columns of the table and ``dt``."""
    named = [fn.col(f"`{old}`").alias(new) for old, new in _RENAMED.items()]
    return lines.where(is_event()).select(
        fn.substring("source", 8, 40).alias("node"),
        fn.substring_index("id", ".", 1).cast("bigint").alias("boot"),
        fn.substring_index("id", ".", -1).cast("bigint").alias("seq"),
        "time",
        fn.substring_index("type", ".", -1).alias("kind"),
        *named,
        *_SAME,
        fn.expr(DAY).alias("dt"),
    )


def rejected(lines: DataFrame) -> DataFrame:
    """The others: ``file``, ``reason`` (``torn``: not JSON, or values of wrong types;
    ``foreign``: not an event) and ``line``."""
    torn = fn.col(CORRUPT_COLUMN).isNotNull()
    reason = fn.when(torn, "torn").otherwise("foreign").alias("reason")
    return lines.where(~is_event()).select("file", reason, "line")


_SUFFIXES: Final = (".jsonl", ".jsonl.zst")
#: The names of files that nodes finished: the node, its start, and the number of the first event.
_NAMED: Final = re.compile(r"events-([0-9a-f]{8})-(\d{1,18})-(\d{1,18})\.jsonl\.zst")
#: Limits of a batch, which bound the cost of a failure to minutes.
_BATCH_FILES: Final = 10_000
_BATCH_BYTES: Final = 1 << 30


@attrs.frozen
class LogFile:
    """A file of a log. ``path``: resolved. ``changed_ms``: since 1970. ``begins``: node, start and
    number of its first event, if its name says so."""

    path: str
    size: int
    changed_ms: int
    begins: tuple[str, int, int] | None

    @property
    def state(self) -> list[int]:
        """What changes when the file does."""
        return [self.size, self.changed_ms]

    def is_known(self, runs: Runs) -> bool:
        """Whether its name says that it was read."""
        return self.begins is not None and runs.contains(*self.begins)


def unread(paths: Iterable[str], runs: Runs, remembered: Mapping[str, list[int]]) -> list[LogFile]:
    """Every log in these folders, and these files, that was not read in its present state: neither
    by its name, nor as one of those that were ``remembered``. Names that begin with ``_`` or ``.``
    are unfinished files, and ignored.

    :raises NothingToRead: when a path does not exist.
    """
    found = {log.path: log for path in paths for log in _unread(resolved(path), runs)}
    logs = (found[path] for path in sorted(found))
    return [log for log in logs if not log.is_known(runs) and remembered.get(log.path) != log.state]


def unfinished(paths: Iterable[str]) -> int:
    """How many segments nodes have left in these folders, on a disk, to be finished when they run
    again."""
    folders = [resolved(path) for path in paths]
    return sum(
        len(glob.glob(f"{glob.escape(folder)}/{below}_full-*.events"))
        for folder in folders
        for below in ("", "*/")
    )


def _unread(path: str, runs: Runs) -> Iterator[LogFile]:
    system, place = opened(path)
    info = system.get_file_info(place)
    if info.type == fs.FileType.NotFound:
        raise NothingToRead(f"{path} does not exist. Name folders or files of event logs.")
    if info.type == fs.FileType.File:
        yield _log_file(path, info)
        return
    names = [
        name
        for name in names_below(path)
        if name.endswith(_SUFFIXES) and not ((begins := _begins(name)) and runs.contains(*begins))
    ]
    infos = system.get_file_info([f"{place}/{name}" for name in names])
    for name, info in zip(names, infos, strict=True):
        yield _log_file(f"{path}/{name}", info)


def _log_file(path: str, info: fs.FileInfo) -> LogFile:
    return LogFile(path, info.size or 0, (info.mtime_ns or 0) // 1_000_000, _begins(path))


def _begins(path: str) -> tuple[str, int, int] | None:
    match = _NAMED.fullmatch(path, path.rfind("/") + 1)
    return (match[1], int(match[2]), int(match[3])) if match else None


def batches(logs: Iterable[LogFile]) -> Iterator[list[LogFile]]:
    """Files that are ingested together."""
    batch: list[LogFile] = []
    size = 0
    for log in logs:
        if batch and (len(batch) == _BATCH_FILES or size + log.size > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(log)
        size += log.size
    if batch:
        yield batch
