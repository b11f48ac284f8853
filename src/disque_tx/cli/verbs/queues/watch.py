"""``disque watch``: the figures of queues as they change."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from typing import Final

import attrs
import click

from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.base import output
from disque_tx.cli.verbs.base.members import Members
from disque_tx.cli.verbs.base.numbers import FiniteRange
from disque_tx.cli.verbs.base.survey import whole_survey
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
from disque_tx.cli.verbs.queues.progress import JobReport, newest, reported
from disque_tx.client.blocking import Disque
from disque_tx.diagnosis.finding import Finding
from disque_tx.diagnosis.findings import findings, shown
from disque_tx.errors import DisqueError

#: How often, in seconds, it is found out what is wrong, and how much of that is shown.
_FINDINGS_EVERY_S: Final = 10.0
_FINDINGS_MAX: Final = 3
#: The figures of a queue, and its rates since the last sample.
Row = tuple[QueueSummary, JobRates]
#: Fields that nodes of this package add to INFO: name → how the values of nodes are combined.
_TOTALS: Final[dict[str, Callable[[list[int]], int]]] = {
    "queued_jobs": sum,
    "jobs_in_flight": sum,
    "oldest_queued_job_age_seconds": max,
}
#: Names that nodes of 1.0.0 have for these fields.
_FORMER: Final = {"jobs_in_flight": "jobs_in_hand"}


class QueueWatch:
    """Asks the nodes for ``queues``. ``everywhere``: ask all nodes of the cluster, not only one.
    ``clock``: monotonic seconds. ``trouble``: which nodes could not be asked last time, for people.
    ``totals``: figures of all queues together, as far as nodes report them. ``progress``: jobs of
    ``queues`` whose workers report how far they are, as far as nodes know that. ``findings``: what
    is wrong with the cluster, as of some seconds ago; asked for when all nodes are."""

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
        self._before: dict[str, QueueSummary] = {}
        self._before_s = 0.0
        self.trouble = ""
        self.totals: dict[str, int] = {}
        self.progress: list[JobReport] = []
        self.findings: list[Finding] = []
        self._examined_s: float | None = None

    def sample(self) -> list[Row]:
        """A row per queue, with the rates since the last sample.

        :raises ClientError, NobodyAnswers: no node answers.
        """
        members = self._members
        addresses = members.known() if self._everywhere else members.nodes[:1]
        found = members.ask(addresses, self._asked)
        self.trouble = "; ".join(f"{node}: {why}" for node, why in found.silent.items())
        now_s = self._clock()
        elapsed_s, self._before_s = now_s - self._before_s, now_s
        self.totals = summed([info for _, info, _ in found.of.values()])
        self.progress = newest([one for _, _, reports in found.of.values() for one in reports])
        if self._everywhere:
            self._examine(addresses, now_s)
        return [
            self._row(total(name, [seen[place] for seen, _, _ in found.of.values()]), elapsed_s)
            for place, name in enumerate(self._queues)
        ]

    def _examine(self, addresses: Iterable[str], now_s: float) -> None:
        if self._examined_s is None or now_s - self._examined_s >= _FINDINGS_EVERY_S:
            self._examined_s = now_s
            self.findings = findings(whole_survey(self._members, addresses, discover=False))

    def _asked(self, node: Disque) -> tuple[list[Sample], dict[str, str], list[JobReport]]:
        seen = [sample(node, name) for name in self._queues]
        return seen, node.info("totals"), reported(node, self._queues)

    def _row(self, figures: QueueSummary, elapsed_s: float) -> Row:
        before = self._before.get(figures.name)
        self._before[figures.name] = figures
        return figures, rates(before, figures, elapsed_s)


def summed(infos: list[dict[str, str]]) -> dict[str, int]:
    """The totals of all nodes that report them; those of the original do not."""
    found = {}
    for name, joined in _TOTALS.items():
        shown = [info.get(name, info.get(_FORMER.get(name, ""), "")) for info in infos]
        values = [int(text) for text in shown if text.isdecimal()]
        if values:
            found[name] = joined(values)
    return found


@click.command("watch")
@click.argument("queues", nargs=-1, required=True, metavar="QUEUE...")
@click.option(
    "-i",
    "interval_s",
    type=FiniteRange(0.01, 86_400),
    default=1.0,
    show_default=True,
    help="Seconds between two samples.",
)
@click.option("--count", "samples", type=click.IntRange(1), help="Stop after this many samples.")
@click.option("--once", is_flag=True, help="Show one sample.")
@click.option("--one-node", is_flag=True, help="Ask one node, not all of the cluster.")
@click.option("--json", "as_json", is_flag=True, help="JSON documents, one per queue and sample.")
@output.as_csv
@click.pass_obj
def command(
    options: ClientOptions,
    queues: tuple[str, ...],
    interval_s: float,
    samples: int | None,
    once: bool,
    one_node: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Show length, age, rates, waiting clients and pause of each QUEUE until interrupted.

    Figures are those of all nodes together. Below them, where nodes report it: how many jobs of all
    queues wait, how many workers hold, and the age of the oldest one that waits; and how far jobs
    of these queues are, where their workers report it. When the output is
    not a terminal, a line per queue and sample, with tabs.
    """
    with Members(options) as members:
        watch = QueueWatch(members, queues, not one_node)
        rows = _samples(watch, 1 if once else samples, interval_s)
        if as_json:
            _documents(watch, rows)
        elif as_csv:
            _separated(watch, rows)
        elif sys.stdout.isatty():
            _live(watch, rows)
        else:
            _lines(watch, rows)


def _samples(watch: QueueWatch, samples: int | None, interval_s: float) -> Iterator[list[Row]]:
    """The rows of each sample; none when no node answered. At the first one, that is an error."""
    for number in islice(count(), samples):
        if number:
            time.sleep(interval_s)
        try:
            yield watch.sample()
        except DisqueError as error:
            if not number:
                raise
            watch.trouble = str(error)
            yield []


def _lines(watch: QueueWatch, samples: Iterator[list[Row]]) -> None:
    for number, rows in enumerate(samples):
        if not number:
            click.echo("\t".join(("time", *COLUMNS)))
        moment = time.strftime("%Y-%m-%dT%H:%M:%S")
        for row in rows:
            click.echo("\t".join((moment, *cells(*row))))
        _complain(watch)


def _documents(watch: QueueWatch, samples: Iterator[list[Row]]) -> None:
    for rows in samples:
        moment = time.time()
        for row in rows:
            output.document({"time": moment, **values(*row)})
        if watch.totals:
            output.document({"time": moment, "totals": watch.totals})
        if watch.progress:
            jobs = [attrs.asdict(report) for report in watch.progress]
            output.document({"time": moment, "progress": jobs})
        if watch.findings:
            found = [attrs.asdict(finding) for finding in watch.findings]
            output.document({"time": moment, "findings": found})
        _complain(watch)


def _separated(watch: QueueWatch, samples: Iterator[list[Row]]) -> None:
    names = ("time", *values(QueueSummary(""), JobRates()))
    for number, rows in enumerate(samples):
        moment = time.time()
        lines = [(moment, *values(*row).values()) for row in rows]
        output.csv(names, lines, header=not number)
        _complain(watch)


def _complain(watch: QueueWatch) -> None:
    if watch.trouble:
        click.echo(watch.trouble, err=True)


def _summary(watch: QueueWatch) -> str:
    """The lines below the table."""
    lines = [watch.trouble] if watch.trouble else []
    if len(watch.totals) == len(_TOTALS):
        queued, in_flight, oldest_s = (watch.totals[name] for name in _TOTALS)
        lines.append(
            f"all queues: {queued} waiting, the oldest for {oldest_s} s; {in_flight} in flight"
        )
    lines += [report.line() for report in watch.progress]
    lines += [shown(finding) for finding in watch.findings[:_FINDINGS_MAX]]
    if len(watch.findings) > _FINDINGS_MAX:
        lines.append(f"and {len(watch.findings) - _FINDINGS_MAX} more: disque doctor")
    return "\n".join(lines)


def _live(watch: QueueWatch, samples: Iterator[list[Row]]) -> None:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    console = Console()
    with Live(console=console, auto_refresh=False) as live:
        for rows in samples:
            table = output.drawn(COLUMNS, [cells(*row) for row in rows])
            live.update(Group(table, Text(_summary(watch), style="dim")), refresh=True)
