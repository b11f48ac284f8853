"""The processes of a worker: how they are started, used again and stopped."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from twisted.internet.error import ProcessDone, ProcessExitedAlready, ProcessTerminated
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import Job
from disque_tx.worker import Context
from disque_tx.worker.base.errors import HandlerDied
from disque_tx.worker.running import processes
from disque_tx.worker.running.processes import Processes, RemoteError, _FunctionProcess
from disque_tx.worker.tasks.handlers import Command, handler_of, process
from tests.worker.handlers import crash

_ANSWER = json.dumps({"error": None, "value": "aGk="}).encode() + b"\n"


class FunctionProcessTests(SynchronousTestCase):
    """A process that does one job after the other."""

    def setUp(self) -> None:
        self.idle: list[_FunctionProcess] = []
        self.process = _FunctionProcess(None, self.idle.append)
        self.transport: Any = StringTransport()
        self.process.makeConnection(self.transport)

    def test_used_again(self) -> None:
        """After its answer the process is there for the next job: it is not started again for
        each."""
        for number in (1, 2):
            done = self.process.ask(b"request")
            self.process.childDataReceived(1, _ANSWER[:5])
            self.assertNoResult(done)
            self.process.childDataReceived(1, _ANSWER[5:])
            self.assertEqual(b"hi", self.successResultOf(done))
            self.assertEqual(number * [self.process], self.idle)
        self.assertEqual(2 * b"request\n", self.transport.value())


class Child(StringTransport):
    """A process that was started. ``protocol``: what hears of it. ``fds``: where its descriptors
    lead. ``signals``: those that it got."""

    def __init__(self, protocol: Any, argv: list[Any], environ: dict[str, str], fds: Any) -> None:
        super().__init__()
        self.protocol, self.argv, self.environ, self.fds = protocol, argv, environ, fds
        self.signals: list[str] = []
        self.is_there = True

    def signalProcess(self, name: str) -> None:
        """Part of Twisted's interface."""
        if not self.is_there:
            raise ProcessExitedAlready
        self.signals.append(name)

    def closeStdin(self) -> None:
        """Part of Twisted's interface."""
        self.write(b"<end>")


class Starter(Clock):
    """A reactor that only notes which processes it was to start."""

    def __init__(self) -> None:
        super().__init__()
        self.children: list[Child] = []

    def spawnProcess(
        self,
        protocol: Any,
        executable: Any,
        argv: list[Any],
        environ: dict[str, str],
        path: Any,
        childFDs: Any = None,
    ) -> Child:
        """Part of Twisted's interface."""
        child = Child(protocol, argv, environ, childFDs)
        self.children.append(child)
        protocol.makeConnection(child)
        return child


class StartedTests(SynchronousTestCase):
    """``Processes``, on a reactor that starts none."""

    def setUp(self) -> None:
        self.reactor = Starter()
        self.processes = Processes(self.reactor, {"SHOP": "1"})
        self.context = Context(Job("mail", "D-1", b"body", additional_deliveries=2), "w")

    def function(self) -> tuple[Any, Any]:
        """Run a function in a process."""
        return self.processes.function(process(crash), self.context)

    def test_streams(self) -> None:
        """What a function prints, and the traceback of an interpreter that dies, appear where the
        worker prints; requests and answers have pipes of their own."""
        self.function()
        (child,) = self.reactor.children
        self.assertEqual((1, 2), (child.fds[1], child.fds[2]))
        pipes = {fd: way for fd, way in child.fds.items() if isinstance(way, str)}
        self.assertEqual(["r", "w"], sorted(pipes.values()))
        self.assertEqual("w", pipes[0])
        request = json.loads(child.value())
        self.assertEqual(
            ("tests.worker.handlers:crash", "mail", "D-1"),
            (request["target"], request["queue"], request["id"]),
        )

    def test_used_again(self) -> None:
        """An idle process gets the next job; one that works, was stopped or has died does not."""
        done, _ = self.function()
        self.function()
        first, second = self.reactor.children
        first.protocol.childDataReceived(3, _ANSWER)
        self.assertEqual(b"hi", self.successResultOf(done))
        _, stop = self.function()
        self.assertEqual(2, first.value().count(b"\n"))
        stop()
        first.protocol.childDataReceived(3, _ANSWER)
        self.function()
        self.assertEqual(3, len(self.reactor.children))
        self.assertEqual(([], ["TERM"]), (second.signals, first.signals))

    def test_stopped(self) -> None:
        """A process that is stopped may end by itself, for five seconds."""
        _, stop = self.function()
        (child,) = self.reactor.children
        stop()
        stop()
        self.reactor.advance(4.9)
        self.assertEqual(["TERM"], child.signals)
        self.reactor.advance(0.2)
        self.assertEqual(["TERM", "KILL"], child.signals)

    def test_stopped_in_time(self) -> None:
        """One that ends by itself gets no other signal, though a child of it holds its pipes open:
        its number may be that of another process by then."""
        done, stop = self.function()
        (child,) = self.reactor.children
        stop()
        child.protocol.processExited(Failure(ProcessDone(0)))
        self.reactor.advance(1)
        self.assertEqual([], self.reactor.getDelayedCalls())
        child.protocol.processEnded(Failure(ProcessDone(0)))
        self.reactor.advance(10)
        self.failureResultOf(done, HandlerDied)
        self.assertEqual(["TERM"], child.signals)

    def test_stopped_too_late(self) -> None:
        """One that has ended meanwhile needs no signal."""
        _, stop = self.function()
        self.reactor.children[0].is_there = False
        stop()
        self.reactor.advance(10)
        self.assertEqual([], self.reactor.children[0].signals)

    def test_closed(self) -> None:
        """A worker that ends leaves no idle process behind."""
        self.function()
        (child,) = self.reactor.children
        child.protocol.childDataReceived(3, _ANSWER)
        self.processes.close()
        self.assertEqual(["TERM"], child.signals)

    def test_command(self) -> None:
        """A program gets the body, and knows which job it is, beside what the worker was given."""
        self.processes.command(handler_of(Command(["convert", "-"])), self.context)
        (child,) = self.reactor.children
        self.assertEqual(([b"convert", b"-"], b"body<end>"), (child.argv, child.value()))
        about = {"DISQUE_JOB_ID": "D-1", "DISQUE_QUEUE": "mail", "DISQUE_ATTEMPT": "3"}
        self.assertEqual({"SHOP": "1", **about}, child.environ)

    def test_environment(self) -> None:
        """Without other words, processes have the environment of the worker, and import what it
        can."""
        self.patch(os, "environ", {"HOME": "/h"})
        Processes(self.reactor, None).function(process(crash), self.context)
        (child,) = self.reactor.children
        self.assertEqual("/h", child.environ["HOME"])
        self.assertLessEqual(
            set(filter(None, sys.path)), set(child.environ["PYTHONPATH"].split(os.pathsep))
        )


class EndTests(SynchronousTestCase):
    """How processes end, and what becomes of their answers."""

    def setUp(self) -> None:
        self.reactor = Starter()
        self.processes = Processes(self.reactor, {})
        self.context = Context(Job("mail", "D-1", b"body"), "w")

    def command(self) -> tuple[Any, Child, Any]:
        """A command: its answer, the process, and what stops it."""
        answer, stop = self.processes.command(handler_of(Command(["x"])), self.context)
        return answer, self.reactor.children[-1], stop

    def end(self, child: Child, status: int | None = None, by: int | None = None) -> None:
        """A process ends, with this status or by a signal, and its descriptors are closed."""
        child.is_there = False
        why = Failure(ProcessTerminated(status, by) if status or by else ProcessDone(0))
        child.protocol.processExited(why)
        child.protocol.processEnded(why)

    def test_command(self) -> None:
        """Status 0 is success; else the reason is the status or the signal, with the last that the
        program wrote to its error output."""
        answer, child, _ = self.command()
        child.protocol.errReceived(b"a warning")
        self.end(child)
        self.assertIsNone(self.successResultOf(answer))
        for status, by, said, reason in (
            (3, None, b"no file\n", "exit status 3: no file"),
            (3, None, b"", "exit status 3"),
            (None, 9, b"", "killed by signal 9"),
            (1, None, b"y" * 3_000 + b"\xff", f"exit status 1: {'y' * 1_999}\ufffd"),
        ):
            answer, child, _ = self.command()
            for byte in (said[:1], said[1:]):
                child.protocol.errReceived(byte)
            self.end(child, status, by)
            self.assertEqual(reason, str(self.failureResultOf(answer, HandlerDied).value))

    def test_no_signal_after_the_end(self) -> None:
        """A process that ended in time gets no SIGKILL, and no timer is left."""
        answer, child, stop = self.command()
        stop()
        self.end(child, by=15)
        self.failureResultOf(answer, HandlerDied)
        self.reactor.advance(60)
        self.assertEqual((["TERM"], []), (child.signals, self.reactor.getDelayedCalls()))
        stop()
        self.assertEqual(["TERM"], child.signals)

    def test_lingering_descriptors(self) -> None:
        """A process of which a child of its own keeps the descriptors open is over half a second
        later."""
        _answer, child, _ = self.command()
        child.is_there = False
        child.protocol.processExited(Failure(ProcessDone(0)))
        self.reactor.advance(0.4)
        self.assertFalse(child.disconnecting)
        self.reactor.advance(0.2)
        self.assertTrue(child.disconnecting)

    def function(self) -> tuple[Any, Child]:
        """A function: its answer, and the process."""
        answer, _ = self.processes.function(process(crash), self.context)
        return answer, self.reactor.children[-1]

    def test_function(self) -> None:
        """A process that dies while it works fails its job, with how it ended; one that dies while
        it is idle fails none, and is not used again."""
        for status, by, reason in ((None, 11, "killed by signal 11"), (0, None, "status 0")):
            answer, child = self.function()
            self.end(child, status, by)
            error = self.failureResultOf(answer, HandlerDied).value
            self.assertEqual(f"The process of the handler ended: {reason}.", str(error))
        answer, child = self.function()
        child.protocol.childDataReceived(3, _ANSWER)
        self.assertEqual(b"hi", self.successResultOf(answer))
        self.end(child)
        count = len(self.reactor.children)
        self.function()
        self.assertEqual(count + 1, len(self.reactor.children))

    def test_errors(self) -> None:
        """An error of the handler arrives with its traceback, and whether another attempt would
        help; an answer may be nothing."""
        answer, child = self.function()
        values = {"error": "ValueError: no", "trace": "Traceback", "hopeless": True}
        child.protocol.childDataReceived(3, json.dumps(values).encode() + b"\n")
        error = self.failureResultOf(answer, RemoteError).value
        found = (str(error), error.reason, error.trace, error.hopeless)
        self.assertEqual(("ValueError: no", "ValueError: no", "Traceback", True), found)
        answer, child = self.function()
        child.protocol.childDataReceived(3, b'{"error": null, "value": null}\n')
        self.assertIsNone(self.successResultOf(answer))

    def test_next_from_the_answer(self) -> None:
        """Whoever hears of an answer finds the process idle: the next job needs no other one."""
        answer, child = self.function()
        answer.addCallback(lambda _: self.function())
        child.protocol.childDataReceived(3, _ANSWER)
        self.assertEqual(1, len(self.reactor.children))
        self.assertEqual(2, child.value().count(b"\n"))

    def test_endless(self) -> None:
        """A process that answers without end is stopped, and nothing of it is kept."""
        self.patch(processes, "_ANSWER_BYTES_MAX", 10)
        _answer, child = self.function()
        child.protocol.childDataReceived(3, b"x" * 10)
        self.assertEqual([], child.signals)
        child.protocol.childDataReceived(3, b"x")
        self.assertEqual((["TERM"], bytearray()), (child.signals, child.protocol._buffer))
