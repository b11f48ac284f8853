"""Metrics per queue, as text, in slices: there may be 100,000 queues."""

from __future__ import annotations

from array import array
from collections.abc import AsyncGenerator, Iterator, Sequence
from fnmatch import translate
from re import compile as compiled
from typing import Any, Final

import attrs

from disque_tx.plugins import QUEUE_BYTES_MAX, QueueFigures
from disque_tx.protocols.http.api.queues.queuelists import queues_of
from disque_tx.protocols.http.server.asking import PROCESSES, Asked
from disque_tx.protocols.http.server.exchange import Exchange
from disque_tx.protocols.http.server.problems import bad_request
from disque_tx.protocols.http.server.slices import COMPARISONS_PER_BYTE, SLICE_BYTES, Share

_SPECIAL: Final = frozenset("()[]{}+?*|^$\\")
#: About what stands in a line around the name of a queue.
_LINE_BYTES: Final = 60


@attrs.frozen
class Family:
    """One metric. ``members``: the figures of a queue that it shows, the name of each in ``label``
    if there is one. ``counter``: it only grows."""

    name: str
    help: str
    members: tuple[str, ...]
    label: str = ""
    counter: bool = False

    @property
    def sample(self) -> str:
        """The name in front of the values."""
        return f"{self.name}_total" if self.counter else self.name

    def title(self, openmetrics: bool) -> str:
        """The lines above the values."""
        name = self.name if openmetrics else self.sample
        kind = "counter" if self.counter else "gauge"
        return f"# HELP {name} {self.help}\n# TYPE {name} {kind}\n"

    def values(self, member: str, labels: list[str], values: Sequence[Any]) -> str:
        """The lines of one member, for these queues."""
        after = f'",{self.label}="{member}"}} ' if self.label else '"} '
        before = f'{self.sample}{{queue="'
        pairs = zip(labels, values, strict=True)
        return "".join([f"{before}{label}{after}{value}\n" for label, value in pairs])


#: ``queued`` is in the queue; the others are jobs that come back to it, unless they end.
_STATES: Final = ("queued", "in_flight", "delayed", "backoff", "loaded")
FAMILIES: Final = {
    family.name: family
    for family in (
        Family("disque_queue_jobs", "Its jobs, by where they are", _STATES, label="state"),
        Family("disque_queue_oldest_age_seconds", "Wait of its first job", ("oldest_s",)),
        Family("disque_queue_clients_blocked", "Clients that wait for a job", ("blocked",)),
        Family("disque_queue_jobs_in", "Jobs queued", ("jobs_in",), counter=True),
        Family("disque_queue_jobs_out", "Jobs fetched", ("jobs_out",), counter=True),
        Family("disque_queue_import_rate", "Jobs per second imported", ("import_rate",)),
        Family("disque_queue_paused", "The queue is paused", ("pause",)),
    )
}


class NameFilter:
    """Whether a queue's name matches all of a regular expression.

    Of regular expressions this takes letters, ``.``, ``.*``, ``|`` and characters escaped with a
    backslash: with groups and counts, a pattern could occupy the node for hours.
    """

    def __init__(self, pattern: str) -> None:
        branches = _branches(pattern)
        self._size = len(pattern)
        self._everything = "*" in branches
        self._match = compiled("|".join(map(translate, branches))).match

    def matches(self, name: bytes) -> bool:
        """Whether a queue is meant."""
        if len(name) > QUEUE_BYTES_MAX:
            return False
        return self._everything or self._match(name.decode("utf-8", "replace")) is not None

    def cost(self, name: bytes) -> int:
        """What comparing a name costs at most, in bytes that are looked at."""
        compared = 0 if self._everything else self._size * min(len(name), QUEUE_BYTES_MAX)
        return compared // COMPARISONS_PER_BYTE


def _branches(pattern: str) -> list[str]:
    """The glob patterns that a pattern consists of."""
    branches, glob, rest = [], "", pattern
    while rest:
        one, rest = rest[0], rest[1:]
        if one == "|":
            branches.append(glob)
            glob = ""
        elif one == "\\" and rest and not rest[0].isalnum():
            glob, rest = f"{glob}[{rest[0]}]" if rest[0] in "*?[" else glob + rest[0], rest[1:]
        elif one == "." and rest.startswith("*"):
            glob, rest = f"{glob}*", rest[1:]
        elif one == ".":
            glob += "?"
        elif one in _SPECIAL:
            raise bad_request(f"A pattern may contain . and .* and |, and {one!r} only behind \\.")
        else:
            glob += one
    return [*branches, glob]


def _label(name: bytes) -> str:
    text = name.decode("utf-8", "backslashreplace")
    if text.isalnum():
        return text
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


class FigureColumns:
    """The figures of many queues, in columns: as text they would take a hundred times as much."""

    def __init__(self, families: list[Family]) -> None:
        self.names: list[bytes] = []
        self.columns: dict[str, array[Any]] = {
            member: array("d" if member == "oldest_s" else "q")
            for family in families
            for member in family.members
        }

    def add(self, queue: QueueFigures) -> None:
        """Add the figures of a queue."""
        self.names.append(queue.name)
        for member, column in self.columns.items():
            value = getattr(queue, member)
            column.append(int(value != "none") if member == "pause" else value)


async def queue_metrics(
    exchange: Exchange, families: list[Family], wanted: NameFilter, openmetrics: bool
) -> AsyncGenerator[bytes, None]:
    """The text of these families. All queues of a family stand together, as the format wants it, so
    the figures are collected first, of one walk over all queues."""
    figures, share = FigureColumns(families), Share(exchange.slices)
    async for some in queues_of(exchange, PROCESSES, Asked()):
        for queue in some:
            await share.spend(wanted.cost(queue.name))
            if wanted.matches(queue.name):
                figures.add(queue)
    for family in families:
        yield family.title(openmetrics).encode()
        for start, end in _parts(figures.names):
            labels = [_label(name) for name in figures.names[start:end]]
            for member in family.members:
                column = figures.columns[member]
                yield family.values(member, labels, column[start:end]).encode()
    if openmetrics:
        yield b"# EOF\n"


def _parts(names: list[bytes]) -> Iterator[tuple[int, int]]:
    """Ranges of names that have, with what stands around them, about as many bytes as a slice."""
    start = size = 0
    for at, name in enumerate(names):
        size += len(name) + _LINE_BYTES
        if size >= SLICE_BYTES:
            yield start, at + 1
            start, size = at + 1, 0
    if start < len(names):
        yield start, len(names)
