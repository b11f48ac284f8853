"""``disque --bigqueues``: the longest queues of a node, or of all nodes.

However many queues there are, only the longest are kept in memory.
"""

from __future__ import annotations

import heapq
import json
import time
from collections.abc import Callable
from typing import Final, TypeAlias

import attrs
import click

from disque_tx.cli.options import Options
from disque_tx.cli.verbs import output
from disque_tx.cli.verbs.figures import COLUMNS, Figures, Rates, cells, rates, total, values
from disque_tx.cli.verbs.members import Members
from disque_tx.cli.verbs.output import progress
from disque_tx.client.blocking import Disque
from disque_tx.client.values import QueueStat

_QUEUES: Final = 20
_INTERVAL_S: Final = 1.0
_PAGE: Final = 100
#: A node and a queue.
Place: TypeAlias = tuple[str, str]


class Longest:
    """The longest of many queues, ``limit`` at most. A queue that comes twice counts once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._heap: list[tuple[int, str]] = []
        self._stats: dict[str, QueueStat] = {}

    def add(self, stat: QueueStat) -> None:
        """Add a queue, if it is long enough."""
        if stat.name in self._stats:
            return
        heapq.heappush(self._heap, (stat.length, stat.name))
        self._stats[stat.name] = stat
        if len(self._heap) > self._limit:
            _, shortest = heapq.heappop(self._heap)
            del self._stats[shortest]

    def stats(self) -> list[QueueStat]:
        """The longest first."""
        return [self._stats[name] for _, name in sorted(self._heap, reverse=True)]


@attrs.frozen
class Found:
    """The longest queues of a node. ``queues``: how many it has in all."""

    queues: int
    longest: list[QueueStat]


def survey(node: Disque, limit: int, advance: Callable[[int], None]) -> Found:
    """Scan all queues of one node.

    :raises ScanInterrupted: the connection was lost.
    """
    longest = Longest(limit)
    queues = 0
    for name in node.queue_scan(_PAGE):
        stat = node.queue_stat(name)
        advance(1)
        # It may have been deleted meanwhile.
        if stat is not None:
            queues += 1
            longest.add(stat)
    return Found(queues, longest.stats())


@click.command("--bigqueues")
@click.pass_obj
def command(options: Options) -> None:
    """Show the longest queues; see the options of ``disque``."""
    limit = options.queues_max or _QUEUES
    interval_s = _INTERVAL_S if options.interval_s is None else options.interval_s
    with Members(options) as members:
        addresses = members.known() if options.all_nodes else members.nodes[:1]
        queues = members.ask(addresses, _registered)
        with progress("queues", sum(queues.of.values())) as advance:
            found = members.ask(addresses, lambda node: survey(node, limit, advance))
        for address, why in found.silent.items():
            click.echo(f"Node {address} could not be asked ({why}).", err=True)
        _show(members, found.of, limit, interval_s, options.form)


def _registered(node: Disque) -> int:
    count = node.info("queues").get("registered_queues", "0")
    return int(count) if count.isdecimal() else 0


def _show(
    members: Members, found: dict[str, Found], limit: int, interval_s: float, form: str | None
) -> None:
    queues = [(address, stat) for address, node in found.items() for stat in node.longest]
    queues = heapq.nlargest(limit, queues, key=lambda queue: queue[1].length)
    places = [(address, stat.name) for address, stat in queues]
    before = _look(members, places)
    if interval_s:
        time.sleep(interval_s)
    after = _look(members, places) if interval_s else before
    rows = [
        (address, figures, rates(before.get((address, name)), figures, interval_s))
        for (address, name), figures in after.items()
    ]
    exact = [{"node": address, **values(figures, speed)} for address, figures, speed in rows]
    if form == "json":
        for row in exact:
            click.echo(json.dumps(row))
    elif form == "csv":
        names = ("node", *values(Figures(""), Rates()))
        output.csv(names, [row.values() for row in exact])
    else:
        output.show(("node", *COLUMNS), [(node, *cells(one, speed)) for node, one, speed in rows])
    for address, node in found.items():
        click.echo(f"{address}: {node.queues} queues", err=True)


def _look(members: Members, places: list[Place]) -> dict[Place, Figures]:
    """The figures of queues at nodes, in this order; without nodes that do not answer."""
    names: dict[str, list[str]] = {}
    for address, name in places:
        names.setdefault(address, []).append(name)

    def stats(node: Disque) -> dict[str, QueueStat | None]:
        return {name: node.queue_stat(name) for name in names[str(node.address())]}

    answers = members.try_to_ask(names, stats).of
    return {
        (address, name): total(name, [answers[address][name]])
        for address, name in places
        if address in answers
    }
