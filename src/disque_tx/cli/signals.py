"""How ``disque`` reacts to SIGINT and SIGTERM.

The first one ends it in an orderly way: jobs that it holds are given back, it reports what was done
so far, and the exit status is 130 or 143, as a shell would report. A second one ends it at once. A
worker, and a cleaner of work queues, exit with status 0 instead: a signal is their normal end.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

NUMBERS: Final = (signal.SIGINT, signal.SIGTERM)


def status(number: int) -> int:
    """The exit status of a program that a signal has ended."""
    return 128 + number


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """Within this context the signals raise :class:`SystemExit`, with the status, in the main
    thread."""
    before = {number: signal.getsignal(number) for number in NUMBERS}
    signal.signal(signal.SIGTERM, _terminated)
    try:
        yield
    except KeyboardInterrupt:
        exit_at_once()
        raise SystemExit(status(signal.SIGINT)) from None
    else:
        for number, handler in before.items():
            signal.signal(number, handler)


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    exit_at_once()
    raise SystemExit(status(number))


def exit_at_once() -> None:
    """From now on a signal ends the process at once."""
    for number in NUMBERS:
        signal.signal(number, _at_once)


def _at_once(number: int, frame: FrameType | None) -> NoReturn:
    sys.stderr.flush()
    os._exit(status(number))
