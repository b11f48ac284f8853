"""``disque help``: the usage, or help on a verb or a command of the server."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from disque_tx.cli.help import render
from disque_tx.cli.verbs.base.registry import USAGE, VERBS


@click.command("help")
@click.argument("words", nargs=-1)
def command(words: tuple[str, ...]) -> None:
    """Show the options and verbs; with WORDS, a verb, or a command or an @group of the server.

    Verbs are in lower case: help cluster is about the verb, help CLUSTER about the server's
    commands.
    """
    if not words:
        click.echo(USAGE, nl=False)
        return
    verb = VERBS.get(words[0])
    if verb is None or len(words) > 2:
        click.echo(render(" ".join(words), sys.stdout.isatty()), nl=False)
        return
    _explain(import_module(verb.module).command, words)


def _explain(command: click.Command, words: tuple[str, ...]) -> None:
    """What ``--help`` shows."""
    context = click.Context(command, info_name=f"disque {words[0]}")
    for word in words[1:]:
        found = command.get_command(context, word) if isinstance(command, click.Group) else None
        if found is None:
            # Such as cluster nodes, which is the server's.
            click.echo(render(" ".join(words), sys.stdout.isatty()), nl=False)
            return
        command = found
        context = click.Context(command, parent=context, info_name=word)
    click.echo(command.get_help(context))
