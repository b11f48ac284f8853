"""Signals interrupt ``disque`` while it waits."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli import signals

_LIMIT_S = 60


class _Signalled(Exception):
    """The signal arrived."""


def _raise(number: int, frame: FrameType | None) -> None:
    raise _Signalled


class LineTests(SynchronousTestCase):
    """Reading lines from a pipe."""

    def setUp(self) -> None:
        source, self.sink = os.pipe()
        self.source = os.fdopen(source, "rb")
        self.addCleanup(self.source.close)
        self.addCleanup(self.end)

    def end(self) -> None:
        """Close the writing end of the pipe, once."""
        if self.sink >= 0:
            os.close(self.sink)
            self.sink = -1

    def test_lines(self) -> None:
        """The lines are the same as when iterating over the file, also for a line in pieces and an
        unfinished last one."""
        lines = signals.lines(self.source)
        os.write(self.sink, b"one\ntwo\n\nth")
        self.assertEqual([b"one\n", b"two\n", b"\n"], [next(lines) for _ in range(3)])
        os.write(self.sink, b"r")
        os.write(self.sink, b"ee\nlast")
        self.end()
        self.assertEqual([b"three\n", b"last"], list(lines))

    def test_signal_that_interrupts_no_read(self) -> None:
        """A signal that arrives just before the read begins, or in another thread, still ends the
        wait: users need not press the key twice."""
        before = signal.signal(signal.SIGUSR1, _raise)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        begins, ended = threading.Event(), threading.Event()

        def send() -> None:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
            begins.wait()
            os.kill(os.getpid(), signal.SIGUSR1)
            if not ended.wait(_LIMIT_S):
                self.end()

        def wait() -> None:
            begins.set()
            next(lines)

        os.write(self.sink, b"line\n")
        lines = signals.lines(self.source)
        next(lines)
        sender = threading.Thread(target=send)
        sender.start()
        # The kernel then delivers the signal to the other thread, and no system call of this one is
        # interrupted.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        self.addCleanup(signal.pthread_sigmask, signal.SIG_UNBLOCK, [signal.SIGUSR1])
        try:
            self.assertRaises(_Signalled, wait)
        finally:
            ended.set()
            sender.join()
        self.assertGreaterEqual(self.sink, 0, "the wait ended only when the pipe was closed")

    def test_other_signal(self) -> None:
        """A signal whose handler returns, such as a resize of the terminal, does not end the
        wait."""
        before = signal.signal(signal.SIGUSR1, lambda number, frame: None)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        lines = signals.lines(self.source)
        os.write(self.sink, b"one\n")
        next(lines)
        os.kill(os.getpid(), signal.SIGUSR1)
        os.write(self.sink, b"two\n")
        self.assertEqual(b"two\n", next(lines))


class PostponedTests(SynchronousTestCase):
    """``signals.postponed``."""

    def setUp(self) -> None:
        before = signal.signal(signal.SIGINT, _raise)
        self.addCleanup(signal.signal, signal.SIGINT, before)

    def send(self) -> None:
        """Send SIGINT to this process; its handler has run when this returns."""
        signal.raise_signal(signal.SIGINT)

    def test_takes_effect_at_the_end(self) -> None:
        """The handler of before runs at the end, once, and is in its place again."""
        steps = []

        def run() -> None:
            with signals.postponed():
                with signals.postponed():
                    self.send()
                    steps.append("inner")
                steps.append("outer")

        self.assertRaises(_Signalled, run)
        self.assertEqual(["inner", "outer"], steps)
        self.assertRaises(_Signalled, self.send)

    def test_second(self) -> None:
        """A second signal ends the process at once, as without this."""
        ended: list[int] = []
        self.patch(os, "_exit", ended.append)

        def run() -> None:
            with signals.postponed():
                self.send()
                self.send()

        self.assertRaises(_Signalled, run)
        self.assertEqual([130], ended)

    def test_without_a_handler(self) -> None:
        """A signal that is ignored stays ignored."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with signals.postponed():
            self.send()
        self.assertEqual(signal.SIG_IGN, signal.getsignal(signal.SIGINT))

    def test_other_thread(self) -> None:
        """Only the main thread can set handlers; in others this does nothing."""
        failed = []

        def run() -> None:
            try:
                with signals.postponed():
                    pass
            except ValueError as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        self.assertEqual([], failed)
