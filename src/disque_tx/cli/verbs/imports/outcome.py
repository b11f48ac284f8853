"""What an import did, and what it left where it was."""

from __future__ import annotations

from collections.abc import Callable

import click

from disque_tx.client.errors import printable
from disque_tx.errors import DisqueError
from disque_tx.text.counts import counted


class SourceFailed(DisqueError):
    """The other queue cannot be read, or answers what it should not; the text says why."""


class ImportOutcome:
    """``moved``: how many jobs were moved, or with ``dry_run`` would be. ``again``: how many of
    them an earlier import that was interrupted may have moved before. ``left``: how many stay, each
    shown with the reason; ``advance``: called for each job that was looked at."""

    def __init__(self, dry_run: bool, advance: Callable[[int], None]) -> None:
        self.dry_run = dry_run
        self.moved = 0
        self.again = 0
        self.left = 0
        self._advance = advance

    def add(self, again: bool = False) -> None:
        """A job was moved."""
        self.moved += 1
        self.again += again
        self._advance(1)

    def leave(self, place: str, what: str, reason: str, count: int = 1) -> None:
        """Jobs stay in ``place``."""
        self.left += count
        click.echo("\t".join(("left", *map(printable, (place, what, reason)))))

    def report(self) -> None:
        """Print the figures."""
        verb = "would be moved" if self.dry_run else "moved"
        click.echo(f"{counted(self.moved, 'job')} {verb}, {self.left} left", err=True)
        if self.again:
            click.echo(
                f"{self.again} of them had been begun by an import that was interrupted, and may be"
                " here twice",
                err=True,
            )
