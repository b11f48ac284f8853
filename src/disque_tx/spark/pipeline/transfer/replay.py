"""``disque-pipeline replay``: jobs from history back into their queues, each once.

History is a table of events, which contains bodies if the nodes logged with ``eventlog-body yes``,
or a table that ``export`` made of append only files. A replayed job has a new ID; a ledger holds
the old ones, so that no job is replayed twice::

    LEDGER/
      run-<unique name>/*.parquet     the IDs of the jobs of a replay that succeeded
      _open-<unique name>/*.parquet   those of one that is running, or failed, or was killed

After a replay that did not succeed it is not known whether its jobs are in the queues: they become
visible in one step, and the ledger is written before and after it. So the next replay asks, rather
than losing or duplicating jobs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import attrs
import click
from pyarrow import fs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from disque_tx.spark.errors import BadPath, BadTable, NothingToRead, PipelineError
from disque_tx.spark.objectstore import is_in
from disque_tx.spark.paths import exists, for_spark, opened, resolved
from disque_tx.spark.pipeline import wording
from disque_tx.spark.pipeline.lifecycle.jobs import Extent, jobs
from disque_tx.spark.pipeline.tables.deltalog import DeltaLog
from disque_tx.spark.pipeline.tables.events import EVENTS, is_former, is_table
from disque_tx.spark.pipeline.tables.table import EventTable, Table
from disque_tx.spark.pipeline.transfer.export import EXPORTED
from disque_tx.spark.pipeline.transfer.target import (
    TransferTarget,
    asking_options,
    confirmed,
    target_options,
)

if TYPE_CHECKING:
    from disque_tx.spark.pipeline.engines.runner import PipelineRunner

_DONE: Final = "run-"
_OPEN: Final = "_open-"
#: Names of its own: only these are ever removed, whatever else is in the folder.
_NAME: Final = re.compile("(run-|_open-)[0-9a-f]{32}")
#: What to do about replays that did not succeed.
CHOICES: Final = ("stop", "skip", "again")


class Unfinished(PipelineError):
    """The outcome of an earlier replay is not known."""


class Ledger:
    """The ledger in a folder of a disk, which need not exist.

    :raises BadPath: when it is in an object store.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self.root = resolved(path)
        if is_in(self.root):
            raise BadPath(
                f"A ledger cannot lie in {self.root}: it records a replay by renaming a folder,"
                " which an object store cannot. Name a folder on a disk with --ledger."
            )
        self._system, self._place = opened(self.root)

    def known(self) -> DataFrame:
        """The column ``job_id``: the jobs that were replayed, each once."""
        runs = [for_spark(f"{self.root}/{name}") for name in self._named(_DONE)]
        if not runs:
            return self._spark.createDataFrame([], "job_id STRING")
        return self._spark.read.schema("job_id STRING").parquet(*runs).distinct()

    def decide_unfinished(self, choice: str) -> None:
        """Decide about replays that did not succeed: ``skip``: their jobs count as replayed;
        ``again``: they do not.

        :raises Unfinished: for ``stop``, if there is one.
        """
        for name in self._named(_OPEN):
            if choice == "stop":
                raise Unfinished(
                    f"An earlier replay is running, failed or was killed; see {self.root}/{name}."
                    " If its jobs are in their queues, add --unfinished skip; if they are not, add"
                    " --unfinished again."
                )
            if choice == "skip":
                self.finish(name)
            else:
                self._system.delete_dir(f"{self._place}/{name}")

    def begin(self, jobs: DataFrame) -> str:
        """Record that jobs are about to be added, by their ``job_id``; returns a name."""
        name = f"{_OPEN}{uuid4().hex}"
        jobs.select("job_id").write.parquet(for_spark(f"{self.root}/{name}"))
        return name

    def finish(self, name: str) -> None:
        """Record that they were added."""
        done = name.replace(_OPEN, _DONE, 1)
        self._system.move(f"{self._place}/{name}", f"{self._place}/{done}")

    def _named(self, prefix: str) -> list[str]:
        folder = fs.FileSelector(self._place, allow_not_found=True)
        names = (info.base_name for info in self._system.get_file_info(folder))
        return [name for name in names if _NAME.fullmatch(name) and name.startswith(prefix)]


class NoBodies(PipelineError):
    """The jobs are known, but their bodies are not."""


@attrs.frozen
class Chosen:
    """What a replay found. ``jobs``: those to be added, with the columns of the sink and
    ``job_id``. ``known``: jobs that were replayed before. ``bodiless``: jobs without a body in the
    history."""

    jobs: DataFrame
    count: int
    known: int
    bodiless: int
    bytes: int

    def summary(self) -> Iterator[str]:
        """What would be added.

        :raises NoBodies: when jobs were found, and no body of any of them.
        """
        if self.bodiless and not self.count and not self.known:
            raise NoBodies(
                f"{wording.counted(self.bodiless, 'job')} found, and the event logs contain no body"
                " of any. Nodes log those of new jobs with eventlog-body yes. An append only file"
                " may still have the jobs: see 'disque-pipeline export'."
            )
        size = wording.size(self.bytes)
        yield f"{wording.counted(self.count, 'job')} to replay, {size} of bodies."
        if self.known:
            yield f"{wording.counted(self.known, 'job')} replayed before, and left out."
        if self.bodiless:
            bodiless = wording.counted(self.bodiless, "job")
            yield f"{bodiless} without a body in the event logs, and left out."


def history(spark: SparkSession, table: str) -> DataFrame:
    """The jobs of a table: ``job_id``, ``queue``, ``body``, ``retry_s``, ``ttl_s``, and columns
    for conditions: for events the columns of the table ``jobs`` of ``lifecycle``,
    for append only files those of the format ``disque_aof``.

    :raises NothingToRead: when there is no table.
    :raises BadTable: when it is of neither kind.
    """
    root = resolved(table)
    if not exists(root):
        raise NothingToRead(f"{root} does not exist. Use a table of events or of exported jobs.")
    what = DeltaLog(root).what if is_table(root) else EVENTS if is_former(root) else ""
    if what == EVENTS:
        return _from_events(EventTable(spark, root).events())
    if what != EXPORTED:
        raise BadTable(
            f"{root} is neither a table of events, as 'disque-pipeline ingest' makes them, nor of"
            " jobs, as 'disque-pipeline export' does."
        )
    ttl_s = fn.lit(None).cast("bigint")
    exported = Table(spark, root).rows()
    return exported.withColumnRenamed("id", "job_id").withColumn("ttl_s", ttl_s)


def _from_events(events: DataFrame) -> DataFrame:
    """Bodies are Base64 there; an invalid one counts as missing."""
    added = events.where("kind = 'added' AND body IS NOT NULL").groupBy("job_id")
    bodies = added.agg(fn.try_to_binary(fn.max("body"), fn.lit("base64")).alias("body"))
    return jobs(events, Extent.of(events)).join(bodies, "job_id", "left")


@contextmanager
def chosen(
    spark: SparkSession, table: str, where: str, ledger: Ledger, queue: str | None = None
) -> Iterator[Chosen]:
    """The jobs of a table for which the condition ``where``, in SQL, holds. ``queue``: for all of
    them; ``None``: their own queues.

    :raises NothingToRead, BadTable: see :func:`history`.
    """
    matching = history(spark, table).where(where).dropDuplicates(["job_id"])
    known = ledger.known().withColumn("replayed", fn.lit(True))
    found = matching.join(known, "job_id", "left").persist()
    try:
        is_new, has_body = fn.col("replayed").isNull(), fn.col("body").isNotNull()
        fresh = is_new & has_body
        sums = found.agg(
            fn.count_if(fresh).alias("count"),
            fn.count_if(~is_new).alias("known"),
            fn.count_if(is_new & ~has_body).alias("bodiless"),
            fn.coalesce(fn.sum(fn.when(fresh, fn.octet_length("body"))), fn.lit(0)).alias("bytes"),
        )
        yield Chosen(found.where(fresh).select(*_columns(queue)), **sums.collect()[0].asDict())
    finally:
        found.unpersist()


def _columns(queue: str | None) -> list[Column]:
    """The columns of the sink, and the ID."""
    name = fn.col("queue") if queue is None else fn.lit(queue)
    retry, ttl = fn.col("retry_s").alias("retry"), fn.col("ttl_s").alias("ttl")
    return [fn.col("job_id"), name.alias("queue"), fn.col("body"), retry, ttl]


def replay(found: Chosen, target: TransferTarget, ledger: Ledger) -> None:
    """Add the jobs, all or none, and record them. RETRY and TTL of the target override those of the
    jobs.

    :raises NotWritten: when they cannot be added.
    """
    overridden = [name for name in ("retry", "ttl") if name in target.options]
    name = ledger.begin(found.jobs)
    target.write(found.jobs.drop("job_id", *overridden))
    ledger.finish(name)


@click.command("replay")
@click.argument("table")
@click.option("--where", required=True, help="Which jobs, in SQL: \"outcome = 'expired'\".")
@click.option("--queue", help="A queue for all of them; by default the queue of each.")
@click.option(
    "--ledger", "path", help="A folder to record replayed jobs in; by default in the table."
)
@click.option(
    "--unfinished",
    type=click.Choice(CHOICES),
    default=CHOICES[0],
    show_default=True,
    help="If an earlier replay did not succeed: stop, skip its jobs, or add them again.",
)
@target_options
@asking_options
@click.pass_context
def replay_command(
    context: click.Context,
    /,
    table: str,
    where: str,
    queue: str | None,
    path: str | None,
    unfinished: str,
    dry_run: bool,
    yes: bool,
    **words: Any,
) -> None:
    """Add jobs from history to their queues again, each once.

    TABLE is a table of events, made by ingest, or of jobs, made by export. RETRY and TTL are those
    that the jobs had, as far as they are known, unless --retry or --ttl is given.
    """
    runner: PipelineRunner = context.obj
    with runner.spark() as spark:
        target = TransferTarget.from_options(**words)
        ledger = Ledger(spark, path or f"{table.rstrip('/')}/_replayed")
        if not dry_run:
            ledger.decide_unfinished(unfinished)
        found = context.with_resource(chosen(spark, table, where, ledger, queue))
        lines = list(found.summary())
    if confirmed(lines, found.count, target, dry_run, yes):
        with runner.spark():
            replay(found, target, ledger)
        click.echo(f"{wording.counted(found.count, 'job')} added.")
