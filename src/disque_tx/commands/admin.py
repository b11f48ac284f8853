"""The small commands about connection and process (client protocol, section 8)."""

from __future__ import annotations

from hmac import compare_digest

from disque_tx.commands.context import Server
from disque_tx.commands.refusals import wrong_arguments
from disque_tx.core.client import Client
from disque_tx.errors import CommandError, syntax_error


def password_matches(server: Server, client: Client, password: bytes) -> bool:
    """Authenticate the client, or take its authentication away; refused when nobody needs any."""
    expected = server.control.password()
    if not expected:
        raise CommandError("ERR", "Client sent AUTH, but no password is set")
    client.authenticated = compare_digest(expected, password)
    return client.authenticated


def auth(server: Server, client: Client, argv: list[bytes]) -> None:
    """AUTH password."""
    if not password_matches(server, client, argv[1]):
        raise CommandError("ERR", "invalid password")
    client.replies.status(b"OK")


def ping(server: Server, client: Client, argv: list[bytes]) -> None:
    """PING [message]."""
    if len(argv) > 2:
        raise wrong_arguments(b"ping")
    if len(argv) == 2:
        client.replies.bulk(argv[1])
    else:
        client.replies.status(b"PONG")


def time(server: Server, client: Client, argv: list[bytes]) -> None:
    """TIME: the wall clock as seconds and microseconds."""
    seconds, micros = divmod(server.node.wall_us, 1_000_000)
    client.replies.array(2)
    client.replies.bulk(b"%d" % seconds)
    client.replies.bulk(b"%d" % micros)


def shutdown(server: Server, client: Client, argv: list[bytes]) -> None:
    """SHUTDOWN [REWRITE-AOF]: no reply, the connection ends with the process."""
    if len(argv) > 2 or (len(argv) == 2 and argv[1].lower() != b"rewrite-aof"):
        raise syntax_error()
    server.control.shutdown(len(argv) == 2 and not server.control.loading())


def bgrewriteaof(server: Server, client: Client, argv: list[bytes]) -> None:
    """BGREWRITEAOF: works with the log off, too."""
    server.control.background_rewrite()
    client.replies.status(b"Background append only file rewriting started")


def loadjob(server: Server, client: Client, argv: list[bytes]) -> None:
    """LOADJOB: only the log may say it."""
    raise CommandError("ERR", "LOADJOB is a special command only processed from AOF")
