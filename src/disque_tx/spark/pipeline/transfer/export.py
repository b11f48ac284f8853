"""``disque-pipeline export``: the jobs in append only files as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs
import click
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from disque_tx.spark.files.folders import roots
from disque_tx.spark.paths import check_apart, resolved
from disque_tx.spark.pipeline import wording
from disque_tx.spark.pipeline.outputs import Output

if TYPE_CHECKING:
    from disque_tx.spark.pipeline.engines.runner import PipelineRunner

EXPORTED: Final = "exported jobs"
_DAMAGES_MAX: Final = 100


@attrs.frozen
class FileDamage:
    """Up to where a file was read, and why no further."""

    file: str
    offset: int
    what: str


@attrs.frozen
class Exported:
    """``files``: number of files with jobs. ``damages``: of files that could not be read to their
    ends, the first 100."""

    jobs: int
    queues: int
    files: int
    bytes: int
    damages: list[FileDamage]


def export(
    spark: SparkSession, paths: Sequence[str], into: str, overwrite: bool = False
) -> Exported:
    """Write the jobs that nodes would load from these files to the Delta table ``into``, which has
    the columns of the format ``disque_aof`` and gets its rows by one commit.

    :raises BadOption: when there is no file at a path. :raises OutputExists: when ``into`` exists
    and is not to be replaced, or holds something else. :raises OutputOverlaps: when ``into`` is one
    of the paths, in it, or around it.
    """
    target = resolved(into)
    check_apart(target, [resolved(root) for path in paths for root in roots(path)])
    output = Output(spark, target, EXPORTED)
    if not overwrite:
        output.check_new("--overwrite")
    output.write(_read(spark, paths, "jobs"))
    exported = _counted(output.written(), _damages(spark, paths))
    output.publish()
    return exported


def _read(spark: SparkSession, paths: Sequence[str], view: str) -> DataFrame:
    return spark.read.format("disque_aof").option("view", view).load(list(paths))


def _damages(spark: SparkSession, paths: Sequence[str]) -> list[FileDamage]:
    """Read with the view of records: that of jobs has rows for jobs only."""
    damaged = _read(spark, paths, "records").where("damage IS NOT NULL")
    rows = damaged.select("file", "offset", "damage").orderBy("file").head(_DAMAGES_MAX)
    return [FileDamage(row.file, row.offset, row.damage) for row in rows]


def _counted(jobs: DataFrame, damages: list[FileDamage]) -> Exported:
    sums = jobs.agg(
        fn.count("*").alias("jobs"),
        fn.count_distinct("queue").alias("queues"),
        fn.count_distinct("file").alias("files"),
        fn.coalesce(fn.sum(fn.octet_length("body")), fn.lit(0)).alias("bytes"),
    )
    return Exported(**sums.collect()[0].asDict(), damages=damages)


@click.command("export")
@click.argument("aof", nargs=-1, required=True)
@click.option("--into", "table", required=True, help="A new folder for the table.")
@click.option("--overwrite", is_flag=True, help="Replace what export wrote there before.")
@click.pass_obj
def export_command(
    runner: PipelineRunner, /, aof: tuple[str, ...], table: str, overwrite: bool
) -> None:
    """Make a table of the jobs in append only files.

    AOF are files, and folders in which all files that end with .aof are read. A damaged file is
    read up to the damage, as by a node.
    """
    with runner.spark() as spark:
        exported = export(spark, aof, table, overwrite)
    click.echo(
        f"{wording.counted(exported.jobs, 'job')} of {wording.counted(exported.queues, 'queue')}"
        f" from {wording.counted(exported.files, 'file')}, {wording.size(exported.bytes)} of"
        " bodies."
    )
    for damage in exported.damages:
        click.echo(f"{damage.file} was read up to byte {damage.offset}, where it is {damage.what}.")
