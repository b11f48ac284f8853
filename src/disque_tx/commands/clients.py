"""CLIENT: what is known about connections, and what may be done to them (client protocol, 8)."""

from __future__ import annotations

from typing import Final

from disque_tx.commands.arguments import integer, timeout_ms
from disque_tx.commands.clientkill import kill
from disque_tx.commands.context import Server
from disque_tx.commands.subcommands import ANY, Subcommand, run
from disque_tx.core.client import NOT_BLOCKED, REPLY_OFF, REPLY_ON, REPLY_SKIP_NEXT, Client
from disque_tx.errors import CommandError, syntax_error

#: Nobody lives to see the end of a longer pause; its end still fits in 63 bits.
_PAUSE_MS_MAX: Final = 1 << 61


def client(server: Server, caller: Client, argv: list[bytes]) -> None:
    """CLIENT LIST | GETNAME | SETNAME | KILL | PAUSE | REPLY."""
    refusal = CommandError(
        "ERR",
        "Syntax error, try CLIENT (LIST | KILL ip:port | GETNAME | SETNAME connection-name)",
    )
    run(_SUBCOMMANDS, server, caller, argv, refusal)


def _list(server: Server, caller: Client, argv: list[bytes]) -> None:
    lines = [client_line(server, other) for other in server.clients.values()]
    caller.replies.bulk(b"".join(lines))


def client_line(server: Server, client: Client) -> bytes:
    """A connection as CLIENT LIST shows it, line end included."""
    now_ms = server.node.now_ms
    unread, unsent, pieces = server.control.client_buffers(client)
    return (
        b"id=%d addr=%s fd=%d name=%s age=%d idle=%d flags=%s qbuf=%d qbuf-free=0 "
        b"obl=0 oll=%d omem=%d events=%s cmd=%s\n"
    ) % (
        client.id,
        client.addr,
        client.fd,
        client.name,
        (now_ms - client.created_ms) // 1000,
        (now_ms - client.seen_ms) // 1000,
        _flags(client),
        unread,
        pieces,
        unsent,
        b"rw" if unsent else b"r",
        client.last_command or b"NULL",
    )


def _flags(client: Client) -> bytes:
    flags = b""
    if client.monitor:
        flags += b"O"
    if client.blocked != NOT_BLOCKED:
        flags += b"b"
    if client.closing:
        flags += b"c"
    if client.doomed:
        flags += b"A"
    if client.unix:
        flags += b"U"
    return flags or b"N"


def _getname(server: Server, caller: Client, argv: list[bytes]) -> None:
    if caller.name:
        caller.replies.bulk(caller.name)
    else:
        caller.replies.null()


def _setname(server: Server, caller: Client, argv: list[bytes]) -> None:
    check_name(argv[2])
    caller.name = argv[2]
    caller.replies.status(b"OK")


def check_name(name: bytes) -> None:
    """Refuse a name that would break the lines of CLIENT LIST."""
    for byte in name:
        if not 33 <= byte <= 126:
            raise CommandError(
                "ERR",
                "Client names cannot contain spaces, newlines or special characters.",
            )


def _pause(server: Server, caller: Client, argv: list[bytes]) -> None:
    timeout_ms(argv[2])
    pause_ms = min(integer(argv[2]), _PAUSE_MS_MAX)
    server.paused_until_ms = max(server.paused_until_ms, server.node.now_ms + pause_ms)
    caller.replies.status(b"OK")


def _reply(server: Server, caller: Client, argv: list[bytes]) -> None:
    mode = argv[2].lower()
    if mode == b"on":
        caller.reply_mode = REPLY_ON
        caller.replies.status(b"OK")
    elif mode == b"off":
        caller.reply_mode = REPLY_OFF
    elif mode != b"skip":
        raise syntax_error()
    elif caller.reply_mode != REPLY_OFF:
        caller.reply_mode = REPLY_SKIP_NEXT


_SUBCOMMANDS: Final = {
    b"list": Subcommand(_list, 2, 2),
    b"getname": Subcommand(_getname, 2, 2),
    b"setname": Subcommand(_setname, 3, 3),
    b"kill": Subcommand(kill, 2, ANY),
    b"pause": Subcommand(_pause, 3, 3),
    b"reply": Subcommand(_reply, 3, 3),
}
