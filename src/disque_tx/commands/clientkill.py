"""CLIENT KILL: close connections that match (client protocol, section 8)."""

from __future__ import annotations

from disque_tx.commands.arguments import required_integer
from disque_tx.commands.context import Server
from disque_tx.commands.refusals import shown
from disque_tx.core.client import Client
from disque_tx.errors import CommandError, syntax_error


class KillFilter:
    """Which connections to close; a criterion that is ``None`` lets everybody through."""

    __slots__ = ("id", "addr", "skip_me")

    def __init__(self) -> None:
        self.id: int | None = None
        self.addr: bytes | None = None
        self.skip_me: bool = True

    def matches(self, client: Client, caller: Client) -> bool:
        """The connection is one of those to close."""
        if self.id is not None and client.id != self.id:
            return False
        if self.addr is not None and client.addr != self.addr:
            return False
        return not (self.skip_me and client is caller)


def kill(server: Server, caller: Client, argv: list[bytes]) -> None:
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
            raise CommandError("ERR", f"Unknown client type '{shown(value)}'")
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
            client.doomed = True
        server.node.outbox.touch(client)
    return len(matching)
