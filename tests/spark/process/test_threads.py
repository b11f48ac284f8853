"""Work in threads: the results, errors, and what Ctrl-C does meanwhile."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.spark.process.threads import in_threads

_LIMIT_S = 60


class ThreadTests(SynchronousTestCase):
    """Pieces of work."""

    def test_results(self) -> None:
        """Results are in the order of the work, however it was shared out; without any work there
        are none, and no thread is started."""
        self.assertEqual([], in_threads(abs, [], 2))
        self.assertEqual([3, 1, 2], in_threads(abs, [-3, 1, -2], 2))

    def test_error(self) -> None:
        """An error ends the work: its cause is what a user gets to see, and pieces that were not
        begun cost nothing."""
        begun: list[int] = []

        def divided(number: int) -> float:
            begun.append(number)
            return 1 / number

        self.assertRaises(ZeroDivisionError, in_threads, divided, [1, 0, *range(2, 50)], 1)
        self.assertEqual([1, 0], begun)

    def test_other_thread(self) -> None:
        """In a thread, where Python allows no handlers, it works the same."""
        found: list[list[int]] = []
        thread = threading.Thread(target=lambda: found.append(in_threads(abs, [-1, -2], 2)))
        thread.start()
        thread.join(_LIMIT_S)
        self.assertEqual([[1, 2]], found)


class SignalTests(SynchronousTestCase):
    """Signals that arrive while threads work. ``handled``: what was done by then, each time."""

    def setUp(self) -> None:
        self.done: list[int] = []
        self.handled: list[list[int]] = []

    def handle(self, handler: Callable[[int, FrameType | None], object]) -> None:
        """Let SIGINT be handled by this."""
        before = signal.signal(signal.SIGINT, handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)

    def note(self, number: int, frame: FrameType | None) -> None:
        """A handler that raises nothing."""
        self.handled.append(list(self.done))

    def interrupting(self, number: int) -> int:
        """A piece of work; during the second one the signal arrives in the main thread."""
        if number == 2:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        self.done.append(number)
        return number

    def test_interrupted(self) -> None:
        """Ctrl-C ends the work when the pieces under way are done, so that no thread is left that
        writes what nobody wants, and no lock on which the program would wait."""
        self.handle(signal.default_int_handler)
        many = range(1, 10_000)
        self.assertRaises(KeyboardInterrupt, in_threads, self.interrupting, many, 1)
        self.assertEqual([1, 2], self.done[:2])
        self.assertLess(len(self.done), len(many))
        self.assertIs(signal.default_int_handler, signal.getsignal(signal.SIGINT))

    def test_handler_that_goes_on(self) -> None:
        """A program that only takes note of a signal, to end in good order, gets all results."""
        self.handle(self.note)
        self.assertEqual(list(range(1, 300)), in_threads(self.interrupting, range(1, 300), 1))
        self.assertEqual((1, 299), (len(self.handled), len(self.done)))
