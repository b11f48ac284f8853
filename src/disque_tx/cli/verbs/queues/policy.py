"""``disque policy``: list, show, set and delete the policies of queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click

from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.base import output
from disque_tx.cli.verbs.base.members import Members
from disque_tx.client.blocking import Disque
from disque_tx.client.errors import printable
from disque_tx.core.policies.policies import Policies, checked_pairs
from disque_tx.text.counts import counted

#: What a change would mean for one queue: setting → values before and after, ``None`` for none.
Change = dict[str, tuple[str | None, str | None]]
_COLUMNS: Final = ("queue", "setting", "now", "then")

_json = click.option("--json", "as_json", is_flag=True, help="A JSON document per line.")
_dry = click.option(
    "--dry-run", is_flag=True, help="Change nothing; show which queues it is about, and how."
)


@click.group("policy")
def command() -> None:
    """List, show, set or delete the policies of queues: what a queue does by itself.

    A policy is settings for all queues whose names match PATTERN, such as "mail:*"; it holds on all
    nodes of the cluster. The most specific pattern that has a setting wins.
    """


@command.command("list")
@click.argument("pattern", required=False)
@_json
@output.as_csv
@click.pass_obj
def show_list(options: ClientOptions, pattern: str | None, as_json: bool, as_csv: bool) -> None:
    """List all settings of all patterns, or those of PATTERN."""
    with Members(options) as members:
        found = members.cluster().policy_list(pattern)
    rows = [
        (one, name, value) for one, settings in found.items() for name, value in settings.items()
    ]
    if as_json:
        for one, settings in found.items():
            output.document({"pattern": one, "settings": settings})
    else:
        _print(("pattern", "setting", "value"), rows, as_csv)


@command.command("get")
@click.argument("queue")
@_json
@output.as_csv
@click.pass_obj
def show_queue(options: ClientOptions, queue: str, as_json: bool, as_csv: bool) -> None:
    """Show what is in force for QUEUE, and which pattern each setting comes from."""
    with Members(options) as members:
        found = members.cluster().policy_get(queue)
    rows = [(name, one.value, one.pattern) for name, one in found.items()]
    if as_json:
        for name, value, pattern in rows:
            output.document({"setting": name, "value": value, "pattern": pattern})
    else:
        _print(("setting", "value", "pattern"), rows, as_csv)


def _print(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], as_csv: bool) -> None:
    if as_csv:
        output.csv(columns, rows)
    else:
        output.show(columns, [tuple(map(printable, row)) for row in rows])


@command.command("set")
@click.argument("pattern")
@click.argument("words", nargs=-1, required=True, metavar="SETTING VALUE [SETTING VALUE ...]")
@_dry
@_json
@click.pass_obj
def change(
    options: ClientOptions, pattern: str, words: tuple[str, ...], dry_run: bool, as_json: bool
) -> None:
    """Give PATTERN these settings, all or none of them."""
    if len(words) % 2:
        raise click.UsageError("Every setting needs a value.")
    settings = dict(zip(words[::2], words[1::2], strict=True))
    with Members(options) as members:
        client = members.cluster()
        if dry_run:
            after = _policies(client)
            for name, value in _checked(pattern, settings):
                after.set(_bytes(pattern), name, value)
            _show_changes(_changes(members, client, after), as_json)
        else:
            client.policy_set(pattern, settings)


def _checked(pattern: str, settings: dict[str, str]) -> list[tuple[bytes, bytes]]:
    pairs = [(_bytes(name), _bytes(value)) for name, value in settings.items()]
    try:
        return checked_pairs(_bytes(pattern), pairs)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


@command.command("del")
@click.argument("pattern")
@click.argument("settings", nargs=-1)
@_dry
@_json
@click.pass_obj
def delete(
    options: ClientOptions, pattern: str, settings: tuple[str, ...], dry_run: bool, as_json: bool
) -> None:
    """Take these SETTINGS from PATTERN; all of them if none is named. Prints how many went."""
    with Members(options) as members:
        client = members.cluster()
        if dry_run:
            after = _policies(client)
            names = [_bytes(name.lower()) for name in settings]
            for name in names or list(after.values(_bytes(pattern))):
                after.unset(_bytes(pattern), name)
            _show_changes(_changes(members, client, after), as_json)
        else:
            click.echo(client.policy_del(pattern, *settings))


@command.command("repair")
@click.pass_obj
def repair(options: ClientOptions) -> None:
    """Number the table of policies anew on all nodes, so that it can be changed again after a node
    has run its counters ahead. Prints how many settings it has."""
    with Members(options) as members:
        click.echo(members.cluster().policy_repair())


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _policies(client: Disque) -> Policies:
    """The policies of the cluster as they are."""
    policies = Policies()
    for pattern, settings in client.policy_list().items():
        for name, value in settings.items():
            policies.set(_bytes(pattern), _bytes(name), _bytes(value))
    return policies


def _changes(members: Members, client: Disque, after: Policies) -> dict[str, Change]:
    """What would be other for the queues that exist now, on any node."""
    before = _policies(client)
    found = members.ask(members.known(), lambda node: set(node.queue_scan()))
    for address, why in found.silent.items():
        click.echo(f"Node {address} could not be asked ({why}).", err=True)
    queues = set[str]().union(*found.of.values())
    changes = {queue: _change(queue, before, after) for queue in sorted(queues)}
    return {queue: change for queue, change in changes.items() if change}


def _change(queue: str, before: Policies, after: Policies) -> Change:
    now, then = _values(before, queue), _values(after, queue)
    names = [name for name in {**now, **then} if now.get(name) != then.get(name)]
    return {name: (now.get(name), then.get(name)) for name in names}


def _values(policies: Policies, queue: str) -> dict[str, str]:
    sources = policies.sources(_bytes(queue)).items()
    return {name.decode(): value.decode("utf-8", "surrogateescape") for name, (value, _) in sources}


def _show_changes(changes: dict[str, Change], as_json: bool) -> None:
    rows: list[tuple[str, ...]] = []
    for queue, settings in changes.items():
        for name, (now, then) in settings.items():
            values: dict[str, Any] = {"queue": queue, "setting": name, "now": now, "then": then}
            if as_json:
                output.document(values)
            rows.append((queue, name, "-" if now is None else now, "-" if then is None else then))
    if not as_json:
        _print(_COLUMNS, rows, False)
        click.echo(f"{counted(len(changes), 'queue')} would change. Nothing was changed.", err=True)
