"""Processes that do jobs: a new one per job for commands, reused ones for functions."""

from __future__ import annotations

import os
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from json import dumps, loads
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from disque_tx.worker.base.context import Context
from disque_tx.worker.base.errors import HandlerDied, WorkerError
from disque_tx.worker.tasks.handlers import Handler

#: Time between SIGTERM and SIGKILL.
KILL_S: Final = 5.0
#: How long to wait for the pipes of a process that has ended: its children may hold them open.
_LINGER_S: Final = 0.5
_TAIL_BYTES: Final = 2000
#: The largest answer of a function; a larger one is an error of the handler.
_ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
_ANSWERS: Final = 3


class _Process(ProcessProtocol):
    """A process that can be stopped, by SIGTERM and then SIGKILL, whose end is always reported."""

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._timer: IDelayedCall | None = None
        self.alive = True
        self.stopping = False

    def stop(self) -> None:
        """Send SIGTERM, and SIGKILL if the process has not ended 5 s later."""
        if self.alive and not self.stopping:
            self.stopping = True
            self._signal("TERM")
            self._timer = self._reactor.callLater(KILL_S, self._signal, "KILL")

    def _signal(self, name: str) -> None:
        try:
            self.transport.signalProcess(name)  # type: ignore[union-attr]
        except ProcessExitedAlready:
            pass

    def processExited(self, reason: Failure) -> None:
        self.alive = False
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = self._reactor.callLater(
            _LINGER_S,
            self.transport.loseConnection,  # type: ignore[union-attr]
        )

    def processEnded(self, reason: Failure) -> None:
        self.alive = False
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self.ended(_exit_description(reason))

    def ended(self, how: str) -> None:
        """The process has ended; ``how``: its status or signal, empty for status 0."""
        raise NotImplementedError


def _exit_description(reason: Failure) -> str:
    error: Any = reason.value
    if getattr(error, "signal", None):
        return f"killed by signal {error.signal}"
    status = getattr(error, "exitCode", None)
    return f"exit status {status}" if status else ""


class _CommandProcess(_Process):
    """A command: it gets the body on standard input, and its exit status is the answer."""

    def __init__(self, reactor: Any, body: bytes) -> None:
        super().__init__(reactor)
        self._body = body
        self._tail = b""
        self.answer: Deferred[bytes | None] = Deferred()

    def connectionMade(self) -> None:
        transport: Any = self.transport
        transport.write(self._body)
        transport.closeStdin()

    def errReceived(self, data: bytes) -> None:
        self._tail = (self._tail + data)[-_TAIL_BYTES:]

    def ended(self, how: str) -> None:
        if not how:
            self.answer.callback(None)
            return
        said = self._tail.decode(errors="replace").strip()
        self.answer.errback(HandlerDied(f"{how}: {said}" if said else how))


class _FunctionProcess(_Process):
    """A process that does one job after the other; see :mod:`disque_tx.worker.running.child`."""

    def __init__(self, reactor: Any, idle: Callable[[_FunctionProcess], object]) -> None:
        super().__init__(reactor)
        self._idle = idle
        self._buffer = bytearray()
        self._answer: Deferred[bytes | None] | None = None
        self._context: Context | None = None

    def ask(self, request: bytes, context: Context | None = None) -> Deferred[bytes | None]:
        """Send a request; there may be one at a time. Fires with the result. ``context``: of the
        job, which learns its progress."""
        self._answer = Deferred()
        self._context = context
        transport: Any = self.transport
        transport.write(request + b"\n")
        return self._answer

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > _ANSWER_BYTES_MAX:
            self._buffer.clear()
            self.stop()
        elif data.endswith(b"\n"):
            lines = bytes(self._buffer).splitlines()
            self._buffer.clear()
            for line in lines:
                self._told(loads(line))

    def _told(self, values: dict[str, Any]) -> None:
        """A line of the process: progress, or the answer, which is the last one."""
        if "progress" not in values:
            self._idle(self)
            self._answered(values)
        elif self._context is not None:
            self._context.progress(*values["progress"])

    def _answered(self, values: dict[str, Any]) -> None:
        answer, self._answer, self._context = self._answer, None, None
        if answer is None:
            return
        if values["error"] is not None:
            answer.errback(RemoteError(values["error"], values["trace"], values["hopeless"]))
        else:
            value = values["value"]
            answer.callback(None if value is None else b64decode(value))

    def ended(self, how: str) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.errback(HandlerDied(f"The process of the handler ended: {how or 'status 0'}."))


class RemoteError(WorkerError):
    """The exception of a handler in another process."""

    def __init__(self, reason: str, trace: str, hopeless: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.trace = trace
        self.hopeless = hopeless


class Processes:
    """The processes of a worker.

    ``environ``: their environment variables; without them, those of the worker, and what they need
    to import what it can.
    """

    def __init__(self, reactor: Any, environ: Mapping[str, str] | None) -> None:
        path = os.pathsep.join(filter(None, sys.path))
        self._reactor = reactor
        self._environ = {**os.environ, "PYTHONPATH": path} if environ is None else dict(environ)
        self._idle: list[_FunctionProcess] = []

    def command(
        self, handler: Handler, context: Context
    ) -> tuple[Deferred[bytes | None], Callable[[], object]]:
        """Run a command. Returns a Deferred of its result, and a function that stops it."""
        protocol = _CommandProcess(self._reactor, context.body)
        environ = self._environ | {
            "DISQUE_JOB_ID": context.id,
            "DISQUE_QUEUE": context.queue.encode("utf-8", "replace").decode(),
            "DISQUE_ATTEMPT": str(context.attempt),
        }
        argv = [os.fsencode(word) for word in handler.argv]
        self._reactor.spawnProcess(protocol, argv[0], argv, environ, None)
        return protocol.answer, protocol.stop

    def function(
        self, handler: Handler, context: Context
    ) -> tuple[Deferred[bytes | None], Callable[[], object]]:
        """Run a function in an idle process, or in a new one. Returns the same as
        :meth:`command`."""
        while self._idle:
            child = self._idle.pop()
            if child.alive and not child.stopping:
                break
        else:
            child = self._spawn()
        return child.ask(_request(handler, context), context), child.stop

    def _spawn(self) -> _FunctionProcess:
        child = _FunctionProcess(self._reactor, self._idle.append)
        argv = [sys.executable, "-m", "disque_tx.worker.running.child"]
        fds = {0: "w", 1: 1, 2: 2, _ANSWERS: "r"}
        self._reactor.spawnProcess(child, sys.executable, argv, self._environ, None, childFDs=fds)
        return child

    def close(self) -> None:
        """Stop the idle processes."""
        for child in self._idle:
            child.stop()
        self._idle.clear()


def _request(handler: Handler, context: Context) -> bytes:
    job = context.job
    return dumps(
        {
            "target": handler.target,
            "queue": job.queue,
            "id": job.id,
            "body": b64encode(job.body).decode(),
            "nacks": job.nacks,
            "additional_deliveries": job.additional_deliveries,
            "worker": context.worker,
        }
    ).encode()
