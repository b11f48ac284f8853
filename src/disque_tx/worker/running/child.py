"""The process that runs handlers that may crash or hang.

Reads requests from standard input, one JSON document per line, and answers each with a line to file
descriptor 3, before which there may be lines about the progress of the job. ``python -m
disque_tx.worker.running.child``; started by :mod:`disque_tx.worker.running.processes`.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import reduce
from threading import Lock, Timer
from typing import Any, BinaryIO, Final

from disque_tx.client import Job
from disque_tx.worker.base.context import Context, ProgressReport, current
from disque_tx.worker.running.runs import JobFailure
from disque_tx.worker.tasks.handlers import Handler, HandlerCall, HandlerKind
from disque_tx.worker.tasks.tasks import Task

_ANSWERS: Final = 3
#: Seconds between two reports of progress.
_BETWEEN_S: Final = 0.2


def resolve(target: str) -> Any:
    """The object that ``module:name`` names."""
    module, _, name = target.partition(":")
    return reduce(getattr, name.split("."), importlib.import_module(module))


def call_for(target: str, context: Context) -> HandlerCall:
    """The call for a job, with its arguments if it is a call of a task."""
    function = resolve(target)
    if isinstance(function, Task):
        return function.queue.call(context)
    return HandlerCall(Handler(function, HandlerKind.PROCESS), (context,))


class ProcessContext(Context):
    """A job in this process, whose progress is passed on to the worker: at once if it was not for a
    moment, and otherwise soon, so that a handler may report as often as it likes.

    ``send``: writes a line. Nothing is sent after :meth:`end`.
    """

    __slots__ = ("_lock", "_over", "_send", "_timer")

    def __init__(self, job: Job, worker: str, send: Callable[[dict[str, Any]], object]) -> None:
        super().__init__(job, worker)
        self._send = send
        self._lock = Lock()
        self._timer: Timer | None = None
        self._over = False

    def progress(self, fraction: float, note: str = "") -> None:
        super().progress(fraction, note)
        with self._lock:
            if self._timer is None and not self._over:
                self._pass_on()
                self._timer = Timer(_BETWEEN_S, self._after, [self.reported])
                self._timer.daemon = True
                self._timer.start()

    def _after(self, sent: ProgressReport) -> None:
        with self._lock:
            self._timer = None
            if self.reported is not sent and not self._over:
                self._pass_on()

    def _pass_on(self) -> None:
        if self.reported is not None:
            self._send({"progress": [self.reported.fraction, self.reported.note]})

    def end(self) -> None:
        """The handler has ended."""
        with self._lock:
            self._over = True
            if self._timer is not None:
                self._timer.cancel()


def answer(
    request: dict[str, Any], send: Callable[[dict[str, Any]], object] = lambda values: None
) -> dict[str, Any]:
    """Run the handler of a request and return the response. SystemExit is a failure like others.
    ``send``: passes on what there is to be said before that."""
    context = ProcessContext(
        Job(
            request["queue"],
            request["id"],
            b64decode(request["body"]),
            request["nacks"],
            request["additional_deliveries"],
        ),
        request["worker"],
        send,
    )
    token = current.set(context)
    try:
        value = call_for(request["target"], context).run()
    except BaseException as error:
        failed = JobFailure.of(error)
        return {"error": failed.reason, "trace": failed.trace, "hopeless": failed.hopeless}
    finally:
        context.end()
        current.reset(token)
    return {"error": None, "value": None if value is None else b64encode(value).decode()}


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until the input ends, because the worker has ended."""

    def send(values: dict[str, Any]) -> None:
        answers.write(json.dumps(values).encode() + b"\n")
        answers.flush()

    for line in requests:
        send(answer(json.loads(line), send))


def main() -> None:
    """Serve the worker. Handlers get an empty standard input."""
    # Ctrl-C reaches the worker as well, which decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path.insert(0, os.getcwd())
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(_ANSWERS, "wb") as answers:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.set_inheritable(_ANSWERS, False)
        serve(requests, answers)


if __name__ == "__main__":
    main()
