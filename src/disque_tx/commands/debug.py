"""DEBUG: for tests and emergencies (client protocol, section 8)."""

from __future__ import annotations

from math import isfinite
from typing import Final

from disque_tx.commands.arguments import required_integer
from disque_tx.commands.context import Server
from disque_tx.commands.refusals import shown
from disque_tx.commands.subcommands import ANY, Subcommand, run
from disque_tx.core.client import Client
from disque_tx.core.node import Node
from disque_tx.errors import CommandError
from disque_tx.messages import JobRecord


def debug(server: Server, client: Client, argv: list[bytes]) -> None:
    """DEBUG sub-command [argument ...]; what is too much is ignored, as far as it was before."""
    refusal = CommandError(
        "ERR",
        f"Unknown DEBUG subcommand or wrong number of arguments for '{shown(argv[1])}'",
    )
    run(_SUBCOMMANDS, server, client, argv, refusal)


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


_SUBCOMMANDS: Final = {
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
