"""A hash table that can be scanned while it changes, at a cost that does not grow with its size.

Why not one dict: growing a dict of a million entries stops the node for tens of milliseconds, and
a dict cannot be scanned in pieces while it changes. Here the entries lie in many small dicts
(linear hashing): one of them is split or merged at a time.

The scan (client protocol, sections 18 and 19): order all entries by the bit-reversed hash. Every
small dict then holds one contiguous range of that order, and a split or merge only cuts or joins
ranges. A cursor is a position in the order, everything before it was visited; so an entry that is
there during the whole scan is returned at least once, whatever happens in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from mypy_extensions import i64

T = TypeVar("T")

_HASH_BITS: Final = 32
_HASH_MASK: Final = (1 << _HASH_BITS) - 1
#: Entries per small dict, on average: split above the first, merge below the second. Small enough
#: to be split in no time; so few that what every look-up touches of them stays in the cache.
_SPLIT: Final = 1_024
_MERGE: Final = 256
#: Entries looked for in one step of a scan, on average.
_STEP: Final = 96


class Table(Generic[T]):
    """Values by key. ``len()`` is the number of entries."""

    __slots__ = ("count", "_parts", "_level")

    def __init__(self) -> None:
        self.count: i64 = 0
        self._parts: list[dict[bytes, T]] = [{}]
        # 2 ** _level parts at least; those below len(_parts) - 2 ** _level are already split.
        self._level: i64 = 0

    def __len__(self) -> int:
        return self.count

    def _part(self, hashed: i64) -> i64:
        index = hashed & ((2 << self._level) - 1)
        if index >= len(self._parts):
            index = hashed & ((1 << self._level) - 1)
        return index

    def get(self, key: bytes) -> T | None:
        """The value of ``key``."""
        hashed: i64 = hash(key)
        return self._parts[self._part(hashed)].get(key)

    def put(self, key: bytes, value: T) -> None:
        """Add an entry; ``key`` must not be there."""
        hashed: i64 = hash(key)
        self._parts[self._part(hashed)][key] = value
        self.count += 1
        if self.count > _SPLIT * len(self._parts):
            self._split()

    def remove(self, key: bytes) -> None:
        """Take an entry out; ``KeyError`` when it is not there."""
        hashed: i64 = hash(key)
        del self._parts[self._part(hashed)][key]
        self.count -= 1
        if len(self._parts) > 1 and self.count < _MERGE * len(self._parts):
            self._merge()

    def _split(self) -> None:
        size: i64 = len(self._parts)
        if size == 2 << self._level:
            self._level += 1
        low: i64 = size - (1 << self._level)
        bit: i64 = 1 << self._level
        stay: dict[bytes, T] = {}
        move: dict[bytes, T] = {}
        for key, value in self._parts[low].items():
            hashed: i64 = hash(key)
            if hashed & bit:
                move[key] = value
            else:
                stay[key] = value
        self._parts[low] = stay
        self._parts.append(move)

    def _merge(self) -> None:
        last = self._parts.pop()
        size: i64 = len(self._parts)
        if size < (1 << self._level) and self._level > 0:
            self._level -= 1
        low: i64 = size - (1 << self._level)
        merged = dict(self._parts[low])
        merged.update(last)
        self._parts[low] = merged

    def clear(self) -> None:
        """Forget every entry."""
        self.count = 0
        self._parts = [{}]
        self._level = 0

    def values(self) -> Iterator[T]:
        """Every value; the table must not change meanwhile."""
        for part in self._parts:
            yield from part.values()

    def scan(self, cursor: int) -> tuple[int, list[T]]:
        """One step: the next cursor, 0 at the end, and the values found at ``cursor``."""
        position: i64 = cursor & _HASH_MASK
        hashed = _reversed(position)
        part = self._parts[self._part(hashed)]
        bits = self._bits(hashed)
        size: i64 = len(part)
        while size > _STEP and bits < _HASH_BITS:
            bits += 1
            size //= 2
        # Shifted to the right: compiled, a 1 has 32 bits, too few to be shifted this far left.
        span: i64 = (_HASH_MASK + 1) >> bits
        following: i64 = (position & ~(span - 1)) + span
        if following > _HASH_MASK:
            following = 0
        low: i64 = _HASH_MASK >> (_HASH_BITS - bits)
        wanted = hashed & low
        found: list[T] = []
        for key, value in part.items():
            here: i64 = hash(key)
            if here & low == wanted:
                found.append(value)
        return following, found

    def _bits(self, hashed: i64) -> i64:
        """How many low bits of the hash all keys of a part share."""
        if (hashed & ((1 << self._level) - 1)) < len(self._parts) - (1 << self._level):
            return self._level + 1
        return self._level

    def pick(self, random: i64) -> T | None:
        """Some value, chosen by ``random`` (any number); ``None`` when the table is empty."""
        if self.count == 0:
            return None
        size: i64 = len(self._parts)
        at = random % size
        while not self._parts[at]:
            at = (at + 1) % size
        part = self._parts[at]
        skip = (random // size) % len(part)
        for value in part.values():
            if skip == 0:
                return value
            skip -= 1
        return None


def _reversed(value: i64) -> i64:
    """The low 32 bits in reverse order."""
    result: i64 = 0
    for _ in range(_HASH_BITS):
        result = result << 1 | value & 1
        value >>= 1
    return result
