"""The commands that every engine has: ``ingest``, ``lifecycle`` and ``audit``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import attrs
import click

from disque_tx.spark.pipeline.lifecycle.verdicts import VIOLATED, Audit
from disque_tx.text.counts import counted

if TYPE_CHECKING:
    from disque_tx.spark.pipeline.engines.runner import PipelineRunner
    from disque_tx.spark.pipeline.ingest.batches import IngestReport

_WINDOW_S_MAX: Final = 86_400
_MISSING_SHOWN: Final = 20
_VERSION_DIGITS_MAX: Final = 18


@click.command("ingest")
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
    with runner.engine() as engine:
        report = engine.ingest(events, table)
    if as_json:
        click.echo(json.dumps(attrs.asdict(report)))
    else:
        _print_ingest(report)


def _print_ingest(report: IngestReport) -> None:
    click.echo(
        f"{counted(report.files, 'new file')}: {counted(report.events, 'event')}, {report.new} of"
        f" them new, {report.duplicates} known already; {counted(report.rejected, 'line')}"
        " rejected."
    )
    for path, why in report.refused.items():
        click.echo(f"This file was left out: {path}: {why}")
    if report.unfinished:
        click.echo(
            f"{counted(report.unfinished, 'segment')} not finished yet. A node that runs does that"
            " in seconds, and one that was stopped when it is started: then ingest again."
        )
    missing = {node: count for node, count in report.missing.items() if count}
    for node in sorted(missing)[:_MISSING_SHOWN]:
        click.echo(f"Node {node}: {counted(missing[node], 'event')} missing from the logs.")
    if len(missing) > _MISSING_SHOWN:
        more = counted(len(missing) - _MISSING_SHOWN, "more node")
        click.echo(f"The same applies to {more}; see --json.")


def _as_of(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> int | str | None:
    if value is None or not value.isdecimal():
        return value
    if len(value) > _VERSION_DIGITS_MAX:
        raise click.BadParameter(f"no table has a version of {len(value)} digits.")
    return int(value)


as_of_option = click.option(
    "--as-of",
    callback=_as_of,
    metavar="VERSION|TIME",
    help="The table as it was: a version of 'history', or a time in ISO 8601.",
)


@click.command("lifecycle")
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
    with runner.engine() as engine:
        made = engine.lifecycle(table, out, **words)
    click.echo(made.how, err=True)
    for path in made.paths.values():
        click.echo(path)


@click.command("audit")
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
    with runner.engine() as engine:
        found = engine.audit(table, **words)
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
    yield f"{counted(found.jobs, 'job')}."
    for (check, verdict), count in sorted(found.counts.items()):
        why = "" if verdict == VIOLATED else ", because events are missing"
        yield f"{check}: {verdict}{why}: {counted(count, 'job')}"
        for suspect in found.suspects:
            if (suspect.check, suspect.verdict) == (check, verdict):
                yield f"  {suspect.job_id}  {suspect.queue or '?'}"
    if not found.counts:
        yield "No violations were found."
