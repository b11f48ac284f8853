"""COMMAND: the command table as clients may ask for it (client protocol, section 8)."""

from __future__ import annotations

from disque_tx.commands.context import Server
from disque_tx.commands.registry import Command
from disque_tx.core.client import Client
from disque_tx.errors import CommandError
from disque_tx.messages import ReplySink


def command(server: Server, client: Client, argv: list[bytes]) -> None:
    """COMMAND | COMMAND COUNT | COMMAND INFO [name ...]; names as they are after renames."""
    by_name = server.registry.by_name
    word = argv[1].lower() if len(argv) > 1 else b""
    if len(argv) == 1:
        _describe_all(client.replies, list(by_name.values()))
    elif word == b"count" and len(argv) == 2:
        client.replies.integer(len(by_name))
    elif word == b"info":
        _describe_all(client.replies, [by_name.get(name.lower()) for name in argv[2:]])
    else:
        raise CommandError("ERR", "Unknown subcommand or wrong number of arguments.")


def _describe_all(replies: ReplySink, commands: list[Command | None]) -> None:
    replies.array(len(commands))
    for entry in commands:
        if entry is None:
            replies.null()
        else:
            _describe(replies, entry)


def _describe(replies: ReplySink, entry: Command) -> None:
    replies.array(6)
    replies.bulk(entry.name)
    replies.integer(entry.arity)
    replies.array(len(entry.flags))
    for flag in entry.flags:
        replies.status(flag.encode())
    for _ in ("first key", "last key", "key step"):
        replies.integer(0)
