"""Patterns are found without a look at all of them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.shared.patterns import PLAIN_MAX, PatternIndex, literal_prefix
from disque_tx.globs import glob_match
from tests import profiles  # noqa: F401

#: Stars with words of a few letters between them, so that many patterns share what they have.
SOME = (b"abab", b"baba", b"aaaaa", b"aab", b"ba", b"a", b"?", b"[ab]", b"")
WORDS = st.lists(st.sampled_from(SOME), max_size=4)
PATTERNS = st.tuples(st.sampled_from([b"", b"ab"]), WORDS).map(
    lambda parts: parts[0] + b"*" + b"*".join(parts[1])
)


class IndexTests(SynchronousTestCase):
    """:class:`PatternIndex`."""

    def test_short_literals(self) -> None:
        """A few letters between stars are enough to find a pattern: a new queue is not compared
        with ten thousand others."""
        index = PatternIndex()
        for number in range(4_096):
            index.add(b"*%03x*" % number)
        for number in range(400):
            index.add(b"*" + b"?" * number + b"*%c%c" % (71 + number % 20, 71 + number // 20))
        (group,) = index._groups.values()
        self.assertEqual([], group.plain)
        self.assertEqual([b"*0a7*"], group._candidates(b"q0a7q", 0))
        self.assertEqual([b"**GG"], group._candidates(b"GGq0", 0))

    def test_without_literals(self) -> None:
        """Clients may not make ever more patterns that have to be compared with each name."""
        index = PatternIndex()
        for number in range(PLAIN_MAX):
            pattern = b"?" * (number + 1)
            self.assertTrue(index.has_room(pattern))
            index.add(pattern)
        self.assertFalse(index.has_room(b"[ab]?"))
        self.assertTrue(index.has_room(b"*a"))
        self.assertTrue(index.has_room(b"x?"))

    @settings(deadline=None)
    @given(
        st.lists(PATTERNS, unique=True, min_size=20, max_size=80),
        st.text("ab", max_size=24).map(str.encode),
    )
    def test_finds_all(self, patterns: list[bytes], name: bytes) -> None:
        """With many patterns of one prefix as with few, a queue gets the settings of those that
        match, the most specific first."""
        index = PatternIndex()
        for pattern in patterns:
            index.add(pattern)
        for pattern in patterns[::3]:
            index.remove(pattern)
        left = [pattern for pattern in patterns if pattern not in patterns[::3]]
        expected = [pattern for pattern in left if glob_match(pattern, name)]
        expected.sort(key=lambda pattern: (len(literal_prefix(pattern)), pattern), reverse=True)
        self.assertEqual(expected, index.matching(name))
