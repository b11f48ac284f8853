"""``disque watch``: the figures of queues as they change."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from itertools import count, islice

import click

from disque_tx.cli import tables
from disque_tx.cli.figures import COLUMNS, Figures, cells, rates, total
from disque_tx.cli.members import Members
from disque_tx.cli.options import Options
from disque_tx.client.blocking import Disque
from disque_tx.client.values import QueueStat
from disque_tx.errors import DisqueError

Row = tuple[str, ...]


class Watch:
    """Asks the nodes for ``queues``. ``everywhere``: all nodes of the cluster, not one only.
    ``clock``: monotonic seconds. ``trouble``: what could not be asked last time, for people."""

    def __init__(
        self,
        members: Members,
        queues: tuple[str, ...],
        everywhere: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._members = members
        self._queues = queues
        self._everywhere = everywhere
        self._clock = clock
        self._before: dict[str, Figures] = {}
        self._before_s = 0.0
        self.trouble = ""

    def look(self) -> list[Row]:
        """A row per queue, with the rates since the last look.

        :raises ClientError, NobodyAnswers: no node answers.
        """
        members = self._members
        addresses = members.known() if self._everywhere else members.nodes[:1]
        found = members.ask(addresses, self._stats)
        self.trouble = "; ".join(f"{node}: {why}" for node, why in found.silent.items())
        now_s = self._clock()
        elapsed_s, self._before_s = now_s - self._before_s, now_s
        return [
            self._row(total(name, [stats[place] for stats in found.of.values()]), elapsed_s)
            for place, name in enumerate(self._queues)
        ]

    def _stats(self, node: Disque) -> list[QueueStat | None]:
        return [node.queue_stat(name) for name in self._queues]

    def _row(self, figures: Figures, elapsed_s: float) -> Row:
        before = self._before.get(figures.name)
        self._before[figures.name] = figures
        return cells(figures, rates(before, figures, elapsed_s))


@click.command("watch")
@click.argument("queues", nargs=-1, required=True, metavar="QUEUE...")
@click.option(
    "-i",
    "interval_s",
    type=click.FloatRange(0.01, 86_400),
    default=1.0,
    show_default=True,
    help="Seconds between two looks.",
)
@click.option("--count", "looks", type=click.IntRange(1), help="Look so often, then end.")
@click.option("--once", is_flag=True, help="Look once.")
@click.option("--one-node", is_flag=True, help="Ask one node, not all of the cluster.")
@click.pass_obj
def command(
    options: Options,
    queues: tuple[str, ...],
    interval_s: float,
    looks: int | None,
    once: bool,
    one_node: bool,
) -> None:
    """Show length, age, rates, waiting clients and pause of each QUEUE until interrupted.

    Figures are those of all nodes together. When the output is no terminal, a line per queue and
    look, with tabs.
    """
    with Members(options) as members:
        watch = Watch(members, queues, not one_node)
        rows = _looks(watch, 1 if once else looks, interval_s)
        if sys.stdout.isatty():
            _live(watch, rows)
        else:
            _lines(watch, rows)


def _looks(watch: Watch, looks: int | None, interval_s: float) -> Iterator[list[Row]]:
    """The rows of each look; none when no node answered, except at first: that is an error."""
    for number in islice(count(), looks):
        if number:
            time.sleep(interval_s)
        try:
            yield watch.look()
        except DisqueError as error:
            if not number:
                raise
            watch.trouble = str(error)
            yield []


def _lines(watch: Watch, looks: Iterator[list[Row]]) -> None:
    for number, rows in enumerate(looks):
        if not number:
            click.echo("\t".join(("time", *COLUMNS)))
        moment = time.strftime("%Y-%m-%dT%H:%M:%S")
        for row in rows:
            click.echo("\t".join((moment, *row)))
        if watch.trouble:
            click.echo(watch.trouble, err=True)


def _live(watch: Watch, looks: Iterator[list[Row]]) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console()
    with Live(console=console, auto_refresh=False) as live:
        for rows in looks:
            table = tables.drawn(COLUMNS, rows)
            table.caption = Text(watch.trouble) if watch.trouble else None
            live.update(table, refresh=True)
