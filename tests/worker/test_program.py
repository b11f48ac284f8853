"""A worker as a program: who handles signals, and how it ends."""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import Any

from twisted.internet import task
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.logger import formatEvent
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.worker import Queue, Worker, program
from disque_tx.worker.program import _on_signals, _run
from tests.logged import observe
from tests.worker.memory import HangingPool, InlinePool, MemoryClient


class _Reactor(Clock):
    """Notes what is to be called when it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.running: list[Any] = []
        self.workers: list[Worker] = []
        self.signals: list[bool] = []
        self.stopped = 0

    def run(self, installSignalHandlers: bool = True) -> None:
        """Note whether it would handle signals."""
        self.signals.append(installSignalHandlers)

    def stop(self) -> None:
        """Note this."""
        self.stopped += 1

    def callFromThread(self, function: Any) -> None:
        """Call it."""
        self.callLater(0, function)

    def callWhenRunning(self, function: Any, *arguments: Any) -> None:
        """Note this."""
        self.running.append(function)
        self.workers += [one for one in arguments if isinstance(one, Worker)]


class _Client(MemoryClient):
    """Notes how often it was closed, and when."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.closed_s: list[float] = []

    async def close(self) -> None:
        """Note this."""
        self.closed_s.append(self.clock.seconds())


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
            handlers = [call for call in reactor.running if call is _on_signals]
            running.cancel()
            self.failureResultOf(running, CancelledError)
            self.assertEqual(expected, handlers)


class RunTests(SynchronousTestCase):
    """What runs a worker: a program of its own, or a thread of another one."""

    def setUp(self) -> None:
        self.reactor = _Reactor()
        self.made: list[_Client] = []

    def client(self, reactor: Any) -> Any:
        """A client on this reactor."""
        self.assertIs(self.reactor, reactor)
        self.made.append(_Client(reactor))
        return self.made[-1]

    def test_program(self) -> None:
        """A program has the worker that its words say, and handles signals."""
        running: list[Any] = []
        self.patch(task, "react", lambda main, words: running.extend((main, words)))
        program.run(self.client, {"a": lambda job: None}, {"pool": InlinePool, "name": "w1"})
        main, words = running
        ended = main(self.reactor, *words)
        self.assertNoResult(ended)
        self.assertIn(_on_signals, self.reactor.running)
        self.assertEqual(["w1"], [worker.worker_name for worker in self.reactor.workers])
        ended.cancel()
        self.failureResultOf(ended, CancelledError)

    def test_thread(self) -> None:
        """In a thread a worker leaves signals alone, which belong to the program. When it fails the
        reason is in the log, and the reactor ends, so that the thread does."""
        said: list[str] = []
        observe(self, lambda event: said.append(formatEvent(event)))
        self.patch(program, "namedAny", lambda name: self.reactor)
        words = {"pool": HangingPool, "concurrency": 1, "time_limit_s": 1, "name": "w1"}
        program.run_in_thread(self.client, {"a": lambda job: None}, words)
        self.assertEqual([False], self.reactor.signals)
        (begin,) = self.reactor.running
        begin()
        self.assertNotIn(_on_signals, self.reactor.running)
        self.assertEqual(0, self.reactor.stopped)
        self.made[0].put("a")
        self.reactor.pump([0.1] * 30)
        self.assertEqual(1, self.reactor.stopped)
        self.assertIn("The worker ended.", [line.splitlines()[0] for line in said])
        self.flushLoggedErrors(SystemExit)

    def test_signals(self) -> None:
        """The first signal drains the worker, whichever it is, and the second one ends the process
        at once, with a status that is no success."""
        ended: list[int] = []
        self.patch(os, "_exit", ended.append)
        for number in (signal.SIGTERM, signal.SIGINT):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        for first, second in (
            (signal.SIGTERM, signal.SIGINT),
            (signal.SIGINT, signal.SIGINT),
            (signal.SIGINT, signal.SIGTERM),
        ):
            client = self.client(self.reactor)
            worker = Worker(client, {"a": lambda job: None}, self.reactor, pool=InlinePool)
            worker.startService()
            stopped = worker.when_stopped()
            _on_signals(self.reactor, worker)
            signal.raise_signal(first)
            self.reactor.pump([0.1] * 20)
            self.assertIsNone(self.successResultOf(stopped))
            self.assertEqual([], ended)
            signal.raise_signal(second)
            self.assertEqual([130], ended)
            ended.clear()


class EndTests(SynchronousTestCase):
    """What a supervisor learns from the exit status, and what nodes see of the end."""

    def setUp(self) -> None:
        self.reactor = _Reactor()
        self.client = _Client(self.reactor)

    def running(self, handlers: Any, **words: Any) -> Deferred[None]:
        """A program with this worker."""
        client: Any = self.client
        return Deferred.fromCoroutine(_run(self.reactor, client, handlers, words, True))

    def pass_s(self, seconds: float) -> None:
        """Advance the clock."""
        self.reactor.pump([0.1] * round(seconds * 10))

    def test_drained(self) -> None:
        """The connections are closed when the jobs of the worker are done, not while one runs, and
        the program has succeeded."""
        pools: list[InlinePool] = []

        def pool(report: Any) -> InlinePool:
            pools.append(HangingPool(report))
            return pools[-1]

        job_id = self.client.put("a")
        running = self.running({"a": lambda job: None}, pool=pool)
        self.pass_s(1)
        (worker,) = self.reactor.workers
        worker.stopService()
        self.pass_s(2)
        self.assertNoResult(running)
        self.assertEqual([], self.client.closed_s)
        pools[0].release()
        self.pass_s(1)
        self.assertIsNone(self.successResultOf(running))
        self.assertEqual(("acked", 1), (self.client.state(job_id), len(self.client.closed_s)))
        self.assertEqual([], self.reactor.getDelayedCalls())

    def test_lost(self) -> None:
        """A worker that has no slot left ends with a status of its own, so that it is started
        again."""
        self.client.put("a")
        words = {"pool": HangingPool, "concurrency": 1, "time_limit_s": 1}
        running = self.running({"a": lambda job: None}, **words)
        self.pass_s(2)
        self.assertEqual(70, self.failureResultOf(running, SystemExit).value.code)

    def test_refused(self) -> None:
        """Handlers that make no sense end the program with the status of a wrong command line, and
        one line that says why; no node was asked for anything."""
        said = io.StringIO()
        self.patch(sys, "stderr", said)
        running = self.running({"a": lambda job: None}, concurrency=0)
        self.assertEqual(2, self.failureResultOf(running, SystemExit).value.code)
        self.assertEqual("Error: A worker needs at least one slot.\n", said.getvalue())
        self.assertEqual([], self.client.calls)
