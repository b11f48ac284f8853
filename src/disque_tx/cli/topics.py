"""``disque help``: the usage, or what a command of the server is for."""

from __future__ import annotations

import sys

import click

from disque_tx.cli.help import render
from disque_tx.cli.options import USAGE


@click.command("help")
@click.argument("words", nargs=-1)
def command(words: tuple[str, ...]) -> None:
    """Show the options and verbs; with WORDS, a command or an @group of the server."""
    click.echo(render(" ".join(words), sys.stdout.isatty()) if words else USAGE, nl=False)
