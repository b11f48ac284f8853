"""The processes of a worker: how they are started, used again and stopped."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from twisted.internet.error import ProcessExitedAlready
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.client import Job
from disque_tx.worker import Context
from disque_tx.worker.running.processes import Processes, _FunctionProcess
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
        self.assertEqual(([b"convert", b"-"], b"body"), (child.argv, child.value()))
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
