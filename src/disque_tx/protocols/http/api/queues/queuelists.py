"""Every queue with its figures: of this node, or joined over the processes of the daemon or the
nodes of the cluster."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

import attrs

from disque_tx.plugins import QueueFigures
from disque_tx.protocols.http.server.asking import Asked, ask, several
from disque_tx.protocols.http.server.exchange import Exchange
from disque_tx.protocols.http.server.slices import Share, all_queues

#: Queues of one question, and names.
_PAGE: Final = 250
_NAMES: Final = 50
_PAUSES: Final = ("none", "in", "out", "all")
#: The numbers of a row behind its name, and which of them are no sums.
_NUMBERS: Final = 13
_OLDEST: Final = 1
_PAUSE: Final = 8
_JOINED: Final[dict[int, Callable[[int, int], int]]] = {
    _OLDEST: max,
    2: max,  # the age of the queue
    3: min,  # since it was used
    _PAUSE: lambda a, b: a | b,
}
#: In the order of QCOUNT.
_COUNTED: Final = (
    *("queued", "delayed", "backoff", "in_flight", "dead", "blocked", "oldest_ms"),
    *("in_per_s", "out_per_s", "loaded"),
)


class JoinedQueues:
    """The queues of several nodes, each once, in columns: there may be 100,000."""

    def __init__(self) -> None:
        self._names: list[bytes] = []
        self._places: dict[bytes, int] = {}
        self._columns: list[array[int]] = [array("q") for _ in range(_NUMBERS)]

    def add(self, seen: set[bytes], row: list[Any]) -> None:
        """A row of one node, as in QUEUES. ``seen``: the queues of this node so far; a scan returns
        a queue twice at times."""
        name, *numbers = row[: _NUMBERS + 1]
        if name in seen:
            return
        seen.add(name)
        numbers[_PAUSE] = _PAUSES.index(numbers[_PAUSE].decode())
        place = self._places.get(name)
        if place is None:
            self._places[name] = len(self._names)
            self._names.append(name)
            for column, number in zip(self._columns, numbers, strict=True):
                column.append(number)
            return
        for at, number in enumerate(numbers):
            column = self._columns[at]
            join = _JOINED.get(at)
            column[place] = column[place] + number if join is None else join(column[place], number)

    def pages(self) -> Iterator[list[QueueFigures]]:
        """All queues, in pages of limited size."""
        for start in range(0, len(self._names), _PAGE):
            end = min(start + _PAGE, len(self._names))
            yield [self._figures(place) for place in range(start, end)]

    def _figures(self, place: int) -> QueueFigures:
        values: list[Any] = [column[place] for column in self._columns]
        values[_OLDEST] /= 1000
        values[_PAUSE] = _PAUSES[values[_PAUSE]]
        return QueueFigures(self._names[place], *values)


def joined_queue(rows: list[list[Any]]) -> QueueFigures:
    """The figures of a queue, added up over several nodes."""
    queues = JoinedQueues()
    for row in rows:
        queues.add(set(), row)
    ((figures,),) = queues.pages()
    return figures


async def queues_of(
    exchange: Exchange, scope: bytes, sources: Asked
) -> AsyncIterator[list[QueueFigures]]:
    """Every queue of these nodes, some at a time, each once. ``sources``: gets the nodes that
    answered, and those that are missing."""
    if not several(exchange):
        sources.answers = {b"": None}
        async for some in all_queues(exchange.host, exchange.slices):
            yield some
        return
    joined = JoinedQueues()
    first = await ask(exchange, scope, b"QUEUES", b"0", b"%d" % _PAGE)
    sources.answers, sources.missing = first.answers, first.missing
    for node, answer in first.answers.items():
        seen: set[bytes] = set()
        while answer is not None:
            cursor, rows = answer
            for row in rows:
                joined.add(seen, row)
            await exchange.slices.turn()
            answer = None
            if cursor != b"0":
                more = await ask(exchange, node, b"QUEUES", cursor, b"%d" % _PAGE)
                sources.miss(more)
                answer = more.answers.get(node)
    for some in joined.pages():
        yield some
        await exchange.slices.turn()


async def counts_of(
    exchange: Exchange, scope: bytes, names: list[bytes]
) -> tuple[list[dict[str, Any]], Asked]:
    """For each of these queues the members of ``QueueCounts``, summed over these nodes; and which
    nodes are in the sums."""
    found: list[dict[str, Any]] = []
    sources = Asked()
    share = Share(exchange.slices)
    for start in range(0, len(names), _NAMES):
        some = names[start : start + _NAMES]
        await share.spend(sum(map(len, some)))
        asked = await ask(exchange, scope, b"COUNTS", *some)
        sources.answers = asked.answers
        sources.miss(asked)
        for rows in zip(*asked.answers.values(), strict=True):
            found.append(_summed(list(rows)))
    return found, sources


def _summed(rows: list[list[int]]) -> dict[str, Any]:
    sums = dict(zip(_COUNTED, map(sum, zip(*rows, strict=True)), strict=True))
    values: dict[str, Any] = {
        name: number
        for name, number in sums.items()
        if name in ("delayed", "backoff", "in_flight", "dead", "loaded")
    }
    for rate in ("in_per_s", "out_per_s"):
        values[rate] = sums[rate] / 1000
    return values


def members(figures: QueueFigures) -> dict[str, Any]:
    """The figures as members of JSON, but for the name."""
    values = attrs.asdict(figures)
    del values["name"]
    return values
