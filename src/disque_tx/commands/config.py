"""CONFIG: parameters of the running process (client protocol, section 9)."""

from __future__ import annotations

from typing import Final

from disque_tx.commands.context import Server
from disque_tx.commands.refusals import shown
from disque_tx.commands.subcommands import Subcommand
from disque_tx.core.client import Client
from disque_tx.errors import CommandError


def config(server: Server, client: Client, argv: list[bytes]) -> None:
    """CONFIG GET pattern | SET name value | RESETSTAT | REWRITE."""
    found = _SUBCOMMANDS.get(argv[1].lower())
    if found is None:
        raise CommandError("ERR", "CONFIG subcommand must be one of GET, SET, RESETSTAT, REWRITE")
    if not found.accepts(len(argv)):
        raise CommandError("ERR", f"Wrong number of arguments for CONFIG {shown(argv[1])}")
    found.handler(server, client, argv)


def _get(server: Server, client: Client, argv: list[bytes]) -> None:
    parameters = server.control.config_get(argv[2])
    client.replies.mapping(len(parameters))
    for name, value in parameters:
        client.replies.bulk(name)
        client.replies.bulk(value)


def _set(server: Server, client: Client, argv: list[bytes]) -> None:
    server.control.config_set(argv[2], argv[3])
    client.replies.status(b"OK")


def _resetstat(server: Server, client: Client, argv: list[bytes]) -> None:
    server.stats.reset()
    server.node.totals.reset()
    server.control.reset_statistics()
    for command in server.registry.table:
        command.calls = 0
        command.ns = 0
    client.replies.status(b"OK")


def _rewrite(server: Server, client: Client, argv: list[bytes]) -> None:
    server.control.config_rewrite()
    client.replies.status(b"OK")


_SUBCOMMANDS: Final = {
    b"get": Subcommand(_get, 3, 3),
    b"set": Subcommand(_set, 4, 4),
    b"resetstat": Subcommand(_resetstat, 2, 2),
    b"rewrite": Subcommand(_rewrite, 2, 2),
}
