"""A worker as a program: who handles signals."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.worker import Queue
from disque_tx.worker.program import _on_signals, _run
from tests.worker.memory import InlinePool, MemoryClient


class _Reactor(Clock):
    """Notes what is to be called when it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Any] = []

    def callWhenRunning(self, function: Any, *arguments: Any) -> None:
        """Note this."""
        self.calls.append(function)


class SignalTests(SynchronousTestCase):
    """Programs that embed a worker may handle signals themselves."""

    def test_asked_for(self) -> None:
        """Signals are handled if the caller says so, and are left alone otherwise."""
        for signals, expected in ((True, [_on_signals]), (False, [])):
            reactor = _Reactor()
            client: Any = MemoryClient(reactor)
            queue = Queue("q")
            queue.connect(client)
            running = Deferred.fromCoroutine(
                _run(reactor, client, queue, {"pool": InlinePool}, signals)
            )
            handlers = [call for call in reactor.calls if call is _on_signals]
            running.cancel()
            self.failureResultOf(running, CancelledError)
            self.assertEqual(expected, handlers)
