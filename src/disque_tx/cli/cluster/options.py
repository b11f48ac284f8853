"""What the commands about clusters share: addresses, confirmations, forms of output."""

from __future__ import annotations

import sys

import click

from disque_tx.client import addresses
from disque_tx.client.errors import BadAddress


def _address(_ctx: object, _param: object, value: str) -> str:
    try:
        return str(addresses.address(value))
    except BadAddress as error:
        raise click.BadParameter(str(error)) from None


def _addresses(ctx: object, param: object, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_address(ctx, param, value) for value in values))


a_node = click.argument("node", callback=_address, metavar="HOST:PORT")
some_nodes = click.argument(
    "nodes", callback=_addresses, nargs=-1, required=True, metavar="HOST:PORT..."
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
as_json_option = click.option("--json", "as_json", is_flag=True, help="As a JSON document.")


def agreed(question: str, yes: bool) -> None:
    """Ask for a confirmation, unless ``yes``; abort without it."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("There is no terminal to ask on; use --yes.")
    click.confirm(question, abort=True, err=True)
