"""Which handler does the jobs of which queue, in programs and on the command line."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

from disque_tx.client.requests.encoding import encoded
from disque_tx.text.globs import glob_match, is_glob
from disque_tx.worker.base.errors import BadHandlers, ImportFailed
from disque_tx.worker.tasks.handlers import Command, Handler, HandlerRoute, QueueRoute, handler_of
from disque_tx.worker.tasks.recurring import TaskSchedule
from disque_tx.worker.tasks.tasks import Queue

#: Queues whose route is remembered.
_FOUND_MAX: Final = 10_000


def routes_of(handlers: Any) -> dict[str, QueueRoute]:
    """The route of each queue: what chooses the handlers of its jobs.

    ``handlers``: a ``Queue``, several of them, or queue → function, coroutine function,
    ``Command``, ``Handler`` or ``Queue``. A name with ``*``, ``?`` or ``[`` is a pattern.

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


def _route(handler: Callable[..., Any] | Command | Handler | Queue) -> QueueRoute:
    return handler if isinstance(handler, Queue) else HandlerRoute(handler_of(handler))


class RouteTable:
    """The routes of a worker: by the name of a queue, or by a pattern for all that match.

    A name goes before patterns, and of several patterns the longest one counts.
    """

    def __init__(self, routes: Mapping[str, QueueRoute]) -> None:
        self._routes = dict(routes)
        patterns = sorted(filter(is_pattern, self._routes), key=lambda name: (-len(name), name))
        self._patterns = [(encoded(pattern), self._routes[pattern]) for pattern in patterns]
        self._found: dict[str, QueueRoute | None] = {}

    @property
    def queues(self) -> list[str]:
        """Names and patterns, in the order in which they were given."""
        return list(self._routes)

    def recurring(self) -> dict[str, dict[str, TaskSchedule]]:
        """The tasks that recur, by queue, of all queues that have tasks.

        :raises BadHandlers: such a task has a pattern in place of a queue.
        """
        found = {
            name: route.recurring
            for name, route in self._routes.items()
            if isinstance(route, Queue)
        }
        for name, tasks in found.items():
            if tasks and is_pattern(name):
                raise BadHandlers(f"Tasks that recur need a queue, and {name} is a pattern.")
        return found

    def tasks(self) -> list[str]:
        """The names of all tasks and handlers, each once."""
        names: dict[str, None] = {}
        for route in self._routes.values():
            if isinstance(route, Queue):
                names |= dict.fromkeys(route.tasks)
            elif isinstance(route, HandlerRoute):
                names[route.handler.name] = None
        return list(names)

    def size_max(self) -> int:
        """The most jobs that a handler takes at once."""
        return max(route.size_max() for route in self._routes.values())

    def get(self, queue: str) -> QueueRoute | None:
        """What does the jobs of a queue, ``None`` if nothing does."""
        route = self._routes.get(queue)
        if route is not None or not self._patterns:
            return route
        if queue not in self._found:
            if len(self._found) >= _FOUND_MAX:
                self._found.clear()
            self._found[queue] = self._matching(encoded(queue))
        return self._found[queue]

    def route(self, queue: str) -> QueueRoute:
        """What does the jobs of a queue.

        :raises BadHandlers: nothing does.
        """
        route = self.get(queue)
        if route is None:
            raise BadHandlers(f"Nothing handles {queue}.")
        return route

    def _matching(self, queue: bytes) -> QueueRoute | None:
        for pattern, route in self._patterns:
            if glob_match(pattern, queue):
                return route
        return None

    def only(self, queues: Sequence[str] | None) -> RouteTable:
        """The routes of these queues, in this order; of a pattern that has no handler itself, those
        of all names that match it.

        :raises BadHandlers: there is nothing for one of them, or nothing at all.
        """
        chosen: dict[str, QueueRoute] = {}
        unknown: list[str] = []
        for queue in self.queues if queues is None else queues:
            route = self.get(queue)
            found = {queue: route} if route is not None else self._that_match(queue)
            if not found:
                unknown.append(queue)
            chosen |= found
        if unknown or not chosen:
            what = f"Nothing handles {', '.join(unknown)}." if unknown else "There is no work."
            raise BadHandlers(f"{what} Name queues that have handlers.")
        return RouteTable(chosen)

    def _that_match(self, pattern: str) -> dict[str, QueueRoute]:
        if not is_pattern(pattern):
            return {}
        wanted = encoded(pattern)
        items = self._routes.items()
        return {name: route for name, route in items if glob_match(wanted, encoded(name))}


def is_pattern(queue: str) -> bool:
    """Whether this stands for all queues that match it."""
    return is_glob(encoded(queue))


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
