"""The table of jobs, in the order in which they were made.

A hash scatters entries over the memory, so that with a million of them each access is waited for.
But jobs that are made one after the other are mostly delivered, acknowledged and copied one after
the other, and lie side by side in memory. The IDs that a node makes count upwards
(:func:`~disque_tx.text.hashes.place32`). So here neighbours in time are neighbours in the
table as well, and a walk goes through the memory from one end to the other.

Who may choose IDs, or which jobs are left over of many, could have a great number meet in one
bucket. What overflows is therefore kept in a second table, by a hash that nobody else knows. It
stays there until it is removed: a scan looks at the second table after the first one, and misses
nothing that moves meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from mypy_extensions import i64

from disque_tx.core.lookup.table import PLACE_BITS, Table
from disque_tx.messages.records import JOB_ID_LENGTH, Keyed
from disque_tx.text.hashes import hash32, place32

T = TypeVar("T", bound=Keyed)

#: The first cursor and the first bucket of the second table.
_SECOND: Final = 1 << PLACE_BITS


class _Overflow(Table[T], Generic[T]):
    """Jobs by the hash of their ID."""

    def __init__(self) -> None:
        super().__init__(JOB_ID_LENGTH)

    def _hash_of(self, entry: Keyed) -> i64:
        return i64(hash32(entry.id))


class JobTable(Table[T], Generic[T]):
    """Jobs by ID."""

    __slots__ = ("_second",)

    def __init__(self) -> None:
        self._second: _Overflow[T] = _Overflow()
        super().__init__(JOB_ID_LENGTH)

    def clear(self) -> None:
        """Forget every entry."""
        super().clear()
        self._second.clear()

    def _hash(self, key: bytes) -> i64:
        return i64(place32(key))

    # -- entries that have overflowed --------------------------------------------------------

    def _put_overflown(self, at: i64, entry: Keyed) -> None:
        self._second.put(entry)  # type: ignore[arg-type]

    def _get_overflown(self, at: i64, key: bytes) -> T | None:
        return self._second.get(key) if self._second.count else None

    def _remove_overflown(self, at: i64, entry: T) -> None:
        self._second.walks = self.walks
        self._second.remove(entry)

    def _take_overflown(self, at: i64, entries: list[Keyed]) -> None:
        pass

    def _collect_overflown(self, at: i64, found: list[Keyed]) -> None:
        pass

    # -- all entries -------------------------------------------------------------------------

    def values(self) -> Iterator[T]:
        """Every entry; the table must not change meanwhile."""
        yield from super().values()
        yield from self._second.values()

    def scan_part(self, cursor: int, most: i64) -> tuple[int, list[T]]:
        """Several steps of a scan at once, until about ``most`` entries and buckets were looked
        at."""
        if not cursor & _SECOND:
            following, found = super().scan_part(cursor, most)
            return (following or (_SECOND if self._second.count else 0)), found
        following, found = self._second.scan_part(cursor & ~_SECOND, most)
        return (following | _SECOND if following else 0), found

    def part(self, at: i64, most: i64) -> tuple[i64, list[T]]:
        """A part of a walk, from a bucket on until about ``most`` entries and buckets were looked
        at: the bucket after it, -1 at the end, and the entries."""
        if at < _SECOND:
            after, found = super().part(at, most)
            return (_SECOND if after < 0 and self._second.count else after), found
        after, found = self._second.part(at - _SECOND, most)
        return (after if after < 0 else after + _SECOND), found

    def pick(self, random: i64) -> T | None:
        """Some entry, chosen by ``random`` (any number); ``None`` when the table is empty."""
        if self._second.count and random % self.count < self._second.count:
            return self._second.pick(random)
        return super().pick(random)
