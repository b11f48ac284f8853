"""Verbs on a reactor: what their ends, errors and signals become."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.cli.verbs.base.reactor import SignalHandling, _run
from disque_tx.errors import DisqueError


class _Reactor(MemoryReactorClock):
    """A reactor in memory, which has one thread."""

    def callFromThread(self, call: Callable[..., object], *words: object) -> None:
        """Make a call in the thread of the reactor."""
        call(*words)


class RunTests(SynchronousTestCase):
    """``run``, on a reactor in memory."""

    def setUp(self) -> None:
        self.error = io.StringIO()
        self.patch(sys, "stderr", self.error)
        self.ended: list[int] = []
        self.patch(os, "_exit", self.ended.append)
        for number in (signal.SIGINT, signal.SIGTERM):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        self.work: Deferred[None] = Deferred()
        self.stopped: list[str] = []

    def begin(self, stoppable: bool = False, orderly: bool = False) -> Deferred[None]:
        """Begin a verb that runs until its work ends."""

        async def main(reactor: Any, on_signal: SignalHandling) -> None:
            on_signal.orderly = orderly
            if stoppable:
                on_signal.stop = lambda: self.stopped.append("stop")
            await self.work

        self.reactor = _Reactor()
        ended = _run(self.reactor, "tidy", main)
        self.reactor.run()
        return ended

    def status(self, ended: Deferred[None]) -> int:
        """The exit status that the verb ended with."""
        return int(self.failureResultOf(ended, SystemExit).value.code)

    def test_success(self) -> None:
        """A verb that ends by itself says nothing more."""
        ended = self.begin()
        self.work.callback(None)
        self.assertEqual((None, ""), (self.successResultOf(ended), self.error.getvalue()))

    def test_failure(self) -> None:
        """An error is a line that says which verb failed, and status 1; a defect is not hidden."""
        ended = self.begin()
        self.work.errback(DisqueError("no node"))
        self.assertEqual(1, self.status(ended))
        self.assertEqual("disque tidy: no node\n", self.error.getvalue())
        self.work = Deferred()
        ended = self.begin()
        self.work.errback(ValueError())
        self.failureResultOf(ended, ValueError)
        self.work = Deferred()
        ended = self.begin()
        self.work.errback(CancelledError())
        self.failureResultOf(ended, CancelledError)

    def test_cancelled(self) -> None:
        """A signal cancels work that cannot stop by itself; if that takes longer than ten seconds,
        the process ends."""
        ended = self.begin()
        signal.raise_signal(signal.SIGTERM)
        self.assertEqual(128 + signal.SIGTERM, self.status(ended))
        self.assertEqual("", self.error.getvalue())
        self.reactor.advance(9.9)
        self.assertEqual([], self.ended)
        self.reactor.advance(0.2)
        self.assertEqual([128 + signal.SIGTERM], self.ended)

    def test_stopped(self) -> None:
        """Work that can stop is asked to, cancelled after ten seconds, and the process ends after
        twenty."""
        seen: list[str] = []
        self.work = Deferred(lambda _: seen.append("cancelled"))
        ended = self.begin(stoppable=True)
        signal.raise_signal(signal.SIGINT)
        self.assertEqual((["stop"], []), (self.stopped, seen))
        self.reactor.advance(9.9)
        self.assertNoResult(ended)
        self.reactor.advance(0.2)
        self.assertEqual(["cancelled"], seen)
        self.assertEqual(128 + signal.SIGINT, self.status(ended))
        self.reactor.advance(9.8)
        self.assertEqual([], self.ended)
        self.reactor.advance(0.2)
        self.assertEqual([128 + signal.SIGINT], self.ended)

    def test_orderly(self) -> None:
        """A service that a signal has stopped was successful; an error while it stops is not worth
        a word any more."""
        for error in (None, DisqueError("late")):
            self.work = Deferred()
            ended = self.begin(stoppable=True, orderly=True)
            signal.raise_signal(signal.SIGTERM)
            self.work.callback(None) if error is None else self.work.errback(error)
            self.assertEqual(None, self.successResultOf(ended))
        self.assertEqual("", self.error.getvalue())

    def test_second_signal(self) -> None:
        """A second signal ends the process at once."""
        self.begin(stoppable=True)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        self.assertEqual([128 + signal.SIGTERM], self.ended)
        self.assertEqual(["stop"], self.stopped)
