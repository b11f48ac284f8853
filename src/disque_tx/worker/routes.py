"""Which queue is done by what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from disque_tx.worker.errors import BadHandlers
from disque_tx.worker.handlers import Command, Handler, Plain, Route, handler_of
from disque_tx.worker.tasks import Queue


def routes_of(handlers: Any) -> dict[str, Route]:
    """Which queue is done by what.

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
        f"{handlers!r} is no handlers: give a Queue, a list of them, or a dict from the name of a"
        " queue to a function, a coroutine function, a Command or a Queue."
    )


def _route(handler: Callable[..., Any] | Command | Handler | Queue) -> Route:
    return handler if isinstance(handler, Queue) else Plain(handler_of(handler))
