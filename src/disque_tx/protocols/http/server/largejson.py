"""Objects in JSON whose values are strings, numbers and constants, read in slices.

The body of a request that adds a job may be large, because the body of the job is. What is large in
it is one string: it is read part by part, and kept as the bytes of its UTF-8. Anything nested is
refused, so what a request costs in memory is a few times its size, whatever it contains.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from disque_tx.protocols.http.server.slices import Share, Slices

#: Bytes of a string that are read at once.
PART_BYTES: Final = 32 * 1024
#: Reading a byte costs as much as looking at so many.
_READING: Final = 2
#: Members of an object.
_MEMBERS_MAX: Final = 100
_SPACE: Final = re.compile(rb"[ \t\n\r]*")
#: A number or a constant; what exactly it is, the parser of JSON decides.
_SCALAR: Final = re.compile(rb"[-+.0-9A-Za-z]{1,64}")
#: The characters of a string up to its end, or to something that is no part of one.
_CHARACTERS: Final = re.compile(rb'[^"\\\x00-\x1f]*(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^"\\\x00-\x1f]*)*')
#: The first halves of characters that are written as two escapes.
_HIGH: Final = re.compile("[\ud800-\udbff]$")
_HALVES: Final = re.compile("[\ud800-\udfff]")
#: Shorter strings are texts, as elsewhere.
_TEXT_BYTES: Final = 4 * 1024


class _Reader:
    """One body, read from the beginning. ``ValueError`` for what is not JSON."""

    def __init__(self, data: bytes, slices: Slices, part_bytes: int) -> None:
        self._data = data
        self._part_bytes = part_bytes
        self._at = 0
        self._share = Share(slices)

    async def read(self) -> dict[str, Any]:
        """The members of the object."""
        values: dict[str, Any] = {}
        self._expect(b"{")
        if self._next() == b"}":
            self._at += 1
        else:
            await self._members(values)
        if self._next():
            raise ValueError("more follows the object")
        return values

    async def _members(self, values: dict[str, Any]) -> None:
        for _ in range(_MEMBERS_MAX):
            name = (await self._string()).decode()
            self._expect(b":")
            values[name] = await self._value()
            if self._next() == b"}":
                self._at += 1
                return
            self._expect(b",")
        raise ValueError("too many members")

    def _next(self) -> bytes:
        """The next character that is not a space; empty at the end."""
        found = _SPACE.match(self._data, self._at)
        assert found is not None
        self._at = found.end()
        return self._data[self._at : self._at + 1]

    def _expect(self, character: bytes) -> None:
        if self._next() != character:
            raise ValueError(f"{character!r} is missing")
        self._at += 1

    async def _value(self) -> Any:
        if self._next() == b'"':
            value = await self._string()
            return value if len(value) > _TEXT_BYTES else value.decode()
        found = _SCALAR.match(self._data, self._at)
        if found is None:
            raise ValueError("neither a string, a number nor a constant")
        self._at = found.end()
        return json.loads(found[0], parse_constant=refuse_constant)

    async def _string(self) -> bytes:
        """A string as UTF-8."""
        self._expect(b'"')
        parts: list[bytes] = []
        carried = ""
        while True:
            await self._share.spend(_READING * self._part_bytes)
            part, ended = self._part()
            text, carried = carried + part, ""
            if not ended and _HIGH.search(text):
                text, carried = text[:-1], text[-1]  # its other half is in the next part
            if not text.isascii() and _HALVES.search(text):
                text = text.encode("utf-16", "surrogatepass").decode("utf-16")
            parts.append(text.encode())
            if ended:
                return b"".join(parts)

    def _part(self) -> tuple[str, bool]:
        """The next characters, and whether the string ends behind them."""
        data, start = self._data, self._at
        found = _CHARACTERS.match(data, start, start + self._part_bytes)
        assert found is not None
        end = found.end()
        ended = end < len(data) and data[end] == 0x22
        if not ended:
            while end > start and end < len(data) and data[end] & 0xC0 == 0x80:
                end -= 1  # not within a character
            if end == start:
                raise ValueError("a string is malformed, or does not end")
        self._at = end + ended
        text = json.loads(b'"' + data[start:end] + b'"')
        assert isinstance(text, str)
        return text, ended


async def read_flat(data: bytes, slices: Slices, part_bytes: int = PART_BYTES) -> dict[str, Any]:
    """The members of an object; long strings as bytes of UTF-8. ``part_bytes``: of a string that
    are read at once. ``ValueError`` for anything else."""
    return await _Reader(data, slices, part_bytes).read()


def refuse_constant(word: str) -> None:
    """``NaN`` and the like, which JSON does not have."""
    raise ValueError(f"{word} is not JSON")
