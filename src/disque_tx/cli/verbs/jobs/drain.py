"""``disque drain``: moves the jobs of a queue out of Disque into a file or a pipe.

The steps are GETJOB; write; flush, and fsync if it is a file; only then ACKJOB. If this is killed
at any point, a job is in the output, in the queue, or in both; never in neither.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

import click

from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.base.members import Members
from disque_tx.cli.verbs.base.output import progress
from disque_tx.cli.verbs.jobs import lines as joblines
from disque_tx.cli.verbs.jobs.batches import BatchFetcher, limits, waiting
from disque_tx.client.blocking import Disque
from disque_tx.client.values import Job, JobDetails
from disque_tx.text.counts import counted

_BATCH: Final = 100
#: How many jobs --keep can give back: their IDs are kept in memory.
KEPT_MAX: Final = 100_000


class Sink:
    """Writes jobs durably. ``line``: makes a line of a job."""

    def __init__(self, file: BinaryIO, line: joblines.Line) -> None:
        self._file = file
        self._line = line
        self._regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)

    def write(self, jobs: list[tuple[Job, JobDetails | None]]) -> None:
        """Write and flush the jobs; a file is synced to the disk.

        :raises OSError: a part may have been written.
        """
        self._file.write(b"".join([self._line(job, details) for job, details in jobs]))
        self._file.flush()
        if self._regular:
            os.fsync(self._file.fileno())


class Drain:
    """Drains a queue. ``keep``: give the jobs back in the end instead of acknowledging them.
    ``whole``: write all that is known about each job. ``done``: how many have been written, and
    acknowledged unless they are kept."""

    def __init__(
        self, client: Disque, fetcher: BatchFetcher, sink: Sink, keep: bool, whole: bool
    ) -> None:
        self._client = client
        self._fetcher = fetcher
        self._sink = sink
        self._keep = keep
        self._whole = whole
        self._kept: dict[str, None] = {}
        self.done = 0

    def run(self, count: int | None, advance: Callable[[int], None]) -> None:
        """Drain up to ``count`` jobs, ``None`` for all."""
        try:
            for jobs in self._fetcher.batches(
                min(count or KEPT_MAX, KEPT_MAX) if self._keep else count
            ):
                # Kept jobs are delivered again after their RETRY; then all have been seen.
                fresh = [job for job in jobs if job.id not in self._kept]
                if not fresh:
                    return
                with self._fetcher.holding(jobs):
                    self._sink.write(self._described(fresh))
                self._finish_jobs(fresh)
                self.done += len(fresh)
                advance(len(fresh))
        finally:
            self._fetcher.give_back(list(self._kept))

    def _described(self, jobs: list[Job]) -> list[tuple[Job, JobDetails | None]]:
        if not self._whole:
            return [(job, None) for job in jobs]
        details = self._client.show_jobs(*[job.id for job in jobs])
        return list(zip(jobs, details, strict=True))

    def _finish_jobs(self, jobs: list[Job]) -> None:
        ids = [job.id for job in jobs]
        if self._keep:
            self._kept.update(dict.fromkeys(ids))
        else:
            self._client.ack_jobs(*ids)


@contextmanager
def _opened(path: str | None) -> Iterator[BinaryIO]:
    """The file to append to, or the standard output."""
    if path is None:
        yield sys.stdout.buffer
        return
    with open(path, "a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            # An incomplete line of a process that was killed: its job was not acknowledged.
            if file.read(1) != b"\n":
                file.write(b"\n")
        else:
            _sync_folder(path)
        yield file


def _sync_folder(path: str) -> None:
    """A new file is durable only when its folder is synced as well."""
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@click.command("drain")
@click.argument("queue")
@click.option("--to", "path", type=click.Path(dir_okay=False), help="Append to this file.")
@click.option("--raw", is_flag=True, help="Bodies only, each followed by a line end.")
@click.option("--keep", is_flag=True, help="Queue the jobs again in the end; 100,000 at most.")
@limits
@click.pass_obj
def command(
    options: ClientOptions,
    queue: str,
    path: str | None,
    raw: bool,
    keep: bool,
    count: int | None,
    timeout_s: float,
) -> None:
    """Fetch the jobs of QUEUE and write them, as JSON documents, a line each; disque fill adds them
    again.

    A job is acknowledged only after it was written, and synced if the output is a file. So no job
    is lost when this is killed; the last ones may be written and delivered again. Jobs with RETRY 0
    are delivered at most once: they cannot be given back, neither when this ends early nor by
    --keep; their IDs are printed then.
    """
    with Members(options) as members, members.cluster() as client:
        total = count or waiting(members, queue)
        line = joblines.as_body if raw else joblines.as_json
        shown = path is not None or not sys.stdout.isatty()
        with _opened(path) as file, progress(f"drain {queue}", total, shown) as advance:
            fetcher = BatchFetcher(client, queue, timeout_s, _BATCH)
            drain = Drain(client, fetcher, Sink(file, line), keep, whole=not raw)
            try:
                drain.run(count, advance)
            finally:
                how = "copied" if keep else "drained"
                click.echo(f"{counted(drain.done, 'job')} {how}", err=True)
                fetcher.report()
        if fetcher.stranded:
            raise SystemExit(1)
