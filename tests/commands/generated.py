"""Requests that are as large as the syntax of each command allows, for every command of the help,
which lists all commands of the table (``tests/cli/test_help.py``) with all that each takes
(``tests/cli/test_syntax.py``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

from disque_tx.cli.syntax import ENTRIES, Topic, ways

#: An ID of a job that nobody has.
JOB: Final = b"D-00000000-" + b"0" * 24 + b"-0fff"
#: Words in place of a parameter that can be repeated.
REPEATED: Final = 10_000
_HUGE: Final = b"9000000000000000000"
_NAME_BYTES: Final = 1_000_000
#: A pattern that much is compared with, and one of many classes.
_PATTERNS: Final = (b"*a" * 100_000 + b"b", b"[a-y]" * 56 + b"*z", b"*a" * 127 + b"b", b"*")
#: These end the node, or the connection, or would take as long as they are asked to.
_LEFT_OUT: Final = re.compile(
    "QUIT|SHUTDOWN|DEBUG .*|MONITOR|CLIENT PAUSE|CLIENT REPLY|CLUSTER RESET"
)


def hostile_requests(queue: bytes) -> Iterator[list[bytes]]:
    """For each command: huge numbers, negative ones, long names, evil patterns, and each of its
    words. ``queue``: one that exists."""
    for entry in ENTRIES:
        if _LEFT_OUT.fullmatch(entry.name):
            continue
        for number in (_HUGE, b"-1", b"10000"):
            yield _request(entry, queue, number, _PATTERNS[-1])
        for pattern in _PATTERNS:
            yield _request(entry, queue, b"100", pattern)
        yield _request(entry, b"n" * _NAME_BYTES, b"1", b"*")
        for word in _choices(entry):
            yield _request(entry, queue, b"10000", b"*", word)
        yield entry.name.encode().split() + [b"w"] * REPEATED


def _choices(entry: Topic) -> Iterator[bytes]:
    """Each of the words that a parameter can be."""
    for word in chain(*(way for param in entry.params for way in ways(param))):
        if "|" in word:
            yield from word.encode().split(b"|")


def _request(
    entry: Topic, queue: bytes, number: bytes, pattern: bytes, chosen: bytes = b""
) -> list[bytes]:
    """All parameters of a command. ``chosen``: the word where there is a choice and it is one."""
    argv = entry.name.encode().split()
    for param in entry.params:
        for word in ways(param)[-1]:
            argv += _value(word.strip("[]"), queue, number, pattern, chosen)
    return argv


def _value(word: str, queue: bytes, number: bytes, pattern: bytes, chosen: bytes) -> list[bytes]:
    if "|" in word:
        choices = word.encode().split(b"|")
        return [chosen if chosen in choices else choices[-1]]
    if word == "...":
        return []
    if word.isupper() or word in ("normal", "bcast"):
        return [] if word == "BUSYLOOP" and chosen != b"BUSYLOOP" else [word.encode()]
    if word in ("n", "count", "seconds", "milliseconds", "ms-timeout", "unix-ms", "port"):
        return [number]
    if word in ("glob", "pattern"):
        return [pattern]
    if word == "job-id":
        return [JOB] * 100
    if word in ("queue", "from", "to", "name", "body", "text"):
        return [queue]
    return [b"0" if word == "cursor" else b"x"]
