"""Which of many patterns match a name, without a look at most of them.

1. Patterns are found by their literal prefix, one look-up per length in use.
2. Where many have the same prefix, they are found by a few bytes that every matching name has
   behind it, one look-up per place of the name and number of bytes. Only those found are matched.
3. Of patterns with one prefix that have no such bytes, as ``???``, there are :data:`PLAIN_MAX`.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Final

from mypy_extensions import i64

from disque_tx.text.globs import Glob

#: Bytes by which patterns are found, at the most.
_GRAM_BYTES: Final = 4
#: Patterns of one prefix that clients may make, of those that are matched one by one.
PLAIN_MAX: Final = 1_000
#: So many patterns of one prefix are matched one by one.
_FEW: Final = 16
_SPECIAL: Final = b"*?[\\"


def literal_prefix(pattern: bytes) -> bytes:
    """What every matching name begins with."""
    at: i64 = 0
    size: i64 = len(pattern)
    while at < size and pattern[at] not in _SPECIAL:
        at += 1
    return pattern[:at]


class _Group:
    """Patterns with the same literal prefix, in byte order. ``plain``: those that no bytes are
    known of; ``by_gram``: the others. ``sizes``: how many grams there are of each length."""

    __slots__ = ("by_gram", "globs", "patterns", "plain", "sizes")

    def __init__(self) -> None:
        self.patterns: list[bytes] = []
        self.globs: dict[bytes, Glob] = {}
        self.plain: list[bytes] = []
        self.by_gram: dict[bytes, list[bytes]] = {}
        self.sizes: list[int] = [0] * (_GRAM_BYTES + 1)

    def add(self, pattern: bytes) -> None:
        insort(self.patterns, pattern)
        glob = self.globs[pattern] = Glob(pattern)
        gram = glob.key()[-_GRAM_BYTES:]
        if not gram:
            insort(self.plain, pattern)
        elif gram in self.by_gram:
            self.by_gram[gram].append(pattern)
        else:
            self.by_gram[gram] = [pattern]
            self.sizes[len(gram)] += 1

    def remove(self, pattern: bytes) -> None:
        del self.patterns[bisect_left(self.patterns, pattern)]
        gram = self.globs.pop(pattern).key()[-_GRAM_BYTES:]
        if not gram:
            del self.plain[bisect_left(self.plain, pattern)]
            return
        listed = self.by_gram[gram]
        listed.remove(pattern)
        if not listed:
            del self.by_gram[gram]
            self.sizes[len(gram)] -= 1

    def matching(self, name: bytes, at: i64, found: list[bytes]) -> None:
        """Add those that match, the greatest first. ``at``: where the prefix ends."""
        candidates = self.patterns
        if len(candidates) > _FEW:
            candidates = self._candidates(name, at)
        place: i64 = len(candidates) - 1
        while place >= 0:
            pattern = candidates[place]
            if self.globs[pattern].matches(name):
                found.append(pattern)
            place -= 1

    def _candidates(self, name: bytes, at: i64) -> list[bytes]:
        by_gram = self.by_gram
        listed = list(self.plain)
        seen: set[bytes] = set()
        size: i64 = 1
        while size <= _GRAM_BYTES:
            place: i64 = at
            last: i64 = len(name) - size if self.sizes[size] else -1
            while place <= last:
                gram = name[place : place + size]
                if gram in by_gram and gram not in seen:
                    seen.add(gram)
                    listed += by_gram[gram]
                place += 1
            size += 1
        listed.sort()
        return listed


class PatternIndex:
    """The patterns."""

    __slots__ = ("_groups", "_lengths", "_sorted_lengths")

    def __init__(self) -> None:
        # By literal prefix.
        self._groups: dict[bytes, _Group] = {}
        # Length of a prefix → how many prefixes have it; and the lengths, the longest first.
        self._lengths: dict[int, int] = {}
        self._sorted_lengths: list[int] = []

    def has_room(self, pattern: bytes) -> bool:
        """Whether a client may add this pattern, which is not there."""
        group = self._groups.get(literal_prefix(pattern))
        return group is None or len(group.plain) < PLAIN_MAX or bool(Glob(pattern).key())

    def add(self, pattern: bytes) -> None:
        """Add a pattern that is not there."""
        prefix = literal_prefix(pattern)
        group = self._groups.get(prefix)
        if group is None:
            group = self._groups[prefix] = _Group()
            length = len(prefix)
            self._lengths[length] = self._lengths.get(length, 0) + 1
            if self._lengths[length] == 1:
                self._sort()
        group.add(pattern)

    def remove(self, pattern: bytes) -> None:
        """Remove a pattern that is there."""
        prefix = literal_prefix(pattern)
        group = self._groups[prefix]
        group.remove(pattern)
        if not group.patterns:
            del self._groups[prefix]
            length = len(prefix)
            self._lengths[length] -= 1
            if not self._lengths[length]:
                del self._lengths[length]
                self._sort()

    def _sort(self) -> None:
        self._sorted_lengths = sorted(self._lengths, reverse=True)

    def matching(self, name: bytes) -> list[bytes]:
        """The patterns that match a name: the longest literal prefix first, then the greater one
        in byte order."""
        found: list[bytes] = []
        for length in self._sorted_lengths:
            if length <= len(name):
                group = self._groups.get(name[:length])
                if group is not None:
                    group.matching(name, length, found)
        return found
