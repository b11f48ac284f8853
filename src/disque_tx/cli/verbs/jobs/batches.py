"""Fetching the jobs of a queue in batches, without losing one.

GETJOB delivers a job and the cluster keeps it until ACKJOB. A job that is not acknowledged is
delivered again after its RETRY, whatever happens to this process. Only a job with RETRY 0 is
delivered at most once: it cannot be given back, and is lost if the process ends while it holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

import click

from disque_tx.cli.verbs.base.members import Members
from disque_tx.cli.verbs.base.numbers import FiniteRange
from disque_tx.client.blocking import Disque
from disque_tx.client.errors import ClientError
from disque_tx.client.steps.fetching import whole_ms
from disque_tx.client.values import Job
from disque_tx.text.counts import counted

#: How many jobs that could not be given back are named.
_NAMED_MAX: Final = 100
_F = TypeVar("_F", bound=Callable[..., object])


def limits(command: _F) -> _F:
    """The options --count and --timeout."""
    count = click.option("--count", type=click.IntRange(1), help="Stop after this many jobs.")
    timeout = click.option(
        "--timeout",
        "timeout_s",
        type=FiniteRange(0, 1e6),
        default=2.0,
        show_default=True,
        help="Seconds without a job after which the queue counts as empty; 0: look once, at one"
        " node.",
    )
    return count(timeout(command))


class BatchFetcher:
    """Fetches jobs of ``queue``, up to ``batch`` at a time, until none came for ``timeout_s``.

    ``stranded``: IDs of jobs with RETRY 0 that could not be given back.
    """

    def __init__(self, client: Disque, queue: str, timeout_s: float, batch: int) -> None:
        self._client = client
        self._queue = queue
        self._timeout_s = timeout_s
        self._batch = batch
        self.stranded: list[str] = []

    def batches(self, count: int | None) -> Iterator[list[Job]]:
        """Batches, never empty, of ``count`` jobs in all, ``None`` for all there are."""
        taken = 0
        while count is None or taken < count:
            size = self._batch if count is None else min(self._batch, count - taken)
            jobs = self._client.get_jobs(
                self._queue,
                count=size,
                timeout_ms=whole_ms(self._timeout_s),
                no_hang=self._timeout_s == 0,
            )
            if not jobs:
                return
            taken += len(jobs)
            yield jobs

    @contextmanager
    def holding(self, jobs: list[Job]) -> Iterator[None]:
        """If the block fails or is interrupted, the jobs still in ``jobs`` are queued again
        at once, if possible."""
        try:
            yield
        except BaseException:
            self.give_back([job.id for job in jobs])
            raise

    def give_back(self, ids: list[str]) -> None:
        """Queue these again now. If no node can be reached, it happens after RETRY anyway."""
        for start in range(0, len(ids), self._batch):
            some = ids[start : start + self._batch]
            with suppress(ClientError):
                if self._client.enqueue_jobs(*some) < len(some):
                    self._find_stranded(some)

    def _find_stranded(self, ids: list[str]) -> None:
        for job in self._client.show_jobs(*ids):
            if job is not None and job.retry_s == 0 and job.state == "active":
                self.stranded.append(job.id)

    def report(self) -> None:
        """Name the jobs that could not be given back."""
        for job_id in self.stranded[:_NAMED_MAX]:
            click.echo(
                f"{job_id} has RETRY 0 and cannot be given back: nobody gets it any more; SHOW has"
                " it until its TTL is over",
                err=True,
            )
        more = len(self.stranded) - _NAMED_MAX
        if more > 0:
            click.echo(f"and so it is with {counted(more, 'other job')}", err=True)


def waiting(members: Members, queue: str) -> int:
    """How many jobs are queued now, over all nodes that answer."""
    return sum(members.ask(members.known(), lambda node: node.queue_length(queue)).of.values())
