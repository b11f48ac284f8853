"""A hash table that can be scanned while it changes, at a cost that does not grow with its size.

Why not a dict: growing one of a million entries stops the node for tens of milliseconds, it cannot
be scanned in pieces while it changes, and with a million entries its probing waits for the memory
again and again. Here the entries of a bucket are a chain through the entries themselves, and the
table grows and shrinks by one bucket at a time (linear hashing).

The scan (client protocol, sections 18 and 19): order all entries by the bit-reversed hash. Every
bucket then holds one contiguous range of that order, and splitting or merging only cuts or joins
ranges. A cursor is a position in the order, everything before it was visited; so an entry that is
there during the whole scan is returned at least once, whatever happens in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, TypeVar, cast

from mypy_extensions import i64

from disque_tx.messages.records import Keyed, hash32

T = TypeVar("T", bound=Keyed)

_HASH_BITS: Final = 32
_HASH_MASK: Final = (1 << _HASH_BITS) - 1
#: Buckets per entry up to which the table grows, so that most chains are of one or two entries, and
#: at which it begins to shrink.
_DENSE: Final = 1
_SPARSE: Final = 4
#: Entries that a table of names finds by a dict.
RECENT_MAX: Final = 4_096


class Table(Generic[T]):
    """Entries by ``id``; an entry is in one table at a time. ``len()`` is their number.

    ``key_bytes``: how many bytes of its ``data`` are the ID of an entry, -1 for all of them.
    ``walks``: how many walks are under way, which are kept from merging buckets.
    """

    __slots__ = ("_buckets", "_high", "_key_bytes", "_low", "count", "walks")

    def __init__(self, key_bytes: i64 = -1) -> None:
        self._key_bytes: i64 = key_bytes
        self.count: i64 = 0
        self.walks: i64 = 0
        self._buckets: list[Keyed | None] = [None]
        # Masks of the hash: buckets from _low + 1 on were split off those _low + 1 below them.
        self._low: i64 = 0
        self._high: i64 = 1

    def clear(self) -> None:
        """Forget every entry."""
        self.count = 0
        self._buckets = [None]
        self._low = 0
        self._high = 1

    def __len__(self) -> int:
        return self.count

    def _at(self, hashed: i64) -> i64:
        """The bucket of a hash."""
        at = hashed & self._high
        return at if at < len(self._buckets) else hashed & self._low

    def get(self, key: bytes) -> T | None:
        """The entry with this ``id``."""
        hashed = hash32(key)
        entry = self._buckets[self._at(i64(hashed))]
        while entry is not None:
            if entry.hashed == hashed and self._is(entry.data, key):
                return cast(T, entry)
            entry = entry.chain
        return None

    def _is(self, data: bytes, key: bytes) -> bool:
        """Whether this is the data of the entry with this ``id``."""
        if self._key_bytes < 0:
            return data is key or data == key
        return len(key) == self._key_bytes and data.startswith(key)

    def put(self, entry: T) -> None:
        """Add an entry; none with its ``id`` may be there."""
        at = self._at(i64(entry.hashed))
        entry.chain = self._buckets[at]
        self._buckets[at] = entry
        self.count += 1
        while _DENSE * self.count > len(self._buckets):
            self._split()

    def remove(self, entry: T) -> None:
        """Take an entry out; ``KeyError`` when it is not there."""
        at = self._at(i64(entry.hashed))
        before: Keyed | None = None
        here = self._buckets[at]
        while here is not None and here is not entry:
            before = here
            here = here.chain
        if here is None:
            raise KeyError(entry.id)
        if before is None:
            self._buckets[at] = here.chain
        else:
            before.chain = here.chain
        here.chain = None
        self.count -= 1
        if self.walks == 0 and len(self._buckets) > _SPARSE * self.count + _SPARSE:
            self._merge()
            if len(self._buckets) > _SPARSE * self.count + _SPARSE:
                self._merge()  # walks may have left more than one

    def _split(self) -> None:
        """Grow by one bucket, which takes its part from the one below it."""
        buckets = self._buckets
        size: i64 = len(buckets)
        if size > self._high:
            self._low = self._high
            self._high = 2 * self._high + 1
        bit = self._low + 1
        stay: Keyed | None = None
        move: Keyed | None = None
        entry = buckets[size - bit]
        while entry is not None:
            following = entry.chain
            if i64(entry.hashed) & bit:
                entry.chain = move
                move = entry
            else:
                entry.chain = stay
                stay = entry
            entry = following
        buckets[size - bit] = stay
        buckets.append(move)

    def _merge(self) -> None:
        """Shrink by one bucket, which goes back to the one below it."""
        buckets = self._buckets
        entry = buckets.pop()
        size: i64 = len(buckets)
        if size <= self._low:
            self._high = self._low
            self._low = self._low // 2
        at = size - self._low - 1
        while entry is not None:
            following = entry.chain
            entry.chain = buckets[at]
            buckets[at] = entry
            entry = following

    def values(self) -> Iterator[T]:
        """Every entry; the table must not change meanwhile."""
        for entry in self._buckets:
            while entry is not None:
                yield cast(T, entry)
                entry = entry.chain

    def scan(self, cursor: int) -> tuple[int, list[T]]:
        """One step of a scan: the next cursor, 0 at the end, and the entries of the bucket at
        ``cursor``."""
        return self.scan_part(cursor, 1)

    def scan_part(self, cursor: int, most: i64) -> tuple[int, list[T]]:
        """Several steps of a scan at once, until about ``most`` entries and buckets were looked
        at."""
        buckets = self._buckets
        # Buckets that were split, and those split off, use one bit of the hash more.
        split: i64 = i64(len(buckets)) - self._low - 1
        narrow = (_HASH_MASK + 1) // (self._high + 1) - 1
        wide = (_HASH_MASK + 1) // (self._low + 1) - 1
        position: i64 = cursor & _HASH_MASK
        looked_at: i64 = 0
        found: list[T] = []
        while looked_at < most and position <= _HASH_MASK:
            at = self._at(_reversed(position))
            entry = buckets[at]
            while entry is not None:
                found.append(cast(T, entry))
                entry = entry.chain
                looked_at += 1
            looked_at += 1
            # The bucket holds a range of positions, of this size: the next one begins behind it.
            position = (position | (narrow if (at & self._low) < split else wide)) + 1
        return (int(position) if position <= _HASH_MASK else 0), found

    def size(self) -> i64:
        """How many buckets there are."""
        return i64(len(self._buckets))

    def part(self, at: i64, most: i64) -> tuple[i64, list[T]]:
        """A part of a walk, from a bucket on until about ``most`` entries and buckets were looked
        at: the bucket after it, -1 at the end, and the entries."""
        buckets = self._buckets
        found: list[T] = []
        looked_at: i64 = 0
        while looked_at < most and at < len(buckets):
            entry = buckets[at]
            while entry is not None:
                found.append(cast(T, entry))
                entry = entry.chain
                looked_at += 1
            looked_at += 1
            at += 1
        return (at if at < len(buckets) else -1), found

    def pick(self, random: i64) -> T | None:
        """Some entry, chosen by ``random`` (any number); ``None`` when the table is empty."""
        if self.count == 0:
            return None
        size: i64 = len(self._buckets)
        at = random % size
        while self._buckets[at] is None:
            at = (at + 1) % size
        chain: list[Keyed] = []
        entry = self._buckets[at]
        while entry is not None:
            chain.append(entry)
            entry = entry.chain
        return cast(T, chain[random // size % len(chain)])


class NamedTable(Table[T]):
    """A table of what has a name, such as queues. Those found lately are found again by a dict: it
    takes the hash of a name as it is, of which a table has to make a number first."""

    __slots__ = ("_recent",)

    def __init__(self) -> None:
        super().__init__()
        self._recent: dict[bytes, T] = {}

    def clear(self) -> None:
        """Forget every entry."""
        super().clear()
        self._recent.clear()

    def get(self, key: bytes) -> T | None:
        """The entry with this name."""
        entry = self._recent.get(key)
        if entry is not None:
            return entry
        entry = super().get(key)
        if entry is not None:
            if len(self._recent) >= RECENT_MAX:
                self._recent.clear()
            self._recent[entry.data] = entry
        return entry

    def remove(self, entry: T) -> None:
        """Take an entry out; ``KeyError`` when it is not there."""
        self._recent.pop(entry.data, None)
        super().remove(entry)


def _reversed(value: i64) -> i64:
    """The low 32 bits in reverse order: neighbours change places, then pairs of them, and so on."""
    value = (value >> 1 & 0x5555_5555) | (value & 0x5555_5555) << 1
    value = (value >> 2 & 0x3333_3333) | (value & 0x3333_3333) << 2
    value = (value >> 4 & 0x0F0F_0F0F) | (value & 0x0F0F_0F0F) << 4
    value = (value >> 8 & 0x00FF_00FF) | (value & 0x00FF_00FF) << 8
    return (value >> 16 | value << 16) & _HASH_MASK
