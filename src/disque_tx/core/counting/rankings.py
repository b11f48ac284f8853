"""Which queues came first lately, for those who ask again and again, such as ten consoles: a walk
over all queues takes them from the caches of the processor, and what clients need with them."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from mypy_extensions import i64

#: Rankings that are remembered.
RANKINGS_MAX: Final = 16

#: Pattern, order and length of a page.
Wanted = tuple[bytes, int, int]


class Ranking:
    """The names on a first page, and whether others follow, as of a time."""

    __slots__ = ("at_ms", "more", "names")

    def __init__(self, names: list[bytes], more: bool, at_ms: i64) -> None:
        self.names: list[bytes] = names
        self.more: bool = more
        self.at_ms: i64 = at_ms


class Rankings:
    """The latest ones, by what was wanted."""

    def __init__(self) -> None:
        self._known: OrderedDict[Wanted, Ranking] = OrderedDict()

    def note(self, wanted: Wanted, ranking: Ranking) -> None:
        """A page was made."""
        self._known.pop(wanted, None)
        if len(self._known) >= RANKINGS_MAX:
            self._known.popitem(last=False)
        self._known[wanted] = ranking

    def recent(self, wanted: Wanted, max_age_ms: i64, now_ms: i64) -> Ranking | None:
        """One that is not older than this, if there is one."""
        found = self._known.get(wanted)
        if found is None or now_ms - found.at_ms > max_age_ms:
            return None
        return found

    def clear(self) -> None:
        """All queues are gone."""
        self._known.clear()
