"""The command ``report``, which needs DuckDB and no other engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from disque_tx.errors import DisqueError
from disque_tx.spark.pipeline.engines.runner import duckdb_needed, errors_shown

if TYPE_CHECKING:
    from disque_tx.spark.pipeline.report import ReportScope

_Value = TypeVar("_Value")


@click.command("report")
@click.argument("out")
@click.option(
    "--html",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write, on this machine.",
)
@click.option("--events", help="The table of events that OUT was made from; it is audited, too.")
@click.option(
    "--top",
    type=click.IntRange(1, 200),
    default=20,
    show_default=True,
    help="How many queues, and findings of each kind, to show.",
)
@click.option("--last", metavar="SPAN", help="Only the last 24h or 7d of what is in the tables.")
@click.option(
    "--against",
    metavar="SPAN",
    help="Compare with the same period, earlier by this; --last is as long if it is not given.",
)
@click.option(
    "--slo",
    "slos",
    multiple=True,
    metavar="PATTERN:99%:30s",
    help="An objective: which share of the jobs of queues like PATTERN is delivered within which"
    " time. May be repeated.",
)
@click.option(
    "--tenant",
    "tenants",
    multiple=True,
    metavar="NAME=PATTERN",
    help="Figures of the queues like PATTERN as those of NAME. May be repeated, also with the same"
    " NAME; the first pattern counts.",
)
def report_command(out: str, html: Path, events: str | None, top: int, **words: Any) -> None:
    """Make a page with plots from the tables that lifecycle wrote to OUT."""
    with duckdb_needed("report"):
        from disque_tx.spark.pipeline.report import report
    asked = _asked(**words)
    with errors_shown():
        report(out, html, events, top, asked)
    click.echo(str(html))


def _asked(
    last: str | None, against: str | None, slos: tuple[str, ...], tenants: tuple[str, ...]
) -> ReportScope:
    """What the options ask for.

    :raises click.BadParameter: when one of them cannot be understood.
    """
    from disque_tx.spark.pipeline.report import ReportScope
    from disque_tx.spark.pipeline.report.slo import Slo
    from disque_tx.spark.pipeline.report.spans import span_ms
    from disque_tx.spark.pipeline.report.tenants import tenant

    return ReportScope(
        last_ms=None if last is None else _read("--last", span_ms, last),
        against_ms=None if against is None else _read("--against", span_ms, against),
        tenants=tuple(_read("--tenant", tenant, word) for word in tenants),
        slos=tuple(_read("--slo", Slo.of, word) for word in slos),
    )


def _read(option: str, read: Callable[[str], _Value], word: str) -> _Value:
    """A word of an option as a value."""
    try:
        return read(word)
    except DisqueError as error:
        raise click.BadParameter(str(error), param_hint=option) from error
