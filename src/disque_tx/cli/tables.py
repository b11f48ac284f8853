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

    table = Table(*columns)
    for row in rows:
        # Text is taken as it is; in a plain str, rich would obey markup.
        table.add_row(*(Text(cell, overflow="fold") for cell in row))
    return table


def show(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print it, drawn on a terminal, and elsewhere with tabs."""
    if sys.stdout.isatty():
        from rich.console import Console

        Console().print(drawn(columns, rows))
        return
    click.echo("\t".join(columns))
    for row in rows:
        click.echo("\t".join(row))
