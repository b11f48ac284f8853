"""``disque-pipeline``: one group of commands, most of them defined in other packages."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs
import click

from disque_tx.spark.pipeline.cli.upkeep import (
    convert_command,
    expire_command,
    forget_command,
    history_command,
    optimize_command,
    vacuum_command,
)
from disque_tx.spark.pipeline.ingest.ingestion import IngestReport, ingest
from disque_tx.spark.pipeline.lifecycle.audit import VIOLATED, Audit, audit
from disque_tx.spark.pipeline.lifecycle.results import lifecycle
from disque_tx.spark.pipeline.report.page import report_command
from disque_tx.spark.pipeline.runner import PipelineRunner
from disque_tx.spark.pipeline.transfer.drain import drain_command
from disque_tx.spark.pipeline.transfer.export import export_command
from disque_tx.spark.pipeline.transfer.load import load_command
from disque_tx.spark.pipeline.transfer.replay import replay_command
from disque_tx.spark.pipeline.transfer.streaming import stream_command

_WINDOW_S_MAX: Final = 86_400
_MISSING_SHOWN: Final = 20


@click.group(name="disque-pipeline", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--master", help="Where Spark runs; by default as spark-submit says, or local[*].")
@click.option("--conf", "conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark.")
@click.option(
    "--progress/--no-progress",
    default=None,
    help="Progress bars on stderr; by default on terminals.",
)
@click.pass_context
def command(
    context: click.Context, master: str | None, conf: tuple[str, ...], progress: bool | None
) -> None:
    """Find out what happened to jobs, from the event logs of many nodes."""
    context.obj = PipelineRunner(master or _submitted_or("local[*]"), _settings(conf), progress)


def _submitted_or(master: str) -> str | None:
    """``None`` where ``spark-submit`` chose a master."""
    return None if "PYSPARK_GATEWAY_PORT" in os.environ else master


def _settings(words: Iterable[str]) -> dict[str, str]:
    settings = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise click.UsageError(f"--conf {word!r} is not KEY=VALUE.")
        settings[key] = value
    return settings


@command.command("ingest")
@click.argument("events", nargs=-1, required=True)
@click.option("--into", "table", required=True, help="The table; created if it does not exist.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_obj
def ingest_command(
    runner: PipelineRunner, events: tuple[str, ...], table: str, as_json: bool
) -> None:
    """Add event logs to a table, each event once.

    EVENTS are folders and files, of any number of nodes. Events that are in the table already are
    skipped, so that the same folders can be ingested every hour.
    """
    with runner.spark() as spark:
        report = ingest(spark, events, table)
    if as_json:
        click.echo(json.dumps(attrs.asdict(report)))
    else:
        _print_ingest(report)


def _print_ingest(report: IngestReport) -> None:
    click.echo(
        f"{report.files} new files: {report.events} events, {report.new} of them new, "
        f"{report.duplicates} known already; {report.rejected} lines rejected."
    )
    for path, why in report.refused.items():
        click.echo(f"This file was left out: {path}: {why}")
    if report.unfinished:
        click.echo(
            f"{report.unfinished} segments are not finished yet. A node that runs finishes them in"
            " seconds, and one that was stopped when it is started: then ingest again."
        )
    missing = {node: count for node, count in report.missing.items() if count}
    for node in sorted(missing)[:_MISSING_SHOWN]:
        click.echo(f"Node {node}: {missing[node]} events are missing from the logs.")
    if len(missing) > _MISSING_SHOWN:
        click.echo(f"The same applies to {len(missing) - _MISSING_SHOWN} more nodes; see --json.")


def _as_of(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> int | str | None:
    return int(value) if value is not None and value.isdecimal() else value


as_of_option = click.option(
    "--as-of",
    callback=_as_of,
    metavar="VERSION|TIME",
    help="The table as it was: a version of 'history', or a time in ISO 8601.",
)


@command.command("lifecycle")
@click.argument("table")
@click.option("--into", "out", required=True, help="The folder for the results.")
@click.option(
    "--window",
    "window_s",
    type=click.IntRange(1, _WINDOW_S_MAX),
    default=60,
    show_default=True,
    help="Length of the time windows of OUT/queues, in seconds.",
)
@click.option(
    "--whole", is_flag=True, help="Compute all again, also results of another table or window."
)
@as_of_option
@click.pass_obj
def lifecycle_command(runner: PipelineRunner, /, table: str, out: str, **words: Any) -> None:
    """Make tables of what became of each job, and of queues and nodes over time.

    Run again, it brings the results in OUT up to date by the events that were added since.
    """
    with runner.spark() as spark:
        made = lifecycle(spark, table, out, **words)
    click.echo(made.how, err=True)
    for path in made.paths.values():
        click.echo(path)


@command.command("audit")
@click.argument("table")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True)
@click.option(
    "--skew",
    "skew_ms",
    type=click.IntRange(0, 86_400_000),
    default=1000,
    show_default=True,
    help="Milliseconds by which clocks may differ.",
)
@as_of_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def audit_command(context: click.Context, /, table: str, as_json: bool, **words: Any) -> None:
    """Find jobs for which a guarantee was violated; exit status 1 if there are any.

    --limit is how many jobs are listed per check.
    """
    runner: PipelineRunner = context.obj
    with runner.spark() as spark:
        found = audit(spark, table, **words)
    click.echo(_as_json(found) if as_json else "\n".join(_lines(found)))
    context.exit(1 if found.violated else 0)


def _as_json(found: Audit) -> str:
    counts = [
        {"check": check, "verdict": verdict, "jobs": count}
        for (check, verdict), count in sorted(found.counts.items())
    ]
    jobs = [attrs.asdict(suspect) for suspect in found.suspects]
    return json.dumps({"jobs": found.jobs, "counts": counts, "suspects": jobs})


def _lines(found: Audit) -> Iterator[str]:
    yield f"{found.jobs} jobs."
    for (check, verdict), count in sorted(found.counts.items()):
        why = "" if verdict == VIOLATED else ", because events are missing"
        yield f"{check}: {verdict}{why}: {count} jobs"
        for suspect in found.suspects:
            if (suspect.check, suspect.verdict) == (check, verdict):
                yield f"  {suspect.job_id}  {suspect.queue or '?'}"
    if not found.counts:
        yield "No violations were found."


for _command in (
    *(report_command, export_command, load_command, replay_command),
    *(optimize_command, vacuum_command, expire_command, forget_command),
    *(history_command, convert_command, stream_command, drain_command),
):
    command.add_command(_command)


def main() -> None:
    """The program ``disque-pipeline``."""
    command(prog_name="disque-pipeline")
