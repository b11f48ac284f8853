"""The process that runs handlers that may crash or hang.

Reads requests from standard input, one JSON document per line, and answers each with a line to file
descriptor 3. ``python -m disque_tx.worker.running.child``; started by
:mod:`disque_tx.worker.running.processes`.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from base64 import b64decode, b64encode
from functools import reduce
from typing import Any, BinaryIO, Final

from disque_tx.client import Job
from disque_tx.worker.base.context import Context, current
from disque_tx.worker.running.runs import JobFailure
from disque_tx.worker.tasks.handlers import Handler, HandlerCall, HandlerKind
from disque_tx.worker.tasks.tasks import Task

_ANSWERS: Final = 3


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


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Run the handler of a request and return the response. SystemExit is a failure like others."""
    context = Context(
        Job(
            request["queue"],
            request["id"],
            b64decode(request["body"]),
            request["nacks"],
            request["additional_deliveries"],
        ),
        request["worker"],
    )
    current.set(context)
    try:
        value = call_for(request["target"], context).run()
    except BaseException as error:
        failed = JobFailure.of(error)
        return {"error": failed.reason, "trace": failed.trace, "hopeless": failed.hopeless}
    return {"error": None, "value": None if value is None else b64encode(value).decode()}


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until the input ends, because the worker has ended."""
    for line in requests:
        response = answer(json.loads(line))
        answers.write(json.dumps(response).encode() + b"\n")
        answers.flush()


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
