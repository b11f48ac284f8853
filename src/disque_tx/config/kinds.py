"""The kinds of values of directives: how they are parsed, shown and written.

Client protocol, sections 9.1 and 21.2. A kind parses words, and raises ``ValueError`` with the
message of section 21.2. It does not depend on the directive: the message is an argument.
"""

from __future__ import annotations

import re
from typing import Final, Generic, TypeVar

import attrs

from disque_tx.config.units import (
    INT32_MAX,
    INT64_MAX,
    parse_int,
    parse_memory,
    printable,
    show_memory,
)
from disque_tx.text.quoting import quote

T = TypeVar("T")

WRONG_WORDS: Final = "Bad directive or wrong number of arguments"
_OCTAL: Final = re.compile(rb"[0-7]{1,12}")
# A negative limit of the slow log means 'no limit' to the original.
_UNLIMITED: Final = INT64_MAX
_MEMORY_MAX: Final = INT64_MAX // 1024**3 * 1024**3


def decode(data: bytes) -> str:
    """Text from the configuration; :func:`encode` restores bytes that are not UTF-8."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """The inverse of :func:`decode`."""
    return text.encode("utf-8", "surrogateescape")


def only(words: list[bytes]) -> bytes:
    """The single argument of a directive."""
    if len(words) != 1:
        raise ValueError(WRONG_WORDS)
    return words[0]


class ValueKind(Generic[T]):
    """How values of type ``T`` are written, as bytes of a file or of the protocol."""

    def parse(self, words: list[bytes]) -> T:
        """The value of a directive in the file. Raises ``ValueError`` if it is not valid."""
        raise NotImplementedError

    def parse_set(self, value: bytes) -> T | None:
        """The value in CONFIG SET; ``None`` keeps the current one."""
        return self.parse([value])

    def show(self, value: T) -> bytes:
        """The value in the answer of CONFIG GET."""
        raise NotImplementedError

    def line(self, value: T) -> bytes | None:
        """The words for the value in a file; ``None`` if the line must be left out instead."""
        return self.show(value)


@attrs.frozen
class YesNo(ValueKind[bool]):
    """``yes`` or ``no``, in any case."""

    def parse(self, words: list[bytes]) -> bool:
        word = only(words).lower()
        if word not in (b"yes", b"no"):
            raise ValueError("argument must be 'yes' or 'no'")
        return word == b"yes"

    def show(self, value: bool) -> bytes:
        return b"yes" if value else b"no"


@attrs.frozen
class Choice(ValueKind[str]):
    """A choice of a few words, in any case; kept in lower case."""

    words: tuple[str, ...]
    message: str

    def parse(self, words: list[bytes]) -> str:
        word = decode(only(words).lower())
        if word not in self.words:
            raise ValueError(self.message)
        return word

    def show(self, value: str) -> bytes:
        return encode(value)


@attrs.frozen
class Number(ValueKind[int]):
    """A whole number from ``low`` to ``high``; others are refused with ``message``.

    ``set_low``: the least number that CONFIG SET accepts, if not ``low``; it takes numbers below
    ``low`` as ``low``.
    """

    message: str
    low: int = 0
    high: int = INT32_MAX
    set_low: int | None = None

    def parse(self, words: list[bytes]) -> int:
        return self._within(parse_int(only(words)))

    def parse_set(self, value: bytes) -> int:
        number = parse_int(value)
        if self.set_low is None:
            return self._within(number)
        if number < self.set_low:
            raise ValueError(self.message)
        return self._within(max(number, self.low))

    def _within(self, number: int) -> int:
        if not self.low <= number <= self.high:
            raise ValueError(self.message)
        return number

    def show(self, value: int) -> bytes:
        return b"%d" % value


@attrs.frozen
class NumberOrAuto(Number):
    """A number, or ``auto``, kept as 0."""

    def parse(self, words: list[bytes]) -> int:
        word = only(words)
        if word.lower() == b"auto":
            return 0
        if not word.isdigit():
            raise ValueError(self.message)
        return self._within(parse_int(word))

    def show(self, value: int) -> bytes:
        return b"%d" % value if value else b"auto"


@attrs.frozen
class Clamped(Number):
    """A number that is moved into its range instead of being refused."""

    def _within(self, number: int) -> int:
        return min(max(number, self.low), self.high)


@attrs.frozen
class Length(Number):
    """A limit on a length; a negative number in the file means no limit."""

    def _within(self, number: int) -> int:
        return number if number >= 0 else _UNLIMITED


@attrs.frozen
class Keepalive(Number):
    """Seconds, or ``yes`` for 1 and ``no`` for 0."""

    def parse(self, words: list[bytes]) -> int:
        word = only(words)
        switch = {b"yes": 1, b"no": 0}.get(word.lower())
        return self._within(parse_int(word)) if switch is None else switch

    def parse_set(self, value: bytes) -> int:
        return self.parse([value])


@attrs.frozen
class MemorySize(ValueKind[int]):
    """A number of bytes, which may be written with a unit. ``low``: the least. ``unlimited``:
    CONFIG SET takes 0, which means without limit, and the file does not."""

    message: str
    low: int = 0
    unlimited: bool = False

    def parse(self, words: list[bytes]) -> int:
        return self._at_least(self.low, parse_memory(only(words)))

    def parse_set(self, value: bytes) -> int:
        return self._at_least(0 if self.unlimited else self.low, parse_memory(value))

    def _at_least(self, low: int, size_bytes: int) -> int:
        if size_bytes < low:
            raise ValueError(self.message)
        return size_bytes

    def show(self, value: int) -> bytes:
        return b"%d" % value

    def line(self, value: int) -> bytes:
        return show_memory(_MEMORY_MAX if self.unlimited and not value else value)


@attrs.frozen
class Octal(ValueKind[int]):
    """Permission bits of a file."""

    def parse(self, words: list[bytes]) -> int:
        word = only(words)
        if not _OCTAL.fullmatch(word) or int(word, 8) > 0o777:
            raise ValueError("Invalid socket file permissions")
        return int(word, 8)

    def show(self, value: int) -> bytes:
        return b"%o" % value


@attrs.frozen
class Text(ValueKind[str]):
    """A string that fully matches ``pattern``. ``optional``: empty means 'none'."""

    message: str = "Invalid text"
    pattern: re.Pattern[str] = re.compile(r"[^\0]*")
    optional: bool = False

    def parse(self, words: list[bytes]) -> str:
        word = only(words)
        text = decode(word)
        if not self.pattern.fullmatch(text):
            raise ValueError(self.message.replace("{}", printable(word)))
        return text

    def show(self, value: str) -> bytes:
        return encode(value)

    def line(self, value: str) -> bytes | None:
        return None if self.optional and not value else quote(encode(value))


@attrs.frozen
class Path(Text):
    """The path of a file, relative to ``dir``."""


@attrs.frozen
class Password(ValueKind[bytes]):
    """A secret of at most 512 bytes; empty means none."""

    def parse(self, words: list[bytes]) -> bytes:
        word = only(words)
        if len(word) > 512:
            raise ValueError("Password is longer than CONFIG_AUTHPASS_MAX_LEN")
        return word

    def show(self, value: bytes) -> bytes:
        return value

    def line(self, value: bytes) -> bytes | None:
        return quote(value) if value else None
