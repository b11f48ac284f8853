"""Progress bars, on the error output, and only where somebody sees them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def progress(label: str, total: int | None, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """Yield what to call with the number of steps just done. ``total``: ``None`` if unknown."""
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
    """A bar whose total changes, shown within a ``with``. Called with how many steps are done, and
    how many are left."""

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
    """Nobody looks."""
