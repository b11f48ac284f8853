"""Patterns of names of queues, and of settings."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.globs import escaped, glob_match, is_glob
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

    def test_many_stars(self) -> None:
        """A hostile pattern cannot block the node: with simple backtracking this would not end."""
        self.assertFalse(glob_match(b"*a" * 500 + b"b", b"a" * 1000))

    @given(st.binary(max_size=12), st.binary(max_size=12))
    def test_escaped(self, text: bytes, other: bytes) -> None:
        """An escaped name is a pattern for this name alone."""
        self.assertTrue(glob_match(escaped(text), text))
        self.assertEqual(text == other, glob_match(escaped(text), other))

    def test_is_glob(self) -> None:
        """A name without special characters is no pattern."""
        globs = [text for text in (b"a", b"a*", b"a?", b"[a]", b"a]", b"") if is_glob(text)]
        self.assertEqual([b"a*", b"a?", b"[a]"], globs)
