"""Requests of beanstalkd's protocol: the words of a line."""

from __future__ import annotations

from typing import Final

#: Bytes of a line, with its end.
LINE_BYTES_MAX: Final = 224
NAME_BYTES_MAX: Final = 200
U32_MAX: Final = 0xFFFF_FFFF
_U64_MAX: Final = 0xFFFF_FFFF_FFFF_FFFF
_NAME_BYTES: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+/;.$_()"
_DIGITS_MAX: Final = 20

# What a line asks for. Those below FIRST_PLAIN have arguments.
PUT: Final = 1
DELETE: Final = 2
RESERVE_WITH_TIMEOUT: Final = 3
RESERVE_JOB: Final = 4
RELEASE: Final = 5
BURY: Final = 6
TOUCH: Final = 7
USE: Final = 8
WATCH: Final = 9
IGNORE: Final = 10
PEEK: Final = 11
KICK: Final = 12
KICK_JOB: Final = 13
STATS_JOB: Final = 14
STATS_TUBE: Final = 15
PAUSE_TUBE: Final = 16
RESERVE: Final = 17
PEEK_READY: Final = 18
PEEK_DELAYED: Final = 19
PEEK_BURIED: Final = 20
STATS: Final = 21
LIST_TUBES: Final = 22
LIST_TUBE_USED: Final = 23
LIST_TUBES_WATCHED: Final = 24
QUIT: Final = 25
UNKNOWN: Final = 26
MALFORMED: Final = 27

#: Names of requests, by their number less one.
NAMES: Final = (
    *(b"put", b"delete", b"reserve-with-timeout", b"reserve-job", b"release", b"bury", b"touch"),
    *(b"use", b"watch", b"ignore", b"peek", b"kick", b"kick-job", b"stats-job", b"stats-tube"),
    *(b"pause-tube", b"reserve", b"peek-ready", b"peek-delayed", b"peek-buried", b"stats"),
    *(b"list-tubes", b"list-tube-used", b"list-tubes-watched", b"quit"),
)
_WITH_ARGUMENTS: Final = {name: number + 1 for number, name in enumerate(NAMES[:PAUSE_TUBE])}
_PLAIN: Final = {name: number + 1 for number, name in enumerate(NAMES) if number >= PAUSE_TUBE}


def request_of(line: bytes) -> tuple[int, bytes]:
    """What a line asks for, and what stands behind the name and its space."""
    space = line.find(b" ")
    if space >= 0:
        number = _WITH_ARGUMENTS.get(line[:space])
        if number is not None:
            return number, line[space + 1 :]
    else:
        number = _PLAIN.get(line)
        if number is not None:
            return number, b""
    # As beanstalkd does: the name counts, whatever follows it.
    if line.startswith(b"quit"):
        return QUIT, b""
    for name in _PLAIN:
        if line.startswith(name):
            return MALFORMED, b""
    return UNKNOWN, b""


def numbers(text: bytes, count: int, most: int = U32_MAX) -> list[int] | None:
    """``count`` numbers from 0 to ``most``, separated by spaces; ``None`` for anything else."""
    words = text.split(b" ")
    if len(words) != count:
        if not words[len(words) - 1]:
            return None
        words = [word for word in words if word]
        if len(words) != count:
            return None
    found: list[int] = []
    for word in words:
        if not word.isdigit() or len(word) > _DIGITS_MAX:
            return None
        value = int(word)
        if value > most:
            return None
        found.append(value)
    return found


def job_number(text: bytes) -> int:
    """The ID of a job, -1 if it is none."""
    found = numbers(text, 1, _U64_MAX)
    return -1 if found is None else found[0]


def job_number_and(text: bytes, count: int) -> tuple[int, list[int]] | None:
    """The ID of a job and ``count`` numbers behind it; ``None`` for anything else."""
    first, _, rest = text.lstrip(b" ").partition(b" ")
    number = job_number(first)
    values = numbers(rest, count)
    return None if number < 0 or values is None else (number, values)


def is_name(name: bytes) -> bool:
    """Whether this can be the name of a tube."""
    if not 0 < len(name) <= NAME_BYTES_MAX or name[0] == 45:
        return False
    return not name.translate(None, _NAME_BYTES)
