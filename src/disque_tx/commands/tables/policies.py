"""QPOLICY: the table of policies for queues (client protocol, section 26.1)."""

from __future__ import annotations

from typing import Final

from disque_tx.commands.base.context import ANY, Server, Subcommand, run_subcommand
from disque_tx.commands.tables.change import change, repair
from disque_tx.core.base.client import Client
from disque_tx.core.policies.settings import SETTINGS
from disque_tx.errors import CommandError
from disque_tx.messages.tables import Register


def qpolicy(server: Server, client: Client, argv: list[bytes]) -> None:
    """QPOLICY SET | DEL | LIST | GET | REPAIR."""
    refusal = CommandError("ERR", "Wrong QPOLICY subcommand or number of arguments")
    run_subcommand(_SUBCOMMANDS, server, client, argv, refusal)


def _set(server: Server, client: Client, argv: list[bytes]) -> None:
    """SET pattern setting value [setting value ...]"""
    if len(argv) % 2 == 0:
        raise CommandError("ERR", "QPOLICY SET needs a value after every setting")
    pairs = [(argv[at], argv[at + 1]) for at in range(3, len(argv), 2)]
    node = server.node
    _change(server, node.policy_table.plan_set(argv[2], pairs, node.id))
    client.replies.status(b"OK")


def _del(server: Server, client: Client, argv: list[bytes]) -> None:
    """DEL pattern [setting ...]"""
    node = server.node
    wall_s = node.wall_us // 1_000_000
    changes = node.policy_table.plan_del(argv[2], argv[3:], node.id, wall_s)
    if changes:
        _change(server, changes)
    client.replies.integer(len(changes))


def _change(server: Server, changes: list[Register]) -> None:
    node = server.node
    change(server, node.policy_table, server.control.save_policies, node.exchange, changes)


def _repair(server: Server, client: Client, argv: list[bytes]) -> None:
    """REPAIR"""
    node = server.node
    save = server.control.save_policies
    client.replies.integer(repair(server, node.policy_table, save, node.exchange))


def _list(server: Server, client: Client, argv: list[bytes]) -> None:
    """LIST [pattern]"""
    policies = server.node.policies
    patterns = policies.patterns()
    if len(argv) == 3:
        patterns = [argv[2]] if policies.values(argv[2]) else []
    replies = client.replies
    replies.array(len(patterns))
    for pattern in patterns:
        values = policies.values(pattern)
        replies.array(2)
        replies.bulk(pattern)
        replies.mapping(len(values))
        for name in _in_order(list(values)):
            replies.bulk(name)
            replies.bulk(values[name])


def _get(server: Server, client: Client, argv: list[bytes]) -> None:
    """GET queue"""
    server.node.queues.check(argv[2])
    sources = server.node.policies.sources(argv[2])
    replies = client.replies
    replies.array(len(sources))
    for name in _in_order(list(sources)):
        value, pattern = sources[name]
        replies.array(3)
        replies.bulk(name)
        replies.bulk(value)
        replies.bulk(pattern)


_PLACES: Final[dict[bytes, int]] = {name: place for place, name in enumerate(SETTINGS)}


def _in_order(names: list[bytes]) -> list[bytes]:
    """The names of settings in the order of the table of settings."""
    return sorted(names, key=_place)


def _place(name: bytes) -> int:
    return _PLACES.get(name, len(_PLACES))


_SUBCOMMANDS: Final = {
    b"set": Subcommand(_set, 5, ANY),
    b"del": Subcommand(_del, 3, ANY),
    b"list": Subcommand(_list, 2, 3),
    b"get": Subcommand(_get, 3, 3),
    b"repair": Subcommand(_repair, 2, 2),
}
