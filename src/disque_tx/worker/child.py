"""The process that runs functions which may end or hang it.

Reads requests from standard input, one JSON document per line, and answers each with a line to file
descriptor 3. ``python -m disque_tx.worker.child``; started by :mod:`disque_tx.worker.processes`.
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
from disque_tx.worker.context import Context, current
from disque_tx.worker.handlers import Call, Handler, Kind
from disque_tx.worker.slots import Failed
from disque_tx.worker.tasks import Task

_ANSWERS: Final = 3


def found(target: str) -> Any:
    """What ``module:name`` names."""
    module, _, name = target.partition(":")
    return reduce(getattr, name.split("."), importlib.import_module(module))


def call_for(target: str, context: Context) -> Call:
    """What to call for a job, with the arguments of the task if it is one."""
    function = found(target)
    if isinstance(function, Task):
        return function.queue.call(context)
    return Call(Handler(function, Kind.PROCESS), (context,))


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Do what a request asks for. SystemExit is a failure like others, here too."""
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
        failed = Failed.of(error)
        return {"error": failed.reason, "trace": failed.trace, "hopeless": failed.hopeless}
    return {"error": None, "value": None if value is None else b64encode(value).decode()}


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer until there are no more requests: the worker has ended."""
    for line in requests:
        told = answer(json.loads(line))
        answers.write(json.dumps(told).encode() + b"\n")
        answers.flush()


def main() -> None:
    """Serve the worker. Handlers find an empty standard input."""
    # The terminal's Ctrl-C goes to the worker, which decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path.insert(0, os.getcwd())
    with os.fdopen(os.dup(0), "rb") as requests, os.fdopen(_ANSWERS, "wb") as answers:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.set_inheritable(_ANSWERS, False)
        serve(requests, answers)


if __name__ == "__main__":
    main()
