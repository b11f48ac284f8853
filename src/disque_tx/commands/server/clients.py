"""CLIENT: what is known about connections, and what may be done to them (client protocol, section
8)."""

from __future__ import annotations

from typing import Final

from disque_tx.commands.base.arguments import integer, quoted, required_integer, timeout_ms
from disque_tx.commands.base.context import ANY, Server, Subcommand, run_subcommand
from disque_tx.commands.server.workers import announce
from disque_tx.core.base.client import NOT_BLOCKED, REPLY_OFF, REPLY_ON, REPLY_SKIP_NEXT, Client
from disque_tx.errors import CommandError, syntax_error

#: Longer than anybody waits; the end of such a pause still fits in 63 bits.
#: Every client that lists clients gets all names.
_NAME_BYTES_MAX: Final = 256
_PAUSE_MS_MAX: Final = 1 << 61


def client(server: Server, caller: Client, argv: list[bytes]) -> None:
    """CLIENT LIST | GETNAME | SETNAME | ANNOUNCE | KILL | PAUSE | REPLY."""
    refusal = CommandError(
        "ERR",
        "Syntax error, try CLIENT (LIST | KILL ip:port | GETNAME | SETNAME connection-name)",
    )
    run_subcommand(_SUBCOMMANDS, server, caller, argv, refusal)


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
    if client.abort_now:
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
    """Raise an error for a name that would break the lines of CLIENT LIST, or fill them."""
    if len(name) > _NAME_BYTES_MAX:
        raise CommandError("ERR", f"Client names have {_NAME_BYTES_MAX} bytes at most.")
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


class KillFilter:
    """Which connections to close; a criterion that is ``None`` matches all."""

    __slots__ = ("id", "addr", "skip_me")

    def __init__(self) -> None:
        self.id: int | None = None
        self.addr: bytes | None = None
        self.skip_me: bool = True

    def matches(self, client: Client, caller: Client) -> bool:
        """Whether the connection is one of those to close."""
        if self.id is not None and client.id != self.id:
            return False
        if self.addr is not None and client.addr != self.addr:
            return False
        return not (self.skip_me and client is caller)


def _kill(server: Server, caller: Client, argv: list[bytes]) -> None:
    """CLIENT KILL ip:port | CLIENT KILL option value [option value ...]."""
    if len(argv) == 3:
        chosen = KillFilter()
        chosen.addr = argv[2]
        chosen.skip_me = False
        if not _close(server, caller, chosen):
            raise CommandError("ERR", "No such client")
        caller.replies.status(b"OK")
    else:
        caller.replies.integer(_close(server, caller, _parse(argv)))


def _parse(argv: list[bytes]) -> KillFilter:
    if len(argv) < 4 or len(argv) % 2:
        raise syntax_error()
    chosen = KillFilter()
    for place in range(2, len(argv), 2):
        _parse_option(chosen, argv[place].lower(), argv[place + 1])
    return chosen


def _parse_option(chosen: KillFilter, option: bytes, value: bytes) -> None:
    if option == b"id":
        chosen.id = required_integer(value)
    elif option == b"addr":
        chosen.addr = value
    elif option == b"type":
        if value.lower() != b"normal":
            raise CommandError("ERR", f"Unknown client type '{quoted(value)}'")
    elif option == b"skipme" and value.lower() in (b"yes", b"no"):
        chosen.skip_me = value.lower() == b"yes"
    else:
        raise syntax_error()


def _close(server: Server, caller: Client, chosen: KillFilter) -> int:
    """Close what matches and count it; the caller itself still gets its reply."""
    matching = [c for c in server.clients.values() if chosen.matches(c, caller)]
    for client in matching:
        if client is caller:
            client.closing = True
        else:
            client.abort_now = True
        server.node.outbox.touch(client)
    return len(matching)


_SUBCOMMANDS: Final = {
    b"list": Subcommand(_list, 2, 2),
    b"getname": Subcommand(_getname, 2, 2),
    b"setname": Subcommand(_setname, 3, 3),
    b"announce": Subcommand(announce, 3, 3),
    b"kill": Subcommand(_kill, 2, ANY),
    b"pause": Subcommand(_pause, 3, 3),
    b"reply": Subcommand(_reply, 3, 3),
}
