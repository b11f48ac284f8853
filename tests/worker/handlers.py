"""Handlers for workers in processes of their own. They append lines to the file named by DONE."""

from __future__ import annotations

import os
import sys
import time
from typing import NoReturn

from disque_tx.worker import Command, Context, Hopeless, Queue, batch, current_job, process

queue = Queue("calls", retry_s=60, retries_max=0)
times = Queue("times", retry_s=60, retries_max=0)


def record(word: bytes) -> None:
    """Append a line, in one write that no other process can split."""
    with open(os.environ["DONE"], "ab", buffering=0) as file:
        file.write(word + b"\n")


def note(job: Context) -> None:
    """Record the job."""
    record(job.body)


def slowly(job: Context) -> None:
    """Record the job after a moment."""
    time.sleep(0.002)
    record(job.body)


async def at_once(job: Context) -> None:
    """Record the job on the reactor."""
    record(job.body)


def pages(job: Context) -> None:
    """Report how far the job is, and never come to an end."""
    job.progress(0.4, job.body.decode())
    record(job.body)
    time.sleep(600)


def signed(job: Context) -> None:
    """Record who does the job, which takes a while."""
    record(job.worker.encode() + b" " + job.body)
    time.sleep(1)


@batch(10, wait_s=0.1)
def together(jobs: list[Context]) -> None:
    """Record a batch of jobs."""
    record(b",".join(job.body for job in jobs))


def leave(job: Context) -> NoReturn:
    """Raise SystemExit."""
    sys.exit("leave")


def crash(job: Context) -> NoReturn:
    """End the process at once."""
    os._exit(7)


def hang(job: Context) -> None:
    """Do not return."""
    time.sleep(1000)


@queue.job(result=True)
def add(left: int, right: int) -> int:
    """Return a sum."""
    return left + right


@queue.job(result=True)
async def times_two(number: int) -> int:
    """Return a product, on the reactor."""
    return 2 * number


@queue.job(result=True, process=True)
def where(how: str) -> int:
    """Return the ID of the process, or end it."""
    if how == "exit":
        os._exit(3)
    return os.getpid()


@queue.job(result=True)
def refuse(reason: str) -> None:
    """Fail without another attempt."""
    raise Hopeless(reason)


@queue.job(result=True)
def opaque() -> object:
    """Return a value that JSON cannot represent."""
    return object()


@queue.job(result=True)
def attempt() -> int:
    """Return the number of this attempt."""
    return current_job().attempt


handlers = {
    "note": note,
    "coroutine": at_once,
    "together": together,
    "leave": leave,
    "crash": process(crash),
    "hang": process(hang, time_limit_s=0.5),
    "true": Command(["grep", "-q", "good"]),
    "false": Command(["sh", "-c", "echo it is broken >&2; exit 4"]),
    "absent": Command(["/nowhere/at/all"]),
    "slow": Command(["sleep", "1000"], time_limit_s=0.5),
    "calls": queue,
}
not_handlers = 3
