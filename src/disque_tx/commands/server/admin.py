"""The small commands about connection and process (client protocol, section 8)."""

from __future__ import annotations

from hmac import compare_digest

from mypy_extensions import i64

from disque_tx.commands.base.arguments import mask, wrong_arguments
from disque_tx.commands.base.context import Command, Server
from disque_tx.core.base.client import Client
from disque_tx.errors import CommandError, syntax_error
from disque_tx.messages.records import ReplySink
from disque_tx.text.quoting import quote


def too_many_guesses(wait_s: int) -> CommandError:
    """The error for a network that sent wrong passwords: none is checked for this number of
    seconds."""
    return CommandError(
        "TRYLATER", f"Too many wrong passwords from this network: try again in {wait_s} seconds."
    )


def password_matches(server: Server, client: Client, password: bytes) -> bool:
    """Authenticate the client, with all rights or to read only, or end its authentication; an
    error when no password is set, or when too many wrong ones came from its network: then the
    authentication stays as it is."""
    control = server.control
    expected = control.password()
    if not expected:
        raise CommandError("ERR", "Client sent AUTH, but no password is set")
    wait_s = control.password_wait_s(client)
    if wait_s:
        raise too_many_guesses(wait_s)
    reading = control.readonly_password()
    client.authenticated = compare_digest(expected, password)
    client.reader = (
        not client.authenticated and reading != b"" and compare_digest(reading, password)
    )
    client.authenticated = client.authenticated or client.reader
    if not client.authenticated:
        control.password_was_wrong(client)
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
    """LOADJOB: only the log may contain it."""
    raise CommandError("ERR", "LOADJOB is a special command only processed from AOF")


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


def monitor_line(client: Client, argv: list[bytes], wall_us: i64, name: bytes = b"") -> bytes:
    """The line monitors see for a request of ``client``; passwords are hidden.

    ``wall_us``: unix time. ``name`` as in :func:`arguments.mask`.
    """
    words = b" ".join([quote(word) for word in mask(argv, name)])
    seconds, micros = wall_us // 1_000_000, wall_us % 1_000_000
    return b"%d.%06d [%s] %s" % (seconds, micros, client.monitor_addr, words)


def monitor(server: Server, client: Client, argv: list[bytes]) -> None:
    """MONITOR: from the next request on, the client sees them all; asking twice does no harm."""
    if not client.monitor:
        client.monitor = True
        server.monitors.append(client)
    client.replies.status(b"OK")
