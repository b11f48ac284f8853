"""``disque drain``: the jobs of a queue, out of Disque and into a file or a pipe.

The order of things: GETJOB; write; flush, and fsync if it is a file; only then ACKJOB. Killed
anywhere in between, a job is in the output, in the queue, or in both; never in neither.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

import click

from disque_tx.cli.options import Options
from disque_tx.cli.verbs.jobs import lines as joblines
from disque_tx.cli.verbs.jobs.taking import Taker, limits, waiting
from disque_tx.cli.verbs.members import Members
from disque_tx.cli.verbs.output import progress
from disque_tx.client.blocking import Disque
from disque_tx.client.values import Job, JobDetails

_BATCH: Final = 100
#: Jobs that are to be given back are remembered.
KEPT_MAX: Final = 100_000


class Sink:
    """Where jobs are written to, and stay. ``line``: makes bytes of a job."""

    def __init__(self, file: BinaryIO, line: joblines.Line) -> None:
        self._file = file
        self._line = line
        self._regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)

    def write(self, jobs: list[tuple[Job, JobDetails | None]]) -> None:
        """Write, and return when it is out of this process and, in a file, on the disk.

        :raises OSError: it may have been written in part.
        """
        self._file.write(b"".join([self._line(job, known) for job, known in jobs]))
        self._file.flush()
        if self._regular:
            os.fsync(self._file.fileno())


class Drain:
    """``keep``: give the jobs back in the end instead of acknowledging them. ``whole``: ask what
    else is known of each job. ``done``: so many have been written, and acknowledged if they are to
    be."""

    def __init__(self, client: Disque, taker: Taker, sink: Sink, keep: bool, whole: bool) -> None:
        self._client = client
        self._taker = taker
        self._sink = sink
        self._keep = keep
        self._whole = whole
        self._kept: dict[str, None] = {}
        self.done = 0

    def run(self, count: int | None, advance: Callable[[int], None]) -> None:
        """Drain up to ``count`` jobs, ``None`` for all."""
        try:
            for jobs in self._taker.batches(
                min(count or KEPT_MAX, KEPT_MAX) if self._keep else count
            ):
                # A job whose RETRY is over comes twice; then all have been seen.
                fresh = [job for job in jobs if job.id not in self._kept]
                if not fresh:
                    return
                with self._taker.holding(jobs):
                    self._sink.write(self._described(fresh))
                self._settle(fresh)
                self.done += len(fresh)
                advance(len(fresh))
        finally:
            self._taker.give_back(list(self._kept))

    def _described(self, jobs: list[Job]) -> list[tuple[Job, JobDetails | None]]:
        if not self._whole:
            return [(job, None) for job in jobs]
        known = self._client.show_jobs(*[job.id for job in jobs])
        return list(zip(jobs, known, strict=True))

    def _settle(self, jobs: list[Job]) -> None:
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
            # A line that was torn when a process was killed: its job was not acknowledged.
            if file.read(1) != b"\n":
                file.write(b"\n")
        else:
            _sync_folder(path)
        yield file


def _sync_folder(path: str) -> None:
    """A new file is on the disk only when its name is."""
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@click.command("drain")
@click.argument("queue")
@click.option("--to", "path", type=click.Path(dir_okay=False), help="Append to this file.")
@click.option("--raw", is_flag=True, help="Bodies only, a line end behind each.")
@click.option("--keep", is_flag=True, help="Queue the jobs again in the end; 100,000 at most.")
@limits
@click.pass_obj
def command(
    options: Options,
    queue: str,
    path: str | None,
    raw: bool,
    keep: bool,
    count: int | None,
    timeout_s: float,
) -> None:
    """Take the jobs of QUEUE and write them, as JSON documents, a line each; disque fill adds them
    again.

    A job is acknowledged only after it was written, and synced if the output is a file. So
    whatever kills this, no job is lost; the last ones may be written and come again. Jobs with
    RETRY 0 asked to be delivered at most once: those in hand are lost when this is killed.
    """
    with Members(options) as members, members.cluster() as client:
        total = count or waiting(members, queue)
        line = joblines.as_body if raw else joblines.as_json
        shown = path is not None or not sys.stdout.isatty()
        with _opened(path) as file, progress(f"drain {queue}", total, shown) as advance:
            taker = Taker(client, queue, timeout_s, _BATCH)
            drain = Drain(client, taker, Sink(file, line), keep, whole=not raw)
            try:
                drain.run(count, advance)
            finally:
                click.echo(f"{drain.done} jobs {'copied' if keep else 'drained'}", err=True)
