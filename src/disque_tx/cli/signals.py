"""What SIGINT and SIGTERM do to ``disque``, whatever it is doing.

The first one ends it in good order: what holds jobs gives them back, what was done so far is said,
and the exit status is 130 or 143, as of a shell. A second one ends it at once. A worker, and a
cleaner of work queues, end with status 0 instead: they were started to be ended so.
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
def ending() -> Iterator[None]:
    """Within this the signals raise :class:`SystemExit`, with the status, in the main thread."""
    before = {number: signal.getsignal(number) for number in NUMBERS}
    signal.signal(signal.SIGTERM, _terminated)
    try:
        yield
    except KeyboardInterrupt:
        forget()
        raise SystemExit(status(signal.SIGINT)) from None
    else:
        for number, handler in before.items():
            signal.signal(number, handler)


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    forget()
    raise SystemExit(status(number))


def forget() -> None:
    """From now on a signal ends the process at once."""
    for number in NUMBERS:
        signal.signal(number, _at_once)


def _at_once(number: int, frame: FrameType | None) -> NoReturn:
    sys.stderr.flush()
    os._exit(status(number))
