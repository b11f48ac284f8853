"""The finished files of event logs, for those who copy them: their names do not change any more,
and neither does what is in them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final

from zope.interface import implementer

from disque_tx.plugins.interfaces import IEventFiles

_DAY: Final = re.compile(r"dt=\d{4}-\d\d-\d\d")
_HOUR: Final = re.compile(r"hour=\d\d")
_FILE: Final = re.compile(r"events-[0-9a-f]{8}-\d+-\d+\.jsonl\.zst")
#: Files whose sizes are read in a step.
_STEP: Final = 100


@implementer(IEventFiles)
class FinishedFiles:
    """The finished files of some folders. A name is the place below its folder, such as
    ``dt=2026-11-26/hour=17/events-3c0f1d52-1795713600000-000000000000.jsonl.zst``, and occurs in
    one folder only."""

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = list(folders)

    def listed(self, after: str) -> Iterator[list[tuple[str, int]]]:
        """Names and sizes, sorted by name, of those that are sorted behind ``after``; some at a
        time, often none."""
        for day in self._names("", _DAY):
            if day < after[: len(day)]:
                continue
            for hour in self._names(day, _HOUR):
                place = f"{day}/{hour}"
                if place < after[: len(place)]:
                    continue
                names = [f"{place}/{name}" for name in self._names(place, _FILE)]
                names = [name for name in names if name > after]
                for at in range(0, len(names), _STEP):
                    yield self._sized(names[at : at + _STEP])
            yield []

    def open(self, name: str) -> BinaryIO:
        """The file of this name.

        :raises FileNotFoundError: when there is none, or the name is not that of such a file.
        """
        parts = name.split("/")
        patterns = (_DAY, _HOUR, _FILE)
        if len(parts) == len(patterns) and all(
            pattern.fullmatch(part) for pattern, part in zip(patterns, parts, strict=True)
        ):
            for folder in self._folders:
                try:
                    return open(os.path.join(folder, name), "rb")
                except FileNotFoundError:
                    continue
        raise FileNotFoundError(f"There is no file {name!r}.")

    def _names(self, place: str, wanted: re.Pattern[str]) -> list[str]:
        """Sorted names of what is in a place of any of the folders."""
        found: set[str] = set()
        for folder in self._folders:
            try:
                found.update(filter(wanted.fullmatch, os.listdir(os.path.join(folder, place))))
            except (FileNotFoundError, NotADirectoryError):
                continue
        return sorted(found)

    def _sized(self, names: list[str]) -> list[tuple[str, int]]:
        """The same, with their sizes; without those that are gone by now."""
        found = []
        for name in names:
            for folder in self._folders:
                try:
                    found.append((name, os.stat(os.path.join(folder, name)).st_size))
                    break
                except FileNotFoundError:
                    continue
        return found
