"""A hash table that can be scanned while it changes, at a cost that does not grow with its size.

Why not a dict: growing one of a million entries stops the node for tens of milliseconds, and it
cannot be scanned in pieces while it changes. The table grows and shrinks by one bucket at a time
(linear hashing). A bucket has room for seven entries, and keeps a byte of the hash of each of them
in one number. So nearly all entries that a search looks at are the one that it is for, and adding
one touches no other: with a million entries, each of those would be waited for. The few entries
for which their bucket has no room overflow into a list.

The scan (client protocol, sections 18 and 19): order all entries by the bit-reversed hash. Every
bucket then holds one contiguous range of that order, and splitting or merging only cuts or joins
ranges. A cursor is a position in the order, everything before it was visited; so an entry that is
there during the whole scan is returned at least once, whatever happens in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, TypeVar, cast

from librt.vecs import append, pop, vec
from mypy_extensions import i64

from disque_tx.messages.records import Keyed
from disque_tx.text.hashes import hash32

T = TypeVar("T", bound=Keyed)

#: The low bits of a hash are for its mark, the others choose the bucket.
_MARK_BITS: Final = 7
PLACE_BITS: Final = 25
_PLACE_MASK: Final = (1 << PLACE_BITS) - 1
#: For how many entries a bucket has room; the others overflow.
_ROOM: Final = 7
#: The table grows when half of the room is taken, and shrinks when less than an eighth is.
_DENSE: Final = 2
_SPARSE: Final = 8
#: A number with the same byte for each entry of a bucket, times that byte; and the byte's high bit,
#: which is set where there is an entry.
_EACH: Final = 0x01_0101_0101_0101
_TAKEN: Final = 0x80_8080_8080_8080
_MARKS: Final = 0xFF_FFFF_FFFF_FFFF
#: Set in the marks of a bucket of which entries have overflowed.
_MORE: Final = 0x100_0000_0000_0000


class Table(Generic[T]):
    """Entries by ``id``; an entry is in one table at a time. ``len()`` is their number.

    ``key_bytes``: how many bytes of its ``data`` are the ID of an entry, -1 for all of them.
    ``walks``: how many walks are under way, which are kept from merging buckets.
    """

    __slots__ = (
        "_entries",
        "_high",
        "_inside",
        "_key_bytes",
        "_low",
        "_marks",
        "_overflow",
        "count",
        "walks",
    )

    def __init__(self, key_bytes: i64 = -1) -> None:
        self._key_bytes: i64 = key_bytes
        self.walks: i64 = 0
        self.clear()

    def clear(self) -> None:
        """Forget every entry."""
        self.count: i64 = 0
        self._inside: i64 = 0  # of them, those that have not overflowed
        # Of each bucket the marks, and the entries; of those that have overflowed, by bucket.
        self._marks: vec[i64] = vec[i64]([0])
        self._entries: list[Keyed | None] = [None] * _ROOM
        self._overflow: dict[int, list[Keyed]] = {}
        # Masks of the hash: buckets from _low + 1 on were split off those _low + 1 below them.
        self._low: i64 = 0
        self._high: i64 = 1

    def __len__(self) -> int:
        return self.count

    def size(self) -> i64:
        """How many buckets there are."""
        return len(self._marks)

    def _at(self, hashed: i64) -> i64:
        """The bucket of a hash."""
        place = hashed >> _MARK_BITS
        at = place & self._high
        return at if at < len(self._marks) else place & self._low

    def _hash(self, key: bytes) -> i64:
        """The hash of an ``id``."""
        return i64(hash32(key))

    def _hash_of(self, entry: Keyed) -> i64:
        """The hash of the ``id`` of an entry."""
        return i64(entry.hashed)

    def get(self, key: bytes) -> T | None:
        """The entry with this ``id``."""
        hashed = self._hash(key)
        at = self._at(hashed)
        marks = self._marks[at]
        likely = _likely(marks, hashed)
        place = at * _ROOM
        while likely:
            if likely & 0x80:
                entry = self._entries[place]
                if entry is not None and self._is(entry.data, key):
                    return cast(T, entry)
            likely >>= 8
            place += 1
        return self._get_overflown(at, key) if marks & _MORE else None

    def _is(self, data: bytes, key: bytes) -> bool:
        """Whether this is the data of the entry with this ``id``."""
        if self._key_bytes < 0:
            return data is key or data == key
        return len(key) == self._key_bytes and data.startswith(key)

    def put(self, entry: T) -> None:
        """Add an entry; none with its ``id`` may be there."""
        self._place(entry)
        self.count += 1
        while _DENSE * self._inside > _ROOM * self.size():
            self._split()

    def _place(self, entry: Keyed) -> None:
        """Put an entry into its bucket."""
        hashed = self._hash_of(entry)
        at = self._at(hashed)
        marks = self._marks[at]
        if marks & _TAKEN == _TAKEN:
            self._marks[at] = marks | _MORE
            self._put_overflown(at, entry)
            return
        mark = _mark(hashed)
        taken: i64 = 0x80
        place = at * _ROOM
        while marks & taken:
            taken <<= 8
            mark <<= 8
            place += 1
        self._entries[place] = entry
        self._marks[at] = marks | mark
        self._inside += 1

    def remove(self, entry: T) -> None:
        """Take an entry out; ``KeyError`` when it is not there."""
        hashed = self._hash_of(entry)
        at = self._at(hashed)
        marks = self._marks[at]
        likely = _likely(marks, hashed)
        place = at * _ROOM
        mark: i64 = 0xFF
        while likely:
            if likely & 0x80 and self._entries[place] is entry:
                self._entries[place] = None
                self._marks[at] = marks & ~mark
                self._inside -= 1
                break
            likely >>= 8
            mark <<= 8
            place += 1
        else:
            self._remove_overflown(at, entry)
        self.count -= 1
        if self.walks == 0 and self._is_sparse():
            self._merge()
            if self._is_sparse():
                self._merge()  # walks may have left more than one

    # -- entries that have overflowed --------------------------------------------------------

    def _put_overflown(self, at: i64, entry: Keyed) -> None:
        """Add an entry for which its bucket has no room."""
        self._overflow.setdefault(at, []).append(entry)

    def _get_overflown(self, at: i64, key: bytes) -> T | None:
        """The entry with this ``id``, if it has overflowed from this bucket."""
        for entry in self._overflow[at]:
            if self._is(entry.data, key):
                return cast(T, entry)
        return None

    def _remove_overflown(self, at: i64, entry: T) -> None:
        """Take an entry out; ``KeyError`` if it has not overflowed."""
        entries = self._overflow.get(at, [])
        for number, one in enumerate(entries):
            if one is entry:
                del entries[number]
                if not entries:
                    del self._overflow[at]
                    self._marks[at] &= ~_MORE
                return
        raise KeyError(entry.id)

    def _take_overflown(self, at: i64, entries: list[Keyed]) -> None:
        """A bucket is split or merged: take out all that have overflowed from it."""
        entries.extend(self._overflow.pop(at))
        self._marks[at] = 0

    def _collect_overflown(self, at: i64, found: list[Keyed]) -> None:
        """Append all that have overflowed from this bucket."""
        found.extend(self._overflow[at])

    # -- growing and shrinking ---------------------------------------------------------------

    def _is_sparse(self) -> bool:
        return _ROOM * (self.size() - 1) > _SPARSE * self._inside

    def _split(self) -> None:
        """Grow by one bucket, which takes its part from the one below it."""
        size = self.size()
        if size > self._high:
            self._low = self._high
            self._high = 2 * self._high + 1
        at = size - self._low - 1
        entries = self._drain(at)
        self._marks = append(self._marks, self._marks[at])
        for _ in range(_ROOM):
            self._entries.append(None)
        for entry in entries:
            self._place(entry)

    def _merge(self) -> None:
        """Shrink by one bucket, which goes back to the one below it."""
        last = self.size() - 1
        entries = self._drain(last)
        self._marks, marks = pop(self._marks)
        del self._entries[-_ROOM:]
        if last <= self._low:
            self._high = self._low
            self._low = self._low // 2
            self._marks = self._marks[:]  # in memory of its size
        self._marks[last - self._low - 1] |= marks
        for entry in entries:
            self._place(entry)

    def _drain(self, at: i64) -> list[Keyed]:
        """Take all entries out of a bucket."""
        entries: list[Keyed] = []
        self._collect(at, entries)
        self._inside -= len(entries)
        for place in range(at * _ROOM, (at + 1) * _ROOM):
            self._entries[place] = None
        self._marks[at] &= _MORE
        if self._marks[at]:
            self._take_overflown(at, entries)
        return entries

    def _collect(self, at: i64, found: list[Keyed]) -> None:
        """Append the entries of a bucket, without those that have overflowed."""
        place = at * _ROOM
        taken = self._marks[at] & _TAKEN
        while taken:
            if taken & 0x80:
                entry = self._entries[place]
                assert entry is not None
                found.append(entry)
            taken >>= 8
            place += 1

    def _collect_all(self, at: i64, found: list[Keyed]) -> None:
        """Append all entries of a bucket."""
        self._collect(at, found)
        if self._marks[at] & _MORE:
            self._collect_overflown(at, found)

    # -- all entries -------------------------------------------------------------------------

    def values(self) -> Iterator[T]:
        """Every entry; the table must not change meanwhile."""
        for at in range(self.size()):
            found: list[Keyed] = []
            self._collect_all(at, found)
            for entry in found:
                yield cast(T, entry)

    def scan(self, cursor: int) -> tuple[int, list[T]]:
        """One step of a scan: the next cursor, 0 at the end, and the entries of its bucket."""
        return self.scan_part(cursor, 1)

    def scan_part(self, cursor: int, most: i64) -> tuple[int, list[T]]:
        """Several steps of a scan at once, until about ``most`` entries and buckets were looked
        at."""
        # Buckets that were split, and those split off, use one bit of the hash more.
        split = self.size() - self._low - 1
        narrow = (_PLACE_MASK + 1) // (self._high + 1) - 1
        wide = (_PLACE_MASK + 1) // (self._low + 1) - 1
        position: i64 = cursor & _PLACE_MASK
        buckets: i64 = 0
        found: list[Keyed] = []
        while buckets + i64(len(found)) < most and position <= _PLACE_MASK:
            at = self._at(_reversed(position) << _MARK_BITS)
            self._collect_all(at, found)
            buckets += 1
            # The bucket holds a range of positions, of this size: the next one begins behind it.
            position = (position | (narrow if (at & self._low) < split else wide)) + 1
        return (int(position) if position <= _PLACE_MASK else 0), cast(list[T], found)

    def part(self, at: i64, most: i64) -> tuple[i64, list[T]]:
        """A part of a walk, from a bucket on until about ``most`` entries and buckets were looked
        at: the bucket after it, -1 at the end, and the entries."""
        first = at
        found: list[Keyed] = []
        while at - first + i64(len(found)) < most and at < self.size():
            self._collect_all(at, found)
            at += 1
        return (at if at < self.size() else -1), cast(list[T], found)

    def pick(self, random: i64) -> T | None:
        """Some entry, chosen by ``random`` (any number); ``None`` when the table is empty."""
        if self.count == 0:
            return None
        size = self.size()
        at = random % size
        found: list[Keyed] = []
        self._collect_all(at, found)
        while not found:
            at = (at + 1) % size
            self._collect_all(at, found)
        return cast(T, found[random // size % len(found)])


def _mark(hashed: i64) -> i64:
    """The byte that a bucket keeps of a hash: its low bits, and one that says that it is taken."""
    return hashed & 0x7F | 0x80


def _likely(marks: i64, hashed: i64) -> i64:
    """The high bit of each byte of the marks that is the one of this hash, and perhaps of others
    above it."""
    different = (marks ^ _mark(hashed) * _EACH) & _MARKS
    return (different - _EACH) & ~different & _TAKEN


def _reversed(value: i64) -> i64:
    """The bits of a place in reverse order: of 32, neighbours change places, then pairs of them,
    and so on; what is left over is shifted out."""
    value = (value >> 1 & 0x5555_5555) | (value & 0x5555_5555) << 1
    value = (value >> 2 & 0x3333_3333) | (value & 0x3333_3333) << 2
    value = (value >> 4 & 0x0F0F_0F0F) | (value & 0x0F0F_0F0F) << 4
    value = (value >> 8 & 0x00FF_00FF) | (value & 0x00FF_00FF) << 8
    return (value >> 16 | value << 16) >> (32 - PLACE_BITS) & _PLACE_MASK
