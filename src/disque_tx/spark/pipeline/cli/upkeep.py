"""The commands that keep a table small, fast, and free of what must not be in it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import attrs
import click

from disque_tx.spark.paths import as_utf8
from disque_tx.spark.pipeline.engines.runner import errors_shown
from disque_tx.spark.pipeline.tables.events import EventTableLog
from disque_tx.spark.pipeline.tables.upkeep import KEPT_HOURS, expire, forget, optimize, vacuum
from disque_tx.text.counts import counted

if TYPE_CHECKING:
    from disque_tx.spark.pipeline.engines.runner import PipelineRunner

_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
_LEFT_SHOWN = 20


@click.command("optimize")
@click.argument("table")
@click.option("--all", "again", is_flag=True, help="Also days that were optimized before.")
@_json
def optimize_command(table: str, again: bool, as_json: bool) -> None:
    """Merge small files, and put the events of a job into few files.

    'ingest' merges files by itself when a day has many. The events do not change.
    """
    with errors_shown():
        done = optimize(table, again)
    if as_json:
        click.echo(json.dumps(attrs.asdict(done)))
    else:
        click.echo(
            f"{counted(done.merged, 'file')} became {done.new}; the table has {done.files} now."
        )


@click.command("vacuum")
@click.argument("table")
@click.option(
    "--keep",
    "keep_hours",
    type=click.IntRange(0, 87_600),
    default=KEPT_HOURS,
    show_default=True,
    help="Hours for which files that left the table stay. No ingest or reader may take longer.",
)
def vacuum_command(table: str, keep_hours: int) -> None:
    """Remove files that left the table, or that a killed program left behind.

    Versions of the table that had them can no longer be read.
    """
    with errors_shown():
        click.echo(f"{counted(vacuum(table, keep_hours), 'file')} removed.")


@click.command("expire")
@click.argument("table")
@click.option("--before", required=True, type=click.DateTime(["%Y-%m-%d"]), help="A day, in UTC.")
def expire_command(table: str, before: datetime) -> None:
    """Delete the events of all days before one. Their files are removed by 'vacuum'."""
    with errors_shown():
        click.echo(f"{counted(expire(table, before.date()), 'event')} deleted.")


@click.command("forget")
@click.argument("table")
@click.option("--queue", help="The queue whose events are deleted.")
@click.option("--job", help="The ID of the job whose events are deleted.")
@_json
@click.pass_context
def forget_command(
    context: click.Context, table: str, queue: str | None, job: str | None, as_json: bool
) -> None:
    """Delete the events of a queue or of a job, and all files that have them.

    Exit status 1 if there may be some in a file that could not be removed. No earlier version of
    the table can be read afterwards, and no ingest brings the events back.
    """
    if not (queue or job):
        raise click.UsageError("Name a --queue, a --job, or both.")
    with errors_shown():
        done = forget(table, queue and as_utf8(queue), job and as_utf8(job))
    if as_json:
        click.echo(json.dumps(attrs.asdict(done)))
    else:
        click.echo(
            f"{counted(done.events, 'event')} deleted, and {counted(done.removed, 'file')} removed;"
            f" the table has {counted(done.files, 'file')} without them."
        )
        for name in done.left[:_LEFT_SHOWN]:
            click.echo(f"This file is newer, and was left: {name}")
    context.exit(1 if done.left else 0)


@click.command("history")
@click.argument("table")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@_json
def history_command(table: str, limit: int, as_json: bool) -> None:
    """Show the versions of a table, the newest first, for --as-of of other commands."""
    with errors_shown():
        commits = EventTableLog(table).log.history(limit)
    for commit in commits:
        shown = {name: commit[name] for name in ("version", "timestamp", "operation")}
        click.echo(json.dumps(shown) if as_json else _line(shown))


def _line(commit: dict[str, Any]) -> str:
    at = datetime.fromtimestamp(commit["timestamp"] / 1000, UTC)
    return f"{commit['version']:>8}  {at:%Y-%m-%dT%H:%M:%S.%fZ}  {commit['operation']}"


@click.command("convert")
@click.argument("table")
@click.option("--remove", is_flag=True, help="Remove the former table afterwards.")
@click.pass_obj
def convert_command(runner: PipelineRunner, table: str, remove: bool) -> None:
    """Make a Delta table of a table of an earlier version, in the same folder.

    No event is written again. Until --remove, the earlier version can read its table.
    """
    from disque_tx.spark.pipeline.transfer.former import convert

    with runner.spark() as spark:
        done = convert(spark, table, remove)
    end = "The former table was removed." if done.removed else "The former table is still there."
    click.echo(
        f"{counted(done.events, 'event')} in {counted(done.files, 'file')}, as many as before."
        f" {end}"
    )
