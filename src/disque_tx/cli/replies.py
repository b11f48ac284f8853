"""Replies of a server as values, read from a blocking stream.

The forms of output distinguish a status from a string, which the compiled parsers do not; hence
this parser.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, Final, TypeAlias

from disque_tx.errors import PeerError

#: The longest line: MONITOR shows whole job bodies in one.
LINE_LIMIT: Final = 64 * 1024 * 1024
#: The longest string the protocol knows (client protocol, section 3.1).
STRING_LIMIT: Final = 512 * 1024 * 1024
#: No reply of Disque is nested deeper than 4 levels.
DEPTH_LIMIT: Final = 32
_CHUNK: Final = 1024 * 1024


class StatusReply(bytes):
    """A status word such as ``OK``, or a job ID."""


class ErrorReply(bytes):
    """An error line without its dash: code and text."""


class Pairs(list["Reply"]):
    """A RESP3 map as a flat list: key, value, key, value."""


Reply: TypeAlias = "None | int | bytes | list[Reply]"


def read_reply(stream: BinaryIO, depth: int = 0) -> Reply:
    """The next reply of ``stream``.

    Raises ``EOFError`` when the stream ends first, ``PeerError`` when the bytes are not a reply.
    """
    line = _line(stream)
    kind, rest = line[:1], line[1:]
    if kind in _AGGREGATES:
        return _elements(stream, kind, _number(rest), depth + 1)
    if kind == b"$":
        return _string(stream, _number(rest))
    simple = _SIMPLE.get(kind)
    if simple is None:
        raise PeerError(f"this is not a Disque server: it answered {bytes(line[:40])!r}")
    return simple(rest)


def _line(stream: BinaryIO) -> bytes:
    line = stream.readline(LINE_LIMIT)
    if line.endswith(b"\r\n"):
        return line[:-2]
    if len(line) < LINE_LIMIT and not line.endswith(b"\n"):
        raise EOFError
    raise PeerError(f"the server sent a line without a valid end: {line[:40]!r}")


def _number(text: bytes) -> int:
    digits = text[1:] if text[:1] == b"-" else text
    if not digits.isdigit() or len(digits) > 20:
        raise PeerError(f"the server sent {text[:40]!r} instead of a number")
    return int(text)


def _string(stream: BinaryIO, size: int) -> bytes | None:
    if size < 0:
        return None
    if size > STRING_LIMIT:
        raise PeerError(f"the server announced a string of {size} bytes; the limit is 512 MiB")
    chunks = []
    missing = size + 2
    while missing:
        chunk = stream.read(min(missing, _CHUNK))
        if not chunk:
            raise EOFError
        chunks.append(chunk)
        missing -= len(chunk)
    return b"".join(chunks)[:-2]


def _elements(stream: BinaryIO, kind: bytes, size: int, depth: int) -> Reply:
    if size < 0:
        return None
    if depth > DEPTH_LIMIT:
        raise PeerError("the server nested its reply too deeply")
    values = Pairs() if kind == b"%" else []
    for _ in range(size * _AGGREGATES[kind]):
        values.append(read_reply(stream, depth))
    return values


def _null(text: bytes) -> None:
    return None


_AGGREGATES: Final[dict[bytes, int]] = {b"*": 1, b">": 1, b"%": 2}
_SIMPLE: Final[dict[bytes, Callable[[bytes], Reply]]] = {
    b"+": StatusReply,
    b"-": ErrorReply,
    b":": _number,
    b"_": _null,
}
