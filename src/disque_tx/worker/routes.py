"""Which handler does the jobs of which queue, in programs and on the command line."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

from disque_tx.worker.errors import BadHandlers, ImportFailed
from disque_tx.worker.handlers import Command, Handler, HandlerRoute, Route, handler_of
from disque_tx.worker.recurring import TaskSchedule
from disque_tx.worker.tasks import Queue


def routes_of(handlers: Any) -> dict[str, Route]:
    """The route of each queue: what chooses the handlers of its jobs.

    ``handlers``: a ``Queue``, several of them, or queue → function, coroutine function,
    ``Command``, ``Handler`` or ``Queue``.

    :raises BadHandlers: it is something else.
    """
    if isinstance(handlers, Queue):
        return {handlers.name: handlers}
    if isinstance(handlers, Mapping):
        return {queue: _route(handler) for queue, handler in handlers.items()}
    if isinstance(handlers, Iterable) and not isinstance(handlers, str | bytes):
        queues = list(handlers)
        if queues and all(isinstance(queue, Queue) for queue in queues):
            return {queue.name: queue for queue in queues}
    raise BadHandlers(
        f"{handlers!r} cannot be used as handlers. Pass a Queue, a list of Queues, or a dict from"
        " the name of a queue to a function, a coroutine function, a Command or a Queue."
    )


def recurring_of(routes: Mapping[str, Route]) -> dict[str, dict[str, TaskSchedule]]:
    """The tasks that recur, by queue, of all queues that have tasks."""
    return {name: route.recurring for name, route in routes.items() if isinstance(route, Queue)}


def _route(handler: Callable[..., Any] | Command | Handler | Queue) -> Route:
    return handler if isinstance(handler, Queue) else HandlerRoute(handler_of(handler))


def load_handlers(target: str, queues: Sequence[str]) -> Any:
    """The handlers that ``package.module:name`` names. If it is a function, it does the jobs of the
    one queue in ``queues``.

    :raises BadHandlers: it does not exist, or has no handlers.
    :raises ImportFailed: its module cannot be imported.
    """
    module_name, colon, name = target.partition(":")
    if not (colon and module_name and name):
        raise BadHandlers(f"{target!r} is not package.module:name.")
    handlers = _attribute(_module(module_name), name, target)
    if len(queues) == 1 and callable(handlers):
        handlers = {queues[0]: handlers}
    elif callable(handlers):
        raise BadHandlers(f"{target} is one function: name its queue with one --queue.")
    routes_of(handlers)
    return handlers


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise BadHandlers(
                f"There is no module {error.name!r} here. Check the spelling, start in the folder"
                " that contains it, or set PYTHONPATH."
            ) from error
        raise ImportFailed(f"Module {name!r} cannot be imported: {error}.") from error
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise ImportFailed(f"Module {name!r} cannot be imported: {what}.") from error


def _attribute(module: Any, name: str, target: str) -> Any:
    try:
        return reduce(getattr, name.split("."), module)
    except AttributeError as error:
        raise BadHandlers(f"{target}: {error}.") from error
