"""Output of verbs: tables, drawn for people and tab-separated for programs, and progress bars on
the error output, if that is a terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
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
        # In a plain str, rich would interpret markup.
        table.add_row(*(Text(cell, overflow="fold") for cell in row))
    return table


#: The option for :func:`csv`.
as_csv = click.option("--csv", "as_csv", is_flag=True, help="Comma separated, with a header.")


def csv(columns: Iterable[object], rows: Iterable[Iterable[object]], header: bool = True) -> None:
    """Print rows as CSV (RFC 4180); ``None`` is an empty cell."""
    import csv as standard
    from io import StringIO

    text = StringIO()
    writer = standard.writer(text, lineterminator="\n")
    if header:
        writer.writerow(columns)
    writer.writerows(["" if value is None else value for value in row] for row in rows)
    # Names need not be UTF-8.
    click.echo(text.getvalue().encode("utf-8", "surrogateescape"), nl=False)


def document(value: object) -> None:
    """Print a value as a line of JSON, which has no infinite numbers: these are null."""
    import json

    click.echo(json.dumps(_finite(value), allow_nan=False))


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(member) for member in value]
    return value


def show(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, drawn on a terminal, and elsewhere with tabs."""
    if sys.stdout.isatty():
        from rich.console import Console

        Console().print(drawn(columns, rows))
        return
    click.echo("\t".join(columns))
    for row in rows:
        click.echo("\t".join(row))


@contextmanager
def progress(label: str, total: int | None, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """A progress bar. Yields a function to call with the number of steps just done. ``total``:
    ``None`` if unknown."""
    if not shown or not sys.stderr.isatty():
        yield _nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=total)
        yield lambda steps: bar.advance(task, steps)


class Bar:
    """A progress bar whose total changes, shown within a ``with`` block. Call it with how many
    steps are done, and how many are left."""

    def __init__(self) -> None:
        self._advance: Callable[[int, int], None] = lambda done, left: None
        self._open = ExitStack()

    def __enter__(self) -> Bar:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
            )

            columns = (TextColumn("moving"), BarColumn(), MofNCompleteColumn())
            console = Console(stderr=True)
            shown = Progress(*columns, TimeRemainingColumn(), console=console)
            bar = self._open.enter_context(shown)
            task = bar.add_task("moving", total=None)
            self._advance = lambda done, left: bar.update(task, completed=done, total=done + left)
        return self

    def __exit__(self, *why: object) -> None:
        self._open.close()

    def __call__(self, done: int, left: int) -> None:
        self._advance(done, left)


def _nothing(steps: int) -> None:
    """Ignore progress: there is no terminal."""
