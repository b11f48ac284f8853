"""Spans of time, and the files that may have rows from them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

from disque_tx.spark.pipeline.tables.deltalog import DataFile

#: With this many small files, they are merged.
SMALL_MAX: Final = 64
_SMALL_BYTES: Final = 32 << 20


class Spans:
    """Spans of time in µs since 1970, each with both of its ends."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._ends: list[int] = []
        self._begins: list[int] = []
        for begin, end in sorted(spans):
            if self._ends and begin <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._begins.append(begin)
                self._ends.append(end)

    def touch(self, begin: int, end: int) -> bool:
        """Whether another span has a moment in common with one of these."""
        at = bisect_left(self._ends, begin)
        return at < len(self._ends) and self._begins[at] <= end

    def among(self, files: Iterable[DataFile], first: str, last: str) -> list[DataFile]:
        """The files that may have a row whose times, from ``first`` to ``last``, touch these
        spans; a file whose times are not known may."""
        return [
            file
            for file in files
            if not {first, last} <= file.spans.keys()
            or self.touch(file.spans[first][0], file.spans[last][1])
        ]


def to_replace(files: Sequence[DataFile], column: str, begin: int) -> list[DataFile]:
    """The files that may have a row whose time in this column is ``begin`` or later. If many of the
    others are small, these too, so that they become one."""
    late = [file for file in files if column not in file.spans or file.spans[column][1] >= begin]
    kept = {file.path for file in late}
    small = [file for file in files if file.path not in kept and file.size < _SMALL_BYTES]
    return late + small if len(small) >= SMALL_MAX else late
