"""Commands that change how the node works leave a line in its log, and stand in the list of the
last actions: who, from where, what, and whether it was refused."""

from __future__ import annotations

from typing import Final

from disque_tx.commands.base.actions import Action
from disque_tx.commands.base.arguments import mask
from disque_tx.commands.base.context import Command, Server
from disque_tx.commands.base.slowlog import shorten
from disque_tx.core.base.client import Client
from disque_tx.core.counting.answers import JobCount
from disque_tx.errors import CommandError
from disque_tx.text.counts import counted
from disque_tx.text.quoting import quote

#: Command → the words of it, in one place, that change something; empty for all of its requests.
_CHANGES: Final[dict[bytes, tuple[int, frozenset[bytes]]]] = {
    b"config": (1, frozenset((b"set", b"rewrite", b"resetstat"))),
    b"cluster": (1, frozenset((b"meet", b"forget", b"reset", b"leaving"))),
    b"client": (1, frozenset((b"kill", b"pause"))),
    b"debug": (1, frozenset((b"flushall", b"loadaof", b"restart", b"crash-and-recover"))),
    b"pause": (2, frozenset((b"in", b"out", b"all", b"none"))),
    b"qpolicy": (1, frozenset((b"set", b"del", b"repair"))),
    b"schedule": (1, frozenset((b"set", b"del", b"pause", b"resume", b"skip", b"repair"))),
    b"qflush": (0, frozenset()),
    b"shutdown": (0, frozenset()),
    b"note": (0, frozenset()),
}
#: CLUSTER LEAVING without a third word is a question.
_LEAVING: Final = b"leaving"


class AuditedCommand(Command):
    """A command some of whose requests change how the node works."""

    def run(self, server: Server, client: Client, argv: list[bytes]) -> None:
        if not changes(self.name, argv):
            self.handler(server, client, argv)
            return
        try:
            self.handler(server, client, argv)
        except CommandError as error:
            _keep(server, client, self.name, argv, f"{error.code} {error.text}")
            raise
        _keep(server, client, self.name, argv)


def _keep(
    server: Server, client: Client, name: bytes, argv: list[bytes], refused: str = ""
) -> None:
    line = audit_line(name, client, argv)
    server.control.audit(f"{line}, refused: {refused}" if refused else line)
    at_ms = server.node.wall_us // 1000
    reason = refused.encode("utf-8", "replace")
    server.actions.add(Action(at_ms, name, _who(client), _request(name, argv), reason))


def acted(server: Server, client: Client, argv: list[bytes], jobs: int = -1) -> None:
    """Keep what a client has done by several commands, as if it were one with these words: it was
    about this number of jobs, if not about something else."""
    name = argv[0].lower()
    line = audit_line(name, client, argv)
    server.control.audit(line if jobs < 0 else f"{line}: {counted(jobs, 'job')}")
    at_ms = server.node.wall_us // 1000
    what = _request(name, argv)
    server.actions.add(Action(at_ms, name, _who(client), what, b"", JobCount(jobs)))


def changes(name: bytes, argv: list[bytes]) -> bool:
    """Whether this request changes how the node works. ``name``: of the command, in lower case,
    however it was renamed."""
    place, words = _CHANGES[name]
    if not words:
        return True
    if len(argv) <= place or argv[place].lower() not in words:
        return False
    return argv[place].lower() != _LEAVING or len(argv) > 2


def audit_line(name: bytes, client: Client, argv: list[bytes]) -> str:
    """Who asks for what, without passwords; words are quoted where they are not plain."""
    who, asked = _who(client), _request(name, argv)
    return f"Client {who.decode('latin-1')}: {asked.decode('ascii')}"


def _who(client: Client) -> bytes:
    return client.addr + (b" (" + client.name + b")" if client.name else b"")


def _request(name: bytes, argv: list[bytes]) -> bytes:
    words = [name.upper(), *shorten(mask(argv, name))[1:]]
    return b" ".join([word if word.isalnum() else _shown(word) for word in words])


def _shown(word: bytes) -> bytes:
    quoted = quote(word)
    return word if quoted[1:-1] == word and word and b" " not in word else quoted
