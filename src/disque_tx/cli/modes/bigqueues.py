"""``disque --bigqueues``: the longest queues of a node, or of all nodes.

A node of disque-tx sorts its queues itself. Those of an original are scanned, and however many
there are, only the longest are kept in memory.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from typing import Final, TypeAlias

import attrs
import click

from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.base import output
from disque_tx.cli.verbs.base.members import Members
from disque_tx.cli.verbs.base.output import progress
from disque_tx.cli.verbs.queues.figures import (
    COLUMNS,
    JobRates,
    QueueSummary,
    Sample,
    cells,
    rates,
    sample,
    total,
    values,
)
from disque_tx.client import Refused
from disque_tx.client.blocking import Disque
from disque_tx.text.counts import counted

_QUEUES: Final = 20
_INTERVAL_S: Final = 1.0
_PAGE: Final = 100
#: Of one QLIST.
_ROWS: Final = 1_000
#: A node and a queue.
Place: TypeAlias = tuple[str, str]


#: The length of a queue, and its name.
Length: TypeAlias = tuple[int, str]


class Longest:
    """The longest of many queues, ``limit`` at most. A queue that comes twice counts once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._heap: list[Length] = []
        self._names: set[str] = set()

    def add(self, name: str, length: int) -> None:
        """Add a queue, if it is long enough."""
        if name in self._names:
            return
        heapq.heappush(self._heap, (length, name))
        self._names.add(name)
        if len(self._heap) > self._limit:
            _, shortest = heapq.heappop(self._heap)
            self._names.remove(shortest)

    def found(self) -> list[Length]:
        """The longest first."""
        return sorted(self._heap, reverse=True)


@attrs.frozen
class LongestQueues:
    """The longest queues of a node. ``queues``: how many it has in all."""

    queues: int
    longest: list[Length]


def survey(node: Disque, limit: int, queues: int, advance: Callable[[int], None]) -> LongestQueues:
    """The longest queues of one node, which has about ``queues``.

    :raises ScanInterrupted: the connection was lost.
    """
    found: list[Length] = []
    cursor: bytes | None = None
    try:
        while len(found) < limit:
            count = min(limit - len(found), _ROWS)
            page = node.list_queues(sort="queued", count=count, cursor=cursor)
            found += [(row.queued, row.name) for row in page.queues]
            cursor = page.cursor
            if cursor is None:
                break
    except Refused:
        return _scanned(node, limit, advance)
    advance(queues)
    return LongestQueues(queues, found)


def _scanned(node: Disque, limit: int, advance: Callable[[int], None]) -> LongestQueues:
    """All queues of a node that does not sort them."""
    longest = Longest(limit)
    queues = 0
    for name in node.queue_scan(_PAGE):
        stat = node.queue_stat(name)
        advance(1)
        # It may have been deleted meanwhile.
        if stat is not None:
            queues += 1
            longest.add(name, stat.length)
    return LongestQueues(queues, longest.found())


@click.command("--bigqueues")
@click.pass_obj
def command(options: ClientOptions) -> None:
    """Show the longest queues; see the options of ``disque``."""
    limit = options.queues_max or _QUEUES
    interval_s = _INTERVAL_S if options.interval_s is None else options.interval_s
    with Members(options) as members:
        addresses = members.known() if options.all_nodes else members.nodes[:1]
        queues = members.ask(addresses, _registered)
        with progress("queues", sum(queues.of.values())) as advance:

            def surveyed(node: Disque) -> LongestQueues:
                return survey(node, limit, queues.of.get(str(node.address()), 0), advance)

            found = members.ask(addresses, surveyed)
        for address, why in found.silent.items():
            click.echo(f"Node {address} could not be asked ({why}).", err=True)
        _show(members, found.of, limit, interval_s, options.form)


def _registered(node: Disque) -> int:
    count = node.info("queues").get("registered_queues", "0")
    return int(count) if count.isdecimal() else 0


def _show(
    members: Members,
    found: dict[str, LongestQueues],
    limit: int,
    interval_s: float,
    form: str | None,
) -> None:
    queues = [(*one, address) for address, node in found.items() for one in node.longest]
    places = [(address, name) for _, name, address in heapq.nlargest(limit, queues)]
    before = _sample_places(members, places)
    if interval_s:
        time.sleep(interval_s)
    after = _sample_places(members, places) if interval_s else before
    rows = [
        (address, figures, rates(before.get((address, name)), figures, interval_s))
        for (address, name), figures in after.items()
    ]
    exact = [{"node": address, **values(figures, speed)} for address, figures, speed in rows]
    if form == "json":
        for row in exact:
            output.document(row)
    elif form == "csv":
        names = ("node", *values(QueueSummary(""), JobRates()))
        output.csv(names, [row.values() for row in exact])
    else:
        output.show(("node", *COLUMNS), [(node, *cells(one, speed)) for node, one, speed in rows])
    for address, node in found.items():
        click.echo(f"{address}: {counted(node.queues, 'queue')}", err=True)


def _sample_places(members: Members, places: list[Place]) -> dict[Place, QueueSummary]:
    """The figures of queues at nodes, in this order; without nodes that do not answer."""
    names: dict[str, list[str]] = {}
    for address, name in places:
        names.setdefault(address, []).append(name)

    def stats(node: Disque) -> dict[str, Sample]:
        return {name: sample(node, name) for name in names[str(node.address())]}

    answers = members.try_to_ask(names, stats).of
    return {
        (address, name): total(name, [answers[address][name]])
        for address, name in places
        if address in answers
    }
