"""Handlers of jobs: functions in threads, coroutine functions, commands, processes, batches."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import attrs

from disque_tx.worker.base.context import Context
from disque_tx.worker.base.errors import BadHandlers

_F = TypeVar("_F", bound=Callable[..., Any])
_BATCH = "_disque_batch"
_WAIT_S = 0.5


class HandlerKind(enum.Enum):
    """Where a handler runs."""

    THREAD = "thread"
    COROUTINE = "coroutine"
    COMMAND = "command"
    PROCESS = "process"


@attrs.frozen
class Command:
    """A program that does a job: it gets the body on standard input, and exit status 0 is success.

    The environment of the program has DISQUE_JOB_ID, DISQUE_QUEUE and DISQUE_ATTEMPT. The standard
    output is dropped; the end of its standard error is the reason of a failure.
    """

    argv: Sequence[str] = attrs.field()
    time_limit_s: float | None = None

    @argv.validator
    def _check(self, _: object, value: Sequence[str]) -> None:
        if isinstance(value, str) or not value or not all(isinstance(word, str) for word in value):
            raise BadHandlers("A Command needs the words of its command line, such as ['true'].")


@attrs.frozen(eq=False)
class Handler:
    """A function or program that does jobs. ``is_batch``: whether it takes a list of jobs.
    ``size``, ``wait_s``: of a batch; see :func:`batch`.

    ``target``: ``module:name`` by which another process imports the function.
    """

    function: Callable[..., Any]
    kind: HandlerKind
    time_limit_s: float | None = None
    size: int = 1
    wait_s: float = 0.0
    target: str = ""
    argv: tuple[str, ...] = ()
    is_batch: bool = False

    @property
    def name(self) -> str:
        """The handler's name in log lines."""
        if self.argv:
            return self.argv[0]
        return self.target or str(getattr(self.function, "__qualname__", self.function))


@attrs.define
class HandlerCall:
    """A handler and its arguments. ``reply``: the queue for the result, if one was asked for.
    ``dumps``: encodes the result. ``carrier``: the context of the trace that it came from."""

    handler: Handler
    args: Sequence[Any]
    kwargs: dict[str, Any] = attrs.field(factory=dict)
    reply: str | None = None
    dumps: Callable[[object], bytes] | None = None
    carrier: dict[str, str] = attrs.field(factory=dict)

    def run(self) -> bytes | None:
        """Call the handler here. Returns the encoded result, if one was asked for."""
        return self.answer(self.handler.function(*self.args, **self.kwargs))

    async def await_(self) -> bytes | None:
        """Like :meth:`run`, for a coroutine function."""
        return self.answer(await self.handler.function(*self.args, **self.kwargs))

    def answer(self, value: object) -> bytes | None:
        """The encoded result, if one was asked for."""
        return None if self.dumps is None else self.dumps(value)


class QueueRoute(Protocol):
    """Chooses the handler for each job of a queue, and its arguments.

    ``retries_max``: ``None`` for the worker's own limit.
    """

    @property
    def retries_max(self) -> int | None:
        """How many nacks and additional deliveries a job may have."""

    def call(self, context: Context) -> HandlerCall:
        """The call for a job.

        :raises Hopeless: the body cannot be understood.
        :raises UnknownTask: the body names a task that this worker does not have.
        """

    def size_max(self) -> int:
        """How many jobs one call takes at most."""


class HandlerRoute:
    """A queue whose jobs are all done by one handler, which gets the :class:`Context`."""

    retries_max = None

    def __init__(self, handler: Handler) -> None:
        self.handler = handler

    def call(self, context: Context) -> HandlerCall:
        return HandlerCall(self.handler, (context,))

    def size_max(self) -> int:
        return self.handler.size


def batch(size: int, wait_s: float = _WAIT_S) -> Callable[[_F], _F]:
    """Decorator: the handler takes a list of up to ``size`` :class:`Context`, and waits at most
    ``wait_s`` for more after the first. The jobs are done together or fail together."""
    if not 1 <= size <= 10_000 or not 0 <= wait_s <= 3600:
        raise BadHandlers("A batch has 1 to 10,000 jobs and waits 0 to 3600 s.")

    def mark(function: _F) -> _F:
        setattr(function, _BATCH, (size, wait_s))
        return function

    return mark


def process(function: Callable[[Context], object], time_limit_s: float | None = None) -> Handler:
    """A handler that runs in another process, which it may end or hang.

    :raises BadHandlers: the function cannot be imported there.
    """
    return Handler(function, HandlerKind.PROCESS, time_limit_s, target=target_of(function))


def target_of(function: Callable[..., Any]) -> str:
    """``module:name``, by which another process can import a function.

    :raises BadHandlers: it cannot be imported there.
    """
    module, name = function.__module__, function.__qualname__
    if module == "__main__" or "<" in name:
        raise BadHandlers(
            f"{module}:{name} cannot run in a process of its own: move it to the top level of a"
            " module that can be imported."
        )
    return f"{module}:{name}"


def handler_of(
    function: Callable[..., Any] | Command | Handler, time_limit_s: float | None = None
) -> Handler:
    """The handler for a function, coroutine function or command.

    :raises BadHandlers: it is none of these.
    """
    if isinstance(function, Handler):
        return function
    if isinstance(function, Command):
        return Handler(
            _nothing, HandlerKind.COMMAND, function.time_limit_s, argv=tuple(function.argv)
        )
    if not callable(function):
        raise BadHandlers(f"{function!r} is not a function, coroutine function or Command.")
    is_batch = hasattr(function, _BATCH)
    size, wait_s = getattr(function, _BATCH, (1, 0.0))
    called = function if inspect.isroutine(function) else type(function).__call__
    is_coroutine = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
    kind = HandlerKind.COROUTINE if is_coroutine else HandlerKind.THREAD
    return Handler(function, kind, time_limit_s, size, wait_s, is_batch=is_batch)


def _nothing(*_: object) -> None:
    """A command has no function."""
