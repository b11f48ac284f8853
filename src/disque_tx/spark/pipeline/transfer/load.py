"""``disque-pipeline load``: adds jobs from a table to a queue, all of them or none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import attrs
import click
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import BinaryType, StringType

from disque_tx.spark.errors import BadColumn, BadPath, NothingToRead
from disque_tx.spark.objectstore import is_in
from disque_tx.spark.paths import exists, for_spark, resolved
from disque_tx.spark.pipeline import wording
from disque_tx.spark.pipeline.tables.events import is_table
from disque_tx.spark.pipeline.tables.table import Table
from disque_tx.spark.pipeline.transfer.target import (
    TransferTarget,
    asking_options,
    confirmed,
    target_options,
)

if TYPE_CHECKING:
    from disque_tx.spark.pipeline.engines.runner import PipelineRunner

DELTA: Final = "delta"
FORMATS: Final = (DELTA, "parquet", "orc", "json")


@attrs.frozen
class Rows:
    """Rows that are to become jobs. ``jobs``: the column ``body`` alone. ``nulls``: rows without
    a body, which are skipped. ``bytes``: of all bodies."""

    jobs: DataFrame
    count: int
    nulls: int
    bytes: int

    def summary(self, queue: str) -> Iterator[str]:
        """What would be added."""
        size = wording.size(self.bytes)
        yield f"{wording.counted(self.count, 'job')} for the queue {queue!r}, {size} of bodies."
        if self.nulls:
            yield f"{wording.counted(self.nulls, 'row')} without a body, and left out."


def bodies(
    spark: SparkSession,
    table: str,
    column: str = "body",
    where: str | None = None,
    form: str | None = None,
) -> Rows:
    """The rows of a table that are to become jobs.

    ``column``: what their bodies are. ``where``: a condition in SQL. ``form``: one of
    :data:`FORMATS`; by default ``delta`` if it is such a table, and ``parquet`` otherwise.

    :raises NothingToRead: when there is no table. :raises BadPath: when it is in an object store
        and is not a Delta table.
    :raises BadColumn: when it has no such column, or one that is neither text nor binary.
    """
    root = resolved(table)
    if not exists(root):
        raise NothingToRead(f"{table} does not exist. Use the folder of a table.")
    if form == DELTA or (form is None and is_table(root)):
        rows = Table(spark, root).rows()
    elif is_in(root):
        raise BadPath(f"{root} is not a Delta table, and no other files are read from S3.")
    else:
        rows = spark.read.format(form or "parquet").load(for_spark(root))
    _check(rows, table, column)
    chosen = rows if where is None else rows.where(where)
    named = chosen.select(fn.col(f"`{column}`").alias("body"))
    sums = named.agg(
        fn.count("body").alias("count"),
        fn.count_if(fn.col("body").isNull()).alias("nulls"),
        fn.coalesce(fn.sum(fn.octet_length("body")), fn.lit(0)).alias("bytes"),
    )
    return Rows(named.where("body IS NOT NULL"), **sums.collect()[0].asDict())


def _check(rows: DataFrame, table: str, column: str) -> None:
    if column not in rows.columns:
        names = ", ".join(rows.columns[:20])
        raise BadColumn(
            f"{table} has no column {column!r}. Choose one of {names} with --body-column."
        )
    kind = rows.schema[column].dataType
    if not isinstance(kind, BinaryType | StringType):
        raise BadColumn(
            f"The column {column!r} of {table} is {kind.simpleString()}; the body of a job is text"
            " or binary. Write a table with such a column, as with to_json."
        )


@click.command("load")
@click.argument("table")
@click.option("--queue", required=True, help="The queue for all jobs.")
@click.option("--body-column", "column", default="body", show_default=True)
@click.option("--where", help="A condition in SQL for the rows; by default all.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="By default what it is.")
@target_options
@asking_options
@click.pass_obj
def load_command(
    runner: PipelineRunner,
    /,
    table: str,
    queue: str,
    column: str,
    where: str | None,
    form: str | None,
    dry_run: bool,
    yes: bool,
    **words: Any,
) -> None:
    """Add a job for each row of a table to a queue.

    No job can be fetched before all of them have been added. Loading again adds them again.
    """
    with runner.spark() as spark:
        target = TransferTarget.from_options(**words)
        rows = bodies(spark, table, column, where, form)
    # Outside, because progress bars and a question would overwrite each other.
    if confirmed(rows.summary(queue), rows.count, target, dry_run, yes):
        with runner.spark():
            target.write(rows.jobs, queue)
        click.echo(f"{wording.counted(rows.count, 'job')} added.")
