"""How ``disque`` reacts to SIGINT and SIGTERM.

The first one ends it in an orderly way: jobs that it holds are given back, it reports what was done
so far, and the exit status is 130 or 143, as a shell would report. A second one ends it at once. A
worker, and a cleaner of work queues, exit with status 0 instead: a signal is their normal end.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import BinaryIO, Final, NoReturn

NUMBERS: Final = (signal.SIGINT, signal.SIGTERM)
_READ_BYTES: Final = 64 * 1024


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


def postponed() -> AbstractContextManager[list[int]]:
    """A signal that arrives within this context takes effect at its end, a second one ends the
    process at once. Threads are started and waited for within one."""
    # Not at the start of every program: the package of clients takes its time.
    from disque_tx.client.signals import postponed as postponing

    return postponing(_at_once)


def lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a pipe or a terminal, as they arrive, each with its line end.

    Nothing may have been read from ``file`` before. Iterating over the file itself would miss a
    signal that arrives a moment before the read begins: it would wait on for the next line.
    """
    with _wakeup() as wakeup:
        begun: list[bytes] = []
        while True:
            ready, _, _ = select.select((file.fileno(), wakeup), (), ())
            if wakeup in ready:
                os.read(wakeup, _READ_BYTES)  # the handler has run by now, and did not raise
            if file.fileno() not in ready:
                continue
            data = os.read(file.fileno(), _READ_BYTES)
            if not data:
                break
            *ended, rest = data.split(b"\n")
            for line in ended:
                begun.append(line)
                yield b"".join(begun) + b"\n"
                begun.clear()
            begun.append(rest)
        last = b"".join(begun)
        if last:
            yield last


@contextmanager
def _wakeup() -> Iterator[int]:
    """A descriptor that can be read as soon as any signal has arrived, in whichever thread."""
    near, far = os.pipe()
    os.set_blocking(far, False)
    before = signal.set_wakeup_fd(far, warn_on_full_buffer=False)
    try:
        yield near
    finally:
        signal.set_wakeup_fd(before)
        os.close(near)
        os.close(far)
