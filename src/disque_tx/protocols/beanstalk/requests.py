"""Requests of beanstalkd's protocol: the words of a line."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

#: Bytes of a line, with its end.
LINE_BYTES_MAX: Final = 224
NAME_BYTES_MAX: Final = 200
U32_MAX: Final = 0xFFFF_FFFF
_U64_MAX: Final = 0xFFFF_FFFF_FFFF_FFFF
_NAME_BYTES: Final = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+/;.$_()"
_SPACE: Final = 32
_ZERO: Final = 48
#: Numbers are counted up to here, far beyond all that means anything.
_OVERFLOW: Final = 10**17

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


def number_at(text: bytes, at: i64) -> tuple[i64, i64]:
    """The number behind the spaces at a place, and the place behind its digits; -1 if there is
    none. Numbers above 10¹⁷ may be others above 10¹⁷."""
    end: i64 = len(text)
    while at < end and text[at] == _SPACE:
        at += 1
    start = at
    value: i64 = 0
    while at < end:
        digit: i64 = text[at] - _ZERO
        if digit < 0 or digit > 9:
            break
        value = value * 10 + digit if value < _OVERFLOW else _OVERFLOW
        at += 1
    return (-1 if at == start else value), at


def numbers(text: bytes, count: i64, most: i64 = U32_MAX) -> list[int] | None:
    """``count`` numbers from 0 to ``most``, separated by spaces; ``None`` for anything else."""
    found: list[int] = []
    at: i64 = 0
    end: i64 = len(text)
    while len(found) < count:
        if found and (at >= end or text[at] != _SPACE):
            return None
        value, at = number_at(text, at)
        if value < 0 or value > most:
            return None
        found.append(value)
    return found if at == end else None


def job_number(text: bytes) -> int:
    """The ID of a job, -1 if it is none."""
    value, at = number_at(text, 0)
    if at < len(text):
        return -1
    if value >= _OVERFLOW and int(text) > _U64_MAX:
        return -1
    return value


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
