"""The command ``report``, which needs DuckDB and no other engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from disque_tx.spark.pipeline.engines.runner import duckdb_needed, errors_shown


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
def report_command(out: str, html: Path, **words: Any) -> None:
    """Make a page with plots from the tables that lifecycle wrote to OUT."""
    with duckdb_needed("report"):
        from disque_tx.spark.pipeline.report import report
    with errors_shown():
        report(out, html, **words)
    click.echo(str(html))
