"""Patterns of names of queues, and of settings."""

from __future__ import annotations

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.text.globs import escaped, glob_match, is_glob, is_plain
from tests import profiles  # noqa: F401


class GlobTests(SynchronousTestCase):
    """Patterns of CONFIG GET (client protocol, section 6.6)."""

    def test_matches(self) -> None:
        """Each form of the pattern language matches correctly."""
        for pattern, text in [
            (b"*", b""),
            (b"**", b"hz"),
            (b"h?", b"hz"),
            (b"a*n*e", b"appendonly-mode"),
            (b"[abc]x", b"bx"),
            (b"[a-c]x", b"cx"),
            (b"[c-a]x", b"bx"),
            (b"[^a]x", b"bx"),
            (b"[\\]]", b"]"),
            (b"[a", b"a"),
            (b"\\*", b"*"),
            (b"a\\", b"a\\"),
        ]:
            self.assertTrue(glob_match(pattern, text), (pattern, text))

    def test_does_not_match(self) -> None:
        """A pattern must match the whole text, and the case of letters."""
        for pattern, text in [
            (b"", b"hz"),
            (b"h", b"hz"),
            (b"z", b"hz"),
            (b"HZ", b"hz"),
            (b"h??", b"hz"),
            (b"[^h]z", b"hz"),
            (b"[a-c]x", b"dx"),
            (b"[]x", b"x"),
            (b"\\?", b"x"),
            (b"*b", b"abc"),
        ]:
            self.assertFalse(glob_match(pattern, text), (pattern, text))

    @settings(deadline=None)
    @given(st.text("ab*?", max_size=8), st.text("ab", max_size=8))
    def test_agrees_with_regular_expressions(self, pattern: str, text: str) -> None:
        """Stars match like in regular expressions, also where the matcher has to backtrack."""
        same = pattern.replace("*", ".*").replace("?", ".")
        expected = re.fullmatch(same, text) is not None
        self.assertEqual(expected, glob_match(pattern.encode(), text.encode()))

    @settings(deadline=None)
    @given(
        st.text("ab*?[]^-\\", max_size=10).map(str.encode),
        st.text("ab*?[]^-\\", max_size=8).map(str.encode),
    )
    @example(b"[a-]b]*", b"]b]")
    @example(b"*[^", b"a")
    @example(b"[a\\", b"\\")
    @example(b"*a?*?b", b"aab")
    def test_agrees_with_simple_matcher(self, pattern: bytes, text: bytes) -> None:
        """Patterns mean what they always meant, damaged ones as well: policies rest on them."""
        self.assertEqual(simple_match(pattern, text), glob_match(pattern, text))

    def test_many_stars(self) -> None:
        """A hostile pattern cannot block the node: with backtracking these would not end."""
        self.assertFalse(glob_match(b"*a" * 500 + b"b", b"a" * 1000))
        self.assertFalse(glob_match(b"*" + b"a" * 10_000 + b"b", b"a" * 1_000_000))
        self.assertFalse(glob_match(b"*" + b"[a-z]" * 5_000 + b"[0-9]*", b"a" * 20_000))

    def test_many_places(self) -> None:
        """A long pattern of classes matches what it should, and nothing else."""
        for places in (1, 2, 62, 63, 64, 65, 128, 300):
            pattern = b"*" + b"[a-y]" * places + b"z*"
            self.assertTrue(glob_match(pattern, b"z" + b"a" * places + b"z"), places)
            self.assertFalse(glob_match(pattern, b"z" + b"a" * (places - 1) + b"z"), places)
            self.assertFalse(glob_match(pattern, b"a" * 400), places)

    def test_is_plain(self) -> None:
        """A pattern without special characters is a name, and may be as long as one."""
        plain = [text for text in (b"a", b"a*", b"a?", b"[a]", b"a]", b"\\a") if is_plain(text)]
        self.assertEqual([b"a", b"a]"], plain)

    @given(st.binary(max_size=12), st.binary(max_size=12))
    def test_escaped(self, text: bytes, other: bytes) -> None:
        """An escaped name is a pattern for this name alone."""
        self.assertTrue(glob_match(escaped(text), text))
        self.assertEqual(text == other, glob_match(escaped(text), other))

    def test_is_glob(self) -> None:
        """A name without special characters is no pattern."""
        globs = [text for text in (b"a", b"a*", b"a?", b"[a]", b"a]", b"") if is_glob(text)]
        self.assertEqual([b"a*", b"a?", b"[a]"], globs)


def simple_match(pattern: bytes, text: bytes) -> bool:
    """The definition of a match, byte by byte, with every way that a star can go."""
    if not pattern:
        return not text
    if pattern[:1] == b"*":
        return any(simple_match(pattern[1:], text[at:]) for at in range(len(text) + 1))
    if not text:
        return False
    used = 1
    fits = pattern[:1] in (b"?", text[:1])
    if pattern[:1] == b"[":
        fits, used = simple_class(pattern, text[0])
    elif pattern[:1] == b"\\" and len(pattern) > 1:
        fits, used = pattern[1] == text[0], 2
    return fits and simple_match(pattern[used:], text[1:])


def simple_class(pattern: bytes, byte: int) -> tuple[bool, int]:
    """Whether the byte is in the class that the pattern begins with, and how long the class is."""
    negated = pattern[1:2] == b"^"
    at = 2 if negated else 1
    found = False
    while at < len(pattern) and pattern[at : at + 1] != b"]":
        low = high = pattern[at]
        if pattern[at : at + 1] == b"\\" and at + 1 < len(pattern):
            at += 1
            low = high = pattern[at]
        elif pattern[at + 1 : at + 2] == b"-" and at + 2 < len(pattern):
            low, high = sorted((pattern[at], pattern[at + 2]))
            at += 2
        found = found or low <= byte <= high
        at += 1
    return found != negated, min(at + 1, len(pattern))
