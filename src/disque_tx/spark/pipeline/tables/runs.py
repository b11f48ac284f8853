"""Which numbers of events are known: runs without gaps, for each start of a node.

They decide what an ingest adds. An event whose number is in a run is never added again, even if it
was deleted since. A file of a node is known by its name, which has the number of its first event:
no list of all files is needed, and looking for new ones costs the same after years.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

_NODE_CHARACTERS: Final = 8


@attrs.frozen
class Run:
    """Event numbers of one start of a node, from ``first`` to ``last``, all of which exist."""

    node: str
    boot: int
    first: int
    last: int

    @property
    def events(self) -> int:
        """How many."""
        return self.last - self.first + 1


class Runs:
    """Runs, of which none touch each other."""

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self._by_start: dict[tuple[str, int], list[Run]] = {}
        self._by_name: dict[tuple[str, int], list[str]] = {}
        self.add(runs)

    def __iter__(self) -> Iterator[Run]:
        for start in sorted(self._by_start):
            yield from self._by_start[start]

    @property
    def events(self) -> int:
        """How many numbers there are."""
        return sum(run.events for run in self)

    def add(self, runs: Iterable[Run]) -> None:
        """Add runs, which may overlap known ones."""
        changed = set()
        for run in runs:
            start = (run.node, run.boot)
            if start not in self._by_start:
                name = (run.node[:_NODE_CHARACTERS], run.boot)
                self._by_name.setdefault(name, []).append(run.node)
            self._by_start.setdefault(start, []).append(run)
            changed.add(start)
        for start in changed:
            self._by_start[start] = _joined(self._by_start[start])

    def overlapping(self, other: Runs) -> list[Run]:
        """The runs of this object that have a number in common with the other ones."""
        found = []
        for start, runs in self._by_start.items():
            for theirs in other._by_start.get(start, ()):
                found += [
                    run for run in runs if run.first <= theirs.last and theirs.first <= run.last
                ]
        return list(dict.fromkeys(found))

    def of_start(self, node: str, boot: int) -> Iterator[list[Run]]:
        """The runs of this start, of each node with this ID. ``node``: the ID, or its first 8
        characters."""
        for whole in self._by_name.get((node[:_NODE_CHARACTERS], boot), ()):
            yield self._by_start[whole, boot]

    def contains(self, node: str, boot: int, number: int) -> bool:
        """Whether a number is known. ``node``: the ID, or its first 8 characters."""
        for runs in self.of_start(node, boot):
            at = bisect_right(runs, number, key=lambda run: run.first)
            if at and runs[at - 1].last >= number:
                return True
        return False

    def last(self) -> Mapping[tuple[str, int], int]:
        """Node and start → the last number."""
        return {start: runs[-1].last for start, runs in self._by_start.items()}

    def missing(self) -> dict[str, int]:
        """Node → how many numbers are missing. A node numbers its events from 0."""
        answer: dict[str, int] = {}
        for (node, _), runs in sorted(self._by_start.items()):
            absent = runs[-1].last + 1 - sum(run.events for run in runs)
            answer[node] = answer.get(node, 0) + absent
        return answer

    def to_notes(self) -> dict[str, list[int]]:
        """As values of JSON."""
        return {
            f"{node}.{boot}": [number for run in runs for number in (run.first, run.last)]
            for (node, boot), runs in sorted(self._by_start.items())
        }

    @classmethod
    def from_notes(cls, notes: Mapping[str, Any]) -> Runs:
        """What :meth:`to_notes` made."""
        runs = []
        for start, numbers in notes.items():
            node, _, boot = start.partition(".")
            pairs = zip(numbers[::2], numbers[1::2], strict=True)
            runs += [Run(node, int(boot), first, last) for first, last in pairs]
        return cls(runs)


def _joined(runs: Iterable[Run]) -> list[Run]:
    """The same numbers of one start of a node, in runs that do not touch each other."""
    found: list[Run] = []
    for run in sorted(runs, key=lambda run: run.first):
        last = found[-1] if found else None
        if last and run.first <= last.last + 1:
            found[-1] = attrs.evolve(last, last=max(last.last, run.last))
        else:
            found.append(run)
    return found
