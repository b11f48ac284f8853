"""A table of what has a name, such as queues."""

from __future__ import annotations

from typing import Final, TypeVar

from disque_tx.core.lookup.table import Table
from disque_tx.messages.records import Keyed

T = TypeVar("T", bound=Keyed)

#: Entries that are found by a dict.
RECENT_MAX: Final = 4_096


class NamedTable(Table[T]):
    """Entries by name. Those found lately are found again by a dict: it takes the hash of a name as
    it is, of which a table has to make a number first."""

    __slots__ = ("_recent",)

    def __init__(self) -> None:
        self._recent: dict[bytes, T] = {}
        super().__init__()

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
