"""GETJOB: from words to calls on the node (client protocol, sections 15 and 15.1)."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from disque_tx.commands.base.arguments import integer, timeout_ms
from disque_tx.commands.base.context import Server
from disque_tx.core.base.client import Client
from disque_tx.core.getting.getting import GetRequest
from disque_tx.errors import CommandError, syntax_error

_FROM: Final = 1
_NOHANG: Final = 2
_WITHCOUNTERS: Final = 3
_TIMEOUT: Final = 4
_COUNT: Final = 5
_EXCEPT: Final = 6
_MATCH: Final = 7
_OPTIONS: Final[dict[bytes, int]] = {
    b"FROM": _FROM,
    b"NOHANG": _NOHANG,
    b"WITHCOUNTERS": _WITHCOUNTERS,
    b"TIMEOUT": _TIMEOUT,
    b"COUNT": _COUNT,
    b"EXCEPT": _EXCEPT,
    b"MATCH": _MATCH,
}
#: Between names and patterns, in capital letters only: behind FROM the original takes every word
#: for the name of a queue.
_BETWEEN: Final = b"MATCH"


def getjob(server: Server, client: Client, argv: list[bytes]) -> None:
    """GETJOB [NOHANG] [WITHCOUNTERS] [TIMEOUT ms] [COUNT n] FROM queue [queue ...]

    GETJOB [the same options] [EXCEPT glob] ... [FROM queue [queue ...]] MATCH glob [glob ...]
    """
    no_hang = False
    counters = False
    count: i64 = 1
    timeout: i64 = 0
    excepts: list[bytes] | None = None
    at = 1
    size = len(argv)
    while at < size:
        option = _OPTIONS.get(argv[at], 0)
        if option == 0:
            option = _OPTIONS.get(argv[at].upper(), 0)
        at += 1
        if option == _FROM and at < size:
            names = argv[at:]
            if excepts is None and (len(names) < 3 or _BETWEEN not in names[1:-1]):
                server.node.get_jobs(client, names, count, timeout, no_hang, counters)
                return
            request = _request(names, excepts)
            break
        if option == _MATCH and at < size:
            request = GetRequest([], _globs(argv[at:]), [] if excepts is None else excepts)
            break
        if option == _NOHANG:
            no_hang = True
        elif option == _WITHCOUNTERS:
            counters = True
        elif option == _TIMEOUT and at < size:
            timeout = timeout_ms(argv[at])
            at += 1
        elif option == _COUNT and at < size:
            value = integer(argv[at])
            if value <= 0 or value >= 1 << 63:
                raise CommandError("ERR", "COUNT must be a number greater than zero")
            count = value
            at += 1
        elif option == _EXCEPT and at < size:
            if excepts is None:
                excepts = []
            excepts.append(argv[at])
            at += 1
        else:
            raise syntax_error()
    else:
        raise syntax_error()
    request.count = count
    request.timeout_ms = timeout
    request.no_hang = no_hang
    request.counters = counters
    server.node.get_matching(client, request)


def _request(words: list[bytes], excepts: list[bytes] | None) -> GetRequest:
    """Names, MATCH and patterns, as they stand behind FROM."""
    if _BETWEEN not in words[1:-1]:
        raise CommandError("ERR", "EXCEPT needs MATCH")
    between = words.index(_BETWEEN, 1)
    return GetRequest(words[:between], words[between + 1 :], [] if excepts is None else excepts)


def _globs(words: list[bytes]) -> list[bytes]:
    for word in words:
        if word.upper() == b"FROM":
            raise CommandError("ERR", "FROM must stand before MATCH")
    return words
