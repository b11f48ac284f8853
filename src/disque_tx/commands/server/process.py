"""Commands on the running process: CONFIG (client protocol, section 9), and DEBUG, for tests and
emergencies (section 8).
"""

from __future__ import annotations

from math import isfinite
from typing import Final

from disque_tx.commands.base.arguments import quoted, required_integer
from disque_tx.commands.base.context import ANY, Server, Subcommand, run_subcommand
from disque_tx.commands.base.readonly import shown_to_readers
from disque_tx.core.base.bounds import check_glob
from disque_tx.core.base.client import Client
from disque_tx.core.node import Node
from disque_tx.errors import CommandError
from disque_tx.messages.records import JobRecord


def config(server: Server, client: Client, argv: list[bytes]) -> None:
    """CONFIG GET pattern | SET name value | RESETSTAT | REWRITE."""
    found = _CONFIG.get(argv[1].lower())
    if found is None:
        raise CommandError("ERR", "CONFIG subcommand must be one of GET, SET, RESETSTAT, REWRITE")
    if not found.accepts(len(argv)):
        raise CommandError("ERR", f"Wrong number of arguments for CONFIG {quoted(argv[1])}")
    found.handler(server, client, argv)


def _get(server: Server, client: Client, argv: list[bytes]) -> None:
    check_glob("CONFIG GET pattern", argv[2])
    parameters = server.control.config_get(argv[2])
    client.replies.mapping(len(parameters))
    for name, value in parameters:
        client.replies.bulk(name)
        client.replies.bulk(shown_to_readers(name, value) if client.reader else value)


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


_CONFIG: Final = {
    b"get": Subcommand(_get, 3, 3),
    b"set": Subcommand(_set, 4, 4),
    b"resetstat": Subcommand(_resetstat, 2, 2),
    b"rewrite": Subcommand(_rewrite, 2, 2),
}


def debug(server: Server, client: Client, argv: list[bytes]) -> None:
    """DEBUG sub-command [argument ...]; what is too much is ignored, as far as it was before."""
    refusal = CommandError(
        "ERR",
        f"Unknown DEBUG subcommand or wrong number of arguments for '{quoted(argv[1])}'",
    )
    run_subcommand(_DEBUG, server, client, argv, refusal)


def _flushall(server: Server, client: Client, argv: list[bytes]) -> None:
    server.node.flush_all()
    client.replies.status(b"OK")


def _loadaof(server: Server, client: Client, argv: list[bytes]) -> None:
    server.control.reload_log()
    client.replies.status(b"OK")


def _sleep(server: Server, client: Client, argv: list[bytes]) -> None:
    try:
        duration_s = float(argv[2])
    except ValueError:
        duration_s = -1.0
    if not isfinite(duration_s) or duration_s < 0:
        raise CommandError("ERR", "value is not a number of seconds or out of range")
    server.control.sleep(duration_s)
    client.replies.status(b"OK")


def _error(server: Server, client: Client, argv: list[bytes]) -> None:
    raise CommandError(argv[2].decode("latin-1"), "")


def _structsize(server: Server, client: Client, argv: list[bytes]) -> None:
    sizes = (JobRecord.__basicsize__, Client.__basicsize__, Node.__basicsize__)
    client.replies.bulk(b"bits:64 job:%d client:%d node:%d " % sizes)


def _restart(server: Server, client: Client, argv: list[bytes]) -> None:
    graceful = argv[1].lower() == b"restart"
    delay_ms = max(required_integer(argv[2]), 0) if len(argv) > 2 else 0
    server.control.restart(graceful, delay_ms)


def _crash(server: Server, client: Client, argv: list[bytes]) -> None:
    server.control.crash(argv[1].lower().decode())


_DEBUG: Final = {
    b"flushall": Subcommand(_flushall, 2, ANY),
    b"loadaof": Subcommand(_loadaof, 2, ANY),
    b"sleep": Subcommand(_sleep, 3, 3),
    b"error": Subcommand(_error, 3, 3),
    b"structsize": Subcommand(_structsize, 2, ANY),
    b"restart": Subcommand(_restart, 2, ANY),
    b"crash-and-recover": Subcommand(_restart, 2, ANY),
    b"segfault": Subcommand(_crash, 2, ANY),
    b"assert": Subcommand(_crash, 2, ANY),
    b"oom": Subcommand(_crash, 2, ANY),
}
