"""``disque move``: moves the jobs of a queue to another queue, here or in another cluster.

The steps for each job are GETJOB from the old queue; ADDJOB to the new one; when that is answered,
ACKJOB of the old. If this is ended at any point, the job is in the old queue, in the new one, or in
both; never in neither. An ADDJOB whose answer is lost is repeated.

A job with RETRY 0 is never in both: from its ADDJOB on it is not given back to the old queue, and
an ADDJOB whose answer is lost is not repeated.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Final

import attrs
import click

from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.base.members import Members
from disque_tx.cli.verbs.base.numbers import FiniteRange
from disque_tx.cli.verbs.base.output import progress
from disque_tx.cli.verbs.jobs.batches import BatchFetcher, limits, waiting
from disque_tx.client.addresses import seeds
from disque_tx.client.blocking import Disque
from disque_tx.client.errors import CannotConnect, Refused
from disque_tx.client.options import current_options
from disque_tx.client.values import Job
from disque_tx.messages.limits import REPLICATE_RANGE
from disque_tx.text.counts import counted

_BATCH: Final = 10
_TO_PASSWORD: Final = "DISQUE_TO_PASSWORD"


@attrs.frozen
class Pace:
    """Limits the rate to ``per_s`` steps a second; ``None``: no limit."""

    per_s: float | None
    sleep: Callable[[float], object] = time.sleep
    now_s: Callable[[], float] = time.monotonic

    def rest(self, since_s: float) -> None:
        """Wait until a step that began at ``since_s`` has taken long enough."""
        if self.per_s is not None:
            self.sleep(max(0.0, since_s + 1 / self.per_s - self.now_s()))


class Move:
    """Moves jobs. ``replicate``: copies at the target; ``None`` for as many as the job had.

    ``done``: how many were moved. ``left``: how many were skipped, because the source did not know
    them any more. ``unknown``: IDs of jobs with RETRY 0 that may or may not be at the target.
    """

    def __init__(
        self, source: Disque, target: Disque, to_queue: str, replicate: int | None, pace: Pace
    ) -> None:
        self._source = source
        self._target = target
        self._to_queue = to_queue
        self._replicate = replicate
        self._pace = pace
        self.done = 0
        self.left = 0
        self.unknown: list[str] = []

    def run(self, fetcher: BatchFetcher, count: int | None, advance: Callable[[int], None]) -> None:
        """Move up to ``count`` jobs, ``None`` for all.

        :raises ClientError: a request failed; fetched jobs that were not moved are given back.
        """
        for jobs in fetcher.batches(count):
            with fetcher.holding(jobs):
                while jobs:
                    began_s = self._pace.now_s()
                    self._move(jobs)
                    advance(1)
                    self._pace.rest(began_s)

    def _move(self, jobs: list[Job]) -> None:
        """Move the first job, and remove it from the list."""
        job = jobs[0]
        details = self._source.show(job.id)
        if details is None or details.state == "acked":
            self.left += 1
        else:
            options = current_options(details).with_replicate(self._replicate).retried_if_safe()
            with self._at_most_once(jobs) if options.at_most_once else nullcontext():
                self._target.add_job_with(self._to_queue, job.body, options)
            self._source.ack_jobs(job.id)
            self.done += 1
        if jobs and jobs[0] is job:
            jobs.pop(0)

    @contextmanager
    def _at_most_once(self, jobs: list[Job]) -> Iterator[None]:
        """Within this block the first job may already be at the target: it is given back only if it
        is certain that it is not."""
        job = jobs.pop(0)
        try:
            yield
        except (Refused, CannotConnect):
            jobs.insert(0, job)
            raise
        except BaseException:
            self.unknown.append(job.id)
            raise


def _elsewhere(options: ClientOptions, to_address: str) -> Members:
    """The other cluster: its password is in the URL, in the environment, or the same."""
    given = seeds(to_address if "//" in to_address else to_address.split(","))
    password = given.password or os.environ.get(_TO_PASSWORD)
    return Members(options, map(str, given.addresses), password)


def _is_same(source: Disque, target: Disque) -> bool:
    """Whether two clients are connected to the same cluster."""
    mine, other = source.hello(), target.hello()
    return bool({node.id for node in mine.nodes} & {node.id for node in other.nodes})


@click.command("move")
@click.argument("queue")
@click.argument("to_queue", metavar="QUEUE2")
@click.option("--to-address", help="Nodes of another cluster: host:port,… or disque://:password@…")
@click.option(
    "--replicate", type=click.IntRange(*REPLICATE_RANGE), help="Copies; by default as before."
)
@click.option("--rate", type=FiniteRange(0, min_open=True), help="Jobs per second at most.")
@limits
@click.pass_obj
def command(
    options: ClientOptions,
    queue: str,
    to_queue: str,
    to_address: str | None,
    replicate: int | None,
    rate: float | None,
    count: int | None,
    timeout_s: float,
) -> None:
    """Move the jobs of QUEUE to QUEUE2, with their RETRY and the rest of their TTL.

    A job is added to the new queue first, and then acknowledged in the old one: when this is ended
    early no job is lost, and one may be in both. IDs are new, counters start at zero. Jobs with
    RETRY 0 are delivered at most once: none of them is in both queues, they keep one copy, and
    those being moved are lost when this ends early; their IDs are printed, unless it is killed.

    The password of another cluster is the one in the URL, or in DISQUE_TO_PASSWORD, or the same.
    """
    there = _elsewhere(options, to_address) if to_address is not None else Members(options)
    with Members(options) as here, here.cluster() as source, there.cluster() as target:
        if queue == to_queue and _is_same(source, target):
            raise click.UsageError("QUEUE and QUEUE2 are the same queue of the same cluster.")
        move = Move(source, target, to_queue, replicate, Pace(rate))
        fetcher = BatchFetcher(source, queue, timeout_s, _BATCH)
        with progress(f"move {queue}", count or waiting(here, queue)) as advance:
            try:
                move.run(fetcher, count, advance)
            finally:
                _report(move)
                fetcher.report()


def _report(move: Move) -> None:
    click.echo(f"{counted(move.done, 'job')} moved", err=True)
    if move.left:
        click.echo(f"{counted(move.left, 'job')} done or lost meanwhile, and skipped", err=True)
    for job_id in move.unknown:
        click.echo(
            f"{job_id} has RETRY 0; its ADDJOB was not answered: it was moved, or is lost", err=True
        )
