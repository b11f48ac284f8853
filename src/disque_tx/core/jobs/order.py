"""The jobs of one queue in queue order, oldest first (client protocol, section 13.2).

Nearly every job is newer than those queued before it and nearly every job leaves at the front, so
the jobs lie in short sorted runs: both ends cost the same at any length, the middle costs a search
and the moving of one run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mypy_extensions import i64

from disque_tx.core.jobs.job import Job, before
from disque_tx.errors import LocalError

_RUN: Final = 128


class JobOrder:
    """Jobs in order; ``size`` of them. No run is ever empty."""

    __slots__ = ("size", "_runs")

    def __init__(self) -> None:
        self.size: i64 = 0
        self._runs: list[list[Job]] = []

    def add(self, job: Job) -> None:
        """Put a job in its place; it must not be here yet."""
        self.size += 1
        runs = self._runs
        if not runs:
            runs.append([job])
            return
        last = runs[len(runs) - 1]
        if before(last[len(last) - 1], job):
            if len(last) < _RUN:
                last.append(job)
            else:
                runs.append([job])
            return
        at = self._run_of(job)
        run = runs[at]
        run.insert(_place(run, job), job)
        if len(run) > 2 * _RUN:
            runs.insert(at + 1, run[_RUN:])
            del run[_RUN:]

    def first(self) -> Job | None:
        """The oldest job."""
        return self._runs[0][0] if self._runs else None

    def after(self, job: Job) -> Job | None:
        """The oldest job behind ``job``, which may have left."""
        runs = self._runs
        at = self._run_of(job)
        if at >= len(runs):
            return None
        run = runs[at]
        place = _place(run, job)
        if run[place] is job:
            place += 1
        if place < len(run):
            return run[place]
        return runs[at + 1][0] if at + 1 < len(runs) else None

    def pop(self) -> Job | None:
        """Take the oldest job out."""
        runs = self._runs
        if not runs:
            return None
        self.size -= 1
        run = runs[0]
        job = run.pop(0)
        if not run:
            runs.pop(0)
        return job

    def remove(self, job: Job) -> None:
        """Take a job out; raises ``LocalError`` when it is not here."""
        runs = self._runs
        at = self._run_of(job)
        if at < len(runs):
            run = runs[at]
            place = _place(run, job)
            if place < len(run) and run[place] is job:
                self.size -= 1
                run.pop(place)
                if not run:
                    runs.pop(at)
                return
        raise LocalError(f"job {job.id.decode('latin-1')} is not in its queue")

    def oldest(self, count: int) -> list[Job]:
        """Up to ``count`` jobs, oldest first, without taking them."""
        jobs: list[Job] = []
        for run in self._runs:
            jobs.extend(run[: count - len(jobs)])
            if len(jobs) >= count:
                break
        return jobs

    def newest(self, count: int) -> list[Job]:
        """Up to ``count`` jobs, newest first, without taking them."""
        jobs: list[Job] = []
        for run in reversed(self._runs):
            wanted = count - len(jobs)
            jobs.extend(reversed(run[-wanted:]))
            if len(jobs) >= count:
                break
        return jobs

    def count_before(self, priority: i64) -> i64:
        """How many jobs have a smaller priority."""
        count: i64 = 0
        for run in self._runs:
            if run[len(run) - 1].priority < priority:
                count += len(run)
                continue
            for job in run:
                if job.priority >= priority:
                    break
                count += 1
            break
        return count

    def __iter__(self) -> Iterator[Job]:
        for run in self._runs:
            yield from run

    def _run_of(self, job: Job) -> i64:
        """The first run whose last job is not before ``job``; the number of runs if none."""
        low: i64 = 0
        high: i64 = len(self._runs)
        while low < high:
            middle = (low + high) // 2
            run = self._runs[middle]
            if before(run[len(run) - 1], job):
                low = middle + 1
            else:
                high = middle
        return low


def _place(run: list[Job], job: Job) -> i64:
    """Where in a run the job is, or belongs."""
    low: i64 = 0
    high: i64 = len(run)
    while low < high:
        middle = (low + high) // 2
        if before(run[middle], job):
            low = middle + 1
        else:
            high = middle
    return low
