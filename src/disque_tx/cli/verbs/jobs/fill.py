"""``disque fill``: adds jobs from a file or a pipe, the inverse of ``disque drain``.

Lines are added one by one: the next ADDJOB is sent when the one before is answered. So the outcome
of at most one line is unknown at any moment, and the final report is exact. One line is in memory
at a time, and the IDs of the last :data:`SEEN_MAX` ones: a job that was drained twice, because a
drain was killed, is added once.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

import click

from disque_tx.cli import signals
from disque_tx.cli.options import ClientOptions
from disque_tx.cli.verbs.base.members import Members
from disque_tx.cli.verbs.base.output import progress
from disque_tx.cli.verbs.jobs.lines import JobLine, NotAJob, parsed
from disque_tx.cli.verbs.jobs.tail import Seen
from disque_tx.client.blocking import Disque
from disque_tx.client.errors import CannotConnect, Refused
from disque_tx.errors import DisqueError
from disque_tx.messages.limits import REPLICATE_RANGE
from disque_tx.text.counts import counted

SEEN_MAX: Final = 100_000
_INPUT: Final = "-"


class BadLine(DisqueError):
    """A line that is not a job; the text says which, and why."""

    def __init__(self, number: int, error: NotAJob) -> None:
        super().__init__(f"line {number} is not a job: {error}")


class Lines:
    """The lines of ``source`` with their numbers, from ``first`` on; empty ones are skipped.
    ``bad``: where lines are written that are not jobs; ``None``: they are errors. ``rejected``: how
    many were."""

    def __init__(self, source: Iterable[bytes], first: int, bad: BinaryIO | None) -> None:
        self._source = source
        self._first = first
        self._bad = bad
        self.rejected = 0

    def __iter__(self) -> Iterator[tuple[int, JobLine]]:
        """:raises BadLine: for the first that is not a job."""
        for number, line in enumerate(self._source, 1):
            if number < self._first or not line.strip():
                continue
            try:
                record = parsed(line)
            except NotAJob as error:
                self._reject(number, line, error)
                continue
            yield number, record

    def _reject(self, number: int, line: bytes, error: NotAJob) -> None:
        if self._bad is None:
            raise BadLine(number, error) from None
        self._bad.write(line if line.endswith(b"\n") else line + b"\n")
        self._bad.flush()
        self.rejected += 1
        click.echo(f"{BadLine(number, error)}; it was set aside", err=True)


class Fill:
    """Adds jobs. ``queue``: for all jobs, instead of their own. ``replicate``: copies, likewise.

    ``done``: how many were added. ``again``: how many lines were of jobs added before. ``line``:
    the last line that is done. ``doubtful``: the line whose job may or may not have been added.
    """

    def __init__(self, client: Disque, queue: str | None, replicate: int | None) -> None:
        self._client = client
        self._queue = queue
        self._replicate = replicate
        self._seen = Seen(SEEN_MAX)
        self.done = 0
        self.again = 0
        self.line = 0
        self.doubtful: int | None = None

    def run(self, lines: Lines, advance: Callable[[int], None]) -> None:
        """Add them all.

        :raises BadLine: a line is not a job; those before it were added.
        :raises ClientError: an ADDJOB failed; likewise.
        """
        for number, record in lines:
            if record.id and self._seen.knows(record.id):
                self.again += 1
            else:
                self._add(number, record)
            self.line = number
            advance(1)

    def _add(self, number: int, record: JobLine) -> None:
        options = record.options.with_replicate(self._replicate).retried_if_safe()
        self.doubtful = number
        try:
            self._client.add_job_with(self._queue or record.queue, record.body, options)
        except (Refused, CannotConnect):
            self.doubtful = None
            raise
        self.doubtful = None
        self.done += 1


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    if path == _INPUT:
        yield sys.stdin.buffer
        return
    with open(path, "rb") as file:
        yield file


@contextmanager
def _aside(path: str | None) -> Iterator[BinaryIO | None]:
    if path is None:
        yield None
        return
    with open(path, "ab") as file:
        yield file


def _is_regular(file: BinaryIO) -> bool:
    """Whether it is a file, which can be read twice, and not a pipe or a terminal."""
    return stat.S_ISREG(os.fstat(file.fileno()).st_mode)


def _checked(file: BinaryIO, first: int) -> int:
    """How many jobs there are in a regular file, which is read twice.

    :raises DisqueError: a line is not a job; nothing was added yet.
    """
    start = file.tell()
    try:
        count = sum(1 for _ in Lines(file, first, None))
    except BadLine as error:
        raise DisqueError(f"{error}; nothing was added") from None
    file.seek(start)
    return count


@click.command("fill")
@click.argument("file", default=_INPUT, metavar="[FILE]")
@click.option("--queue", help="Add all jobs to this queue, instead of their own.")
@click.option(
    "--replicate", type=click.IntRange(*REPLICATE_RANGE), help="Copies; by default as before."
)
@click.option("--from-line", "first", type=click.IntRange(1), default=1, help="First line to read.")
@click.option("--bad", type=click.Path(dir_okay=False), help="File for lines that are not jobs.")
@click.pass_obj
def command(
    options: ClientOptions,
    file: str,
    queue: str | None,
    replicate: int | None,
    first: int,
    bad: str | None,
) -> None:
    """Add the jobs of FILE, or of the standard input, which disque drain has written.

    A job gets the queue, the RETRY, the number of copies and the TTL of its line: the TTL that was
    left when it was drained. Each job is queued at once, has a new ID, and its counters start at
    zero.

    A file with a line that is not a job is refused before anything is added; with --bad, and from a
    pipe, the lines before it are added. When this is ended early it reports which lines are added,
    and --from-line continues.
    """
    with _opened(file) as source, _aside(bad) as rejects, Members(options) as members:
        regular = _is_regular(source)
        total = _checked(source, first) if regular and not bad else None
        fill = Fill(members.cluster(), queue, replicate)
        lines = Lines(source if regular else signals.lines(source), first, rejects)
        done = False
        with progress("fill", total) as advance:
            try:
                fill.run(lines, advance)
                done = True
            finally:
                _report(fill, lines, first, done)


def _report(fill: Fill, lines: Lines, first: int, done: bool) -> None:
    click.echo(f"{counted(fill.done, 'job')} added", err=True)
    if fill.again:
        click.echo(f"{counted(fill.again, 'line')} of jobs that other lines had added", err=True)
    if lines.rejected:
        click.echo(f"{counted(lines.rejected, 'line')} set aside", err=True)
    if done:
        return
    following = max(fill.line + 1, first)
    if fill.doubtful is None:
        click.echo(
            f"All before line {following} is added: --from-line {following} continues", err=True
        )
        return
    click.echo(
        f"All before line {fill.doubtful} is added; line {fill.doubtful} may be added or not:"
        f" --from-line {fill.doubtful} adds it again, --from-line {fill.doubtful + 1} does not",
        err=True,
    )
