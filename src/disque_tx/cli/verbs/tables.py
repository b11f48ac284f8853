"""Tables: drawn for people, tab-separated for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.table import Table


def drawn(columns: Iterable[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table for a terminal."""
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        # Text is taken as it is; in a plain str, rich would obey markup.
        table.add_row(*(Text(cell, overflow="fold") for cell in row))
    return table


#: The option for :func:`csv`.
as_csv = click.option("--csv", "as_csv", is_flag=True, help="Comma separated, with a header.")


def csv(columns: Iterable[object], rows: Iterable[Iterable[object]], header: bool = True) -> None:
    """Print it comma separated, as RFC 4180 has it; nothing is ``None``."""
    import csv as standard
    from io import StringIO

    text = StringIO()
    writer = standard.writer(text, lineterminator="\n")
    if header:
        writer.writerow(columns)
    writer.writerows(["" if value is None else value for value in row] for row in rows)
    # Names need not be UTF-8.
    click.echo(text.getvalue().encode("utf-8", "surrogateescape"), nl=False)


def show(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print it, drawn on a terminal, and elsewhere with tabs."""
    if sys.stdout.isatty():
        from rich.console import Console

        Console().print(drawn(columns, rows))
        return
    click.echo("\t".join(columns))
    for row in rows:
        click.echo("\t".join(row))
