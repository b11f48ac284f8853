"""A walk through all entries of a table, a part at a time.

It goes from bucket to bucket as they lie in memory, which is faster than the order of a scan. While
one is under way the table does not shrink: buckets that are split off lie ahead, and merging would
move entries behind it. So whatever is there during the whole walk is looked at at least once.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from mypy_extensions import i64

from disque_tx.core.lookup.table import Table
from disque_tx.messages.records import Keyed

T = TypeVar("T", bound=Keyed)


class Walk(Generic[T]):
    """``under_way``: between :meth:`begin` and the last part, or :meth:`end`."""

    __slots__ = ("under_way", "_at", "_table")

    def __init__(self, table: Table[T]) -> None:
        self.under_way: bool = False
        self._table: Table[T] = table
        self._at: i64 = 0

    def begin(self) -> None:
        """Start from the beginning."""
        if not self.under_way:
            self.under_way = True
            self._table.walks += 1
        self._at = 0

    def end(self) -> None:
        """Look no further, if one is under way."""
        if self.under_way:
            self.under_way = False
            self._table.walks -= 1

    def part(self, most: i64) -> list[T]:
        """The next entries: about ``most``, empty buckets included. The walk ends with the last."""
        after, found = self._table.part(self._at, most)
        self._at = after
        if after < 0:
            self.end()
        return found

    def progress(self) -> float:
        """How much of it is done: 0 to 1, and 1 when none is under way."""
        if not self.under_way:
            return 1.0
        return min(1.0, float(self._at) / float(self._table.size()))
