"""``disque tail``: shows the jobs of a queue as they arrive, and leaves them there.

Nodes are polled with QPEEK. A job that comes and goes between two polls is not seen, nor one that
goes at once to a waiting client, nor more than :data:`POLL_MAX` per node between two polls.
"""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final

import click

from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.base.members import Members
from disque_tx.cli.verbs.base.numbers import FiniteRange
from disque_tx.cli.verbs.jobs import lines as joblines
from disque_tx.client.blocking import Disque
from disque_tx.client.values import Job

#: How many of the newest jobs are read, per node and look.
POLL_MAX: Final = 1000
#: How many IDs are remembered; a job that is requeued later than that is shown again.
SEEN_MAX: Final = 100_000


class Seen:
    """The IDs seen last, ``limit`` at most."""

    def __init__(self, limit: int = SEEN_MAX) -> None:
        self._limit = limit
        self._ids: OrderedDict[str, None] = OrderedDict()

    def new(self, jobs: Iterable[Job]) -> Iterator[Job]:
        """The jobs that were not seen before, each once."""
        for job in jobs:
            if not self.knows(job.id):
                yield job

    def knows(self, job_id: str) -> bool:
        """Whether this ID was seen before; remembers it."""
        known = job_id in self._ids
        # Jobs that are still there are remembered longest.
        self._ids.pop(job_id, None)
        self._ids[job_id] = None
        if len(self._ids) > self._limit:
            self._ids.popitem(last=False)
        return known


class Tail:
    """The newest jobs of ``queue`` at the nodes of a cluster. ``silent``: address → why a node
    could not be asked last time."""

    def __init__(self, members: Members, queue: str) -> None:
        self._members = members
        self._queue = queue
        self._seen = Seen(SEEN_MAX)
        self.silent: dict[str, str] = {}

    def poll(self, count: int) -> list[Job]:
        """Up to ``count`` jobs per node that have come since the last poll, the oldest first.

        :raises ClientError, NobodyAnswers: no node answers.
        """

        def newest(node: Disque) -> list[Job]:
            return node.queue_peek(self._queue, -count)

        found = self._members.ask(self._members.known(), newest)
        self.silent = found.silent
        # The newest come first.
        return list(self._seen.new(job for jobs in found.of.values() for job in reversed(jobs)))


@click.command("tail")
@click.argument("queue")
@click.option(
    "-n",
    "count",
    type=click.IntRange(0, POLL_MAX),
    default=10,
    show_default=True,
    help="How many of the newest jobs to show first.",
)
@click.option("-f", "follow", is_flag=True, help="Then show new jobs, until interrupted.")
@click.option(
    "-i",
    "interval_s",
    type=FiniteRange(0.01, 86_400),
    default=1.0,
    show_default=True,
    help="Seconds between two polls, with -f.",
)
@click.option("--json", "as_json", is_flag=True, help="A JSON document per line.")
@click.pass_obj
def command(
    options: ClientOptions, queue: str, count: int, follow: bool, interval_s: float, as_json: bool
) -> None:
    """Show the newest jobs of QUEUE, over all nodes, and leave them where they are.

    Jobs that are fetched between two polls, or at once by a waiting client, are not seen; with busy
    workers these are most of them.
    """
    line = joblines.as_json if as_json else _for_people()
    with Members(options) as members:
        tail = Tail(members, queue)
        there = tail.poll(POLL_MAX)
        _show(tail, there[max(0, len(there) - count) :], line)
        while follow:
            time.sleep(interval_s)
            _show(tail, tail.poll(POLL_MAX), line)


def _for_people() -> joblines.Line:
    terminal = sys.stdout.isatty() and sys.stdout.encoding.lower() in ("utf-8", "utf8")
    return joblines.as_readable if terminal else joblines.as_text


def _show(tail: Tail, jobs: list[Job], line: joblines.Line) -> None:
    for address, why in tail.silent.items():
        click.echo(f"Node {address} could not be asked ({why}).", err=True)
    sys.stdout.buffer.write(b"".join([line(job, None) for job in jobs]))
    sys.stdout.buffer.flush()
