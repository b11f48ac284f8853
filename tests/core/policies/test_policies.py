"""Which settings are in force for a queue."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.core.policies import policies
from disque_tx.core.policies.patterns import literal_prefix
from disque_tx.core.policies.policies import Policies, check_pattern
from disque_tx.errors import CommandError
from disque_tx.text.globs import glob_match
from tests import profiles  # noqa: F401

TTL = b"ttl"
PATTERNS = st.text("ab*?[]\\", min_size=1, max_size=5).map(str.encode)
QUEUES = st.text("ab", min_size=1, max_size=5).map(str.encode)


def specificity(pattern: bytes, queue: bytes) -> tuple[bool, int, bytes]:
    """The greatest comes first."""
    return pattern == queue, len(literal_prefix(pattern)), pattern


class PoliciesTests(SynchronousTestCase):
    """``Policies``."""

    def setUp(self) -> None:
        self.policies = Policies()

    def set(self, *patterns: bytes) -> None:
        """Give patterns a TTL of their own: their place, from 1."""
        for place, pattern in enumerate(patterns, 1):
            self.policies.set(pattern, TTL, b"%d" % place)

    def ttl(self, queue: bytes) -> Any:
        """The TTL in force for a queue."""
        policy = self.policies.of(queue)
        return None if policy is None else policy.ttl_s

    def test_none(self) -> None:
        """Without policies nothing is in force, and that is known without a look-up."""
        self.assertFalse(self.policies.active)
        self.assertIsNone(self.policies.of(b"q"))

    def test_remembered(self) -> None:
        """What is in force is looked for once per queue, however many queues there are and however
        long their names; a change is in force at once, everywhere."""
        self.set(b"a*")
        first = self.policies.of(b"a1")
        self.assertIs(first, self.policies.of(b"a1"))
        self.patch(policies, "REMEMBERED_MAX", 100)
        for number in range(500):
            self.assertEqual(1, self.ttl(b"a%d" % number))
            self.assertIsNone(self.policies.of(b"b%d" % number))
        for number in range(20):
            self.assertEqual(1, self.ttl(b"a%d" % number + b"x" * 500_000))
        self.policies.set(b"a*", TTL, b"9")
        self.assertEqual([9, 9, None], [self.ttl(name) for name in (b"a1", b"a499", b"b1")])
        self.policies.unset(b"a*", TTL)
        self.assertIsNone(self.ttl(b"a1"))
        self.assertFalse(self.policies.active)

    def test_most_specific(self) -> None:
        """An exact name wins, then the longest literal prefix, then the greater pattern."""
        self.set(b"*", b"mail:*", b"mail:a", b"mail:?", b"m*")
        self.assertEqual(3, self.ttl(b"mail:a"))
        self.assertEqual(4, self.ttl(b"mail:b"))
        self.assertEqual(2, self.ttl(b"mail:bb"))
        self.assertEqual(5, self.ttl(b"more"))
        self.assertEqual(1, self.ttl(b"other"))

    def test_setting_by_setting(self) -> None:
        """A setting that the most specific pattern does not have comes from the next one."""
        self.policies.set(b"a*", b"retry", b"7")
        self.policies.set(b"ab", TTL, b"9")
        policy = self.policies.of(b"ab")
        assert policy is not None
        self.assertEqual((9, 7), (policy.ttl_s, policy.retry_s))
        sources = {TTL: (b"9", b"ab"), b"retry": (b"7", b"a*")}
        self.assertEqual(sources, self.policies.sources(b"ab"))

    def test_change(self) -> None:
        """A change counts for queues whose policy was looked up before."""
        self.set(b"a*")
        self.assertEqual(1, self.ttl(b"ab"))
        self.policies.set(b"ab", TTL, b"2")
        self.assertEqual(2, self.ttl(b"ab"))
        self.policies.unset(b"ab", TTL)
        self.policies.unset(b"a*", TTL)
        self.assertIsNone(self.ttl(b"ab"))
        self.assertFalse(self.policies.active)

    def test_unset_unknown(self) -> None:
        """Removing what is not there changes nothing."""
        self.set(b"a*")
        self.policies.unset(b"a*", b"retry")
        self.policies.unset(b"b*", TTL)
        self.assertEqual([b"a*"], self.policies.patterns())

    def test_directives_are_weakest(self) -> None:
        """What the cluster agreed on wins against a configuration file, even where that is more
        specific."""
        self.policies.set_directives([(b"mail", TTL, b"1"), (b"mail", b"retry", b"2")])
        self.assertTrue(self.policies.active)
        self.assertEqual(1, self.ttl(b"mail"))
        self.policies.set(b"*", TTL, b"3")
        self.assertEqual(3, self.ttl(b"mail"))
        self.assertEqual((b"2", b"mail"), self.policies.sources(b"mail")[b"retry"])
        self.assertEqual([b"*"], self.policies.patterns())
        self.policies.set_directives([])
        self.assertNotIn(b"retry", self.policies.sources(b"mail"))

    @given(st.lists(PATTERNS, unique=True), QUEUES)
    def test_order(self, patterns: list[bytes], queue: bytes) -> None:
        """For any patterns, the matching ones are found, in the order of how specific they are."""
        policies = Policies()
        for pattern in patterns:
            policies.set(pattern, pattern, b"1")
        matching = [
            p for p in patterns if p == queue or (p != literal_prefix(p) and glob_match(p, queue))
        ]
        matching.sort(key=lambda pattern: specificity(pattern, queue), reverse=True)
        self.assertEqual(matching, list(policies.sources(queue)))

    @given(st.lists(st.tuples(PATTERNS, st.booleans())), QUEUES)
    def test_index(self, changes: list[tuple[bytes, bool]], queue: bytes) -> None:
        """However policies come and go, what is left is what was set last."""
        policies, left = Policies(), Policies()
        kept: dict[bytes, bool] = {}
        for pattern, there in changes:
            kept[pattern] = there
            (policies.set(pattern, TTL, b"1") if there else policies.unset(pattern, TTL))
        for pattern, there in kept.items():
            if there:
                left.set(pattern, TTL, b"1")
        self.assertEqual(left.patterns(), policies.patterns())
        self.assertEqual(left.sources(queue), policies.sources(queue))
        self.assertEqual(left.active, policies.active)


class PatternTests(SynchronousTestCase):
    """Patterns that clients may send."""

    def test_refused(self) -> None:
        """A pattern without end is refused before anything is matched with it."""
        for pattern in (b"", b"x" * 1025, b"*" * 1_000_000):
            error = self.assertRaises(CommandError, check_pattern, pattern)
            self.assertLess(len(error.text), 100)
        check_pattern(b"x" * 1024)

    def test_bounded(self) -> None:
        """A pattern with many stars takes no exponential time."""
        policies = Policies()
        policies.set(b"a*" * 200 + b"b", TTL, b"1")
        self.assertIsNone(policies.of(b"a" * 1_000))
        policies.set(b"a*a*a*a*b", TTL, b"2")
        self.assertIsNotNone(policies.of(b"a" * 1_000 + b"b"))

    def test_literal_prefix(self) -> None:
        """The prefix ends where matching begins."""
        for pattern, prefix in (
            (b"abc", b"abc"),
            (b"ab*c", b"ab"),
            (b"a[b]", b"a"),
            (b"\\*", b""),
            (b"?", b""),
        ):
            self.assertEqual(prefix, literal_prefix(pattern))
