"""Glob patterns: ``*``, ``?``, ``[a-z]``, ``[^a]`` and ``\\`` (client protocol, section 6.6).

1. A pattern is taken apart once: into what stands between its stars.
2. What has neither ``?`` nor a class is looked for by ``bytes.find``. For the rest one number has a
   bit per place, of all beginnings that fit so far; a byte of the text is one step for all of them.
3. What stands between two stars is looked for from the left, once: the first place where it fits
   leaves the most to what follows. So the time for a match grows with the text, however many stars
   and classes there are.

HTTP takes names of queues by :class:`NamePattern` instead: as shells do, of characters, not bytes.
"""

from __future__ import annotations

from fnmatch import translate
from re import compile as compiled
from typing import Final

from mypy_extensions import i64, mypyc_attr

_SPECIAL: Final = b"*?["
_STAR: Final = 42
_ANY: Final = 63
_OPEN: Final = 91
_CLOSE: Final = 93
_ESCAPE: Final = 92
_NOT: Final = 94
_RANGE: Final = 45
#: Bytes that take as long as a match with a short text: looked at one by one, and by ``find``.
_BYTEWISE_BYTES: Final = 16
_FOUND_BYTES: Final = 1_024


def is_glob(text: bytes) -> bool:
    """Whether the text has a character that makes it match more than itself."""
    return any(byte in text for byte in _SPECIAL)


def is_plain(pattern: bytes) -> bool:
    """Whether a pattern has no special character at all: it matches itself only."""
    return not is_glob(pattern) and _ESCAPE not in pattern


def escaped(text: bytes) -> bytes:
    """The pattern that matches this text only."""
    for byte in (b"\\", b"*", b"?", b"["):
        text = text.replace(byte, b"\\" + byte)
    return text


def glob_match(pattern: bytes, text: bytes) -> bool:
    """Whether all of ``text`` matches ``pattern`` (client protocol, section 6.6); case matters.

    For many texts with the same pattern, keep a :class:`Glob`.
    """
    return Glob(pattern).matches(text)


class _Segment:
    """What stands between two stars. ``size``: how many bytes it matches. ``literal``: itself, if
    it has nothing special."""

    __slots__ = ("_last", "_masks", "_places", "literal", "size")

    def __init__(self, places: list[bytes]) -> None:
        self.size: i64 = len(places)
        self.literal: bytes | None = None
        # By byte: the places that it fits, a bit each; once that is needed.
        self._masks: list[int] = []
        # The bit of the last place. There may be more places than a machine word has bits.
        self._last: int = 0
        self._places: list[bytes] = places
        for place in places:
            if len(place) != 1:
                return
        self.literal = b"".join(places)
        self._places = []

    def _set_masks(self) -> None:
        masks = [0] * 256
        everywhere = 0
        bit: int = 1
        for place in self._places:
            if len(place) == 256:
                everywhere |= bit
            else:
                for byte in place:
                    masks[byte] |= bit
            self._last = bit
            bit <<= 1
        self._masks = [mask | everywhere for mask in masks]
        self._places = []

    def fits(self, text: bytes, at: i64) -> bool:
        """Whether it matches at this very place."""
        literal = self.literal
        if literal is not None:
            return text.startswith(literal, at)
        return self._end(text, at, at + self.size) >= 0

    def end(self, text: bytes, at: i64, end: i64) -> i64:
        """Where the first match between these places ends; -1 if there is none."""
        literal = self.literal
        if literal is not None:
            found: i64 = text.find(literal, at, end)
            return found + self.size if found >= 0 else -1
        return self._end(text, at, end)

    def _end(self, text: bytes, at: i64, end: i64) -> i64:
        if not self._masks:
            self._set_masks()
        masks = self._masks
        last = self._last
        begun: int = 0
        while at < end:
            begun = ((begun << 1) | 1) & masks[text[at]]
            at += 1
            if begun & last:
                return at
        return -1


class Glob:
    """A pattern that was taken apart. ``pattern``: the whole of it."""

    __slots__ = ("_between", "_bytewise", "_first", "_last", "pattern")

    def __init__(self, pattern: bytes) -> None:
        self.pattern: bytes = pattern
        segments = _segments(pattern)
        self._first: _Segment = segments[0]
        # ``None`` without a star; what ends the text otherwise.
        self._last: _Segment | None = segments[-1] if len(segments) > 1 else None
        self._between: list[_Segment] = [found for found in segments[1:-1] if found.size]
        self._bytewise: bool = False
        for segment in self._between:
            if segment.literal is None:
                self._bytewise = True

    def price(self, size: i64) -> i64:
        """What a match with a text of this size takes at the most, compared with a short one: for
        whoever does many matches in slices."""
        return 1 + size // (_BYTEWISE_BYTES if self._bytewise else _FOUND_BYTES)

    def key(self) -> bytes:
        """Some bytes that every matching text has behind the beginning of the pattern; empty if
        there are none."""
        longest = b""
        for segment in self._between:
            literal = segment.literal
            if literal is not None and len(literal) > len(longest):
                longest = literal
        last = self._last.literal if self._last is not None else None
        if last is not None and len(last) > len(longest):
            longest = last
        return longest

    def matches(self, text: bytes) -> bool:
        """Whether all of ``text`` matches; case matters."""
        first, last = self._first, self._last
        size: i64 = len(text)
        if last is None:
            return size == first.size and first.fits(text, 0)
        end = size - last.size
        at = first.size
        if at > end or not first.fits(text, 0) or not last.fits(text, end):
            return False
        for segment in self._between:
            at = segment.end(text, at, end)
            if at < 0:
                return False
        return True


def _segments(pattern: bytes) -> list[_Segment]:
    """What stands before the first star, between stars, and behind the last one."""
    segments: list[_Segment] = []
    # For each place the bytes that fit there.
    places: list[bytes] = []
    at: i64 = 0
    size: i64 = len(pattern)
    while at < size:
        byte: i64 = pattern[at]
        if byte == _STAR:
            segments.append(_Segment(places))
            places = []
        elif byte == _ANY:
            places.append(_EVERY)
        elif byte == _OPEN:
            end = _class_end(pattern, at + 1)
            places.append(_class_bytes(pattern[at + 1 : end]))
            at = end
        else:
            if byte == _ESCAPE and at + 1 < size:
                at += 1
            places.append(pattern[at : at + 1])
        at += 1
    segments.append(_Segment(places))
    return segments


_EVERY: Final = bytes(range(256))


def _class_end(pattern: bytes, at: i64) -> i64:
    """Where the ``]`` stands; the end of the pattern for a class that is never closed."""
    size: i64 = len(pattern)
    if at < size and pattern[at] == _NOT:
        at += 1
    while at < size and pattern[at] != _CLOSE:
        if pattern[at] == _ESCAPE and at + 1 < size:
            at += 1
        elif at + 2 < size and pattern[at + 1] == _RANGE:
            at += 2
        at += 1
    return min(at, size)


def _class_bytes(inner: bytes) -> bytes:
    """The bytes in a class. ``inner``: what stands between its brackets."""
    negated = inner[:1] == b"^"
    at: i64 = 1 if negated else 0
    size: i64 = len(inner)
    fits = [negated] * 256
    while at < size:
        low: i64 = inner[at]
        high = low
        if low == _ESCAPE and at + 1 < size:
            at += 1
            low = high = inner[at]
        elif at + 2 < size and inner[at + 1] == _RANGE:
            high = inner[at + 2]
            at += 2
            if high < low:
                low, high = high, low
        while low <= high:
            fits[low] = not negated
            low += 1
        at += 1
    return bytes([byte for byte in range(256) if fits[byte]])


@mypyc_attr(allow_interpreted_subclasses=True)
class NamePattern:
    """``longest``: bytes of names that it may match; longer ones are none."""

    def __init__(self, pattern: str, longest: int) -> None:
        self.size = len(pattern.encode())
        self.everything = pattern == "*"
        self._longest = longest
        self._match = compiled(translate(pattern)).match

    def matches(self, name: bytes) -> bool:
        """Whether a name is meant."""
        if len(name) > self._longest:
            return False
        return self.everything or self._match(name.decode("utf-8", "backslashreplace")) is not None
