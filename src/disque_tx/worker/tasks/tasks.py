"""Functions as tasks: ``@queue.job`` and ``.delay(…)``."""

from __future__ import annotations

import hashlib
import inspect
import os
import secrets
from collections.abc import Callable, Mapping
from functools import update_wrapper
from typing import Any, Final, Generic, ParamSpec, TypeAlias, TypeVar, overload

import attrs
from twisted.internet.defer import Deferred

from disque_tx.client import AddOptions
from disque_tx.client.blocking import Disque
from disque_tx.client.steps import tracing
from disque_tx.worker.base.context import Context
from disque_tx.worker.base.errors import BadHandlers, Hopeless, Undecodable, UnknownTask
from disque_tx.worker.tasks.handlers import Handler, HandlerCall, HandlerKind, handler_of, target_of
from disque_tx.worker.tasks.recurring import TaskSchedule
from disque_tx.worker.tasks.results import REPLY_CHARACTERS_MAX, REPLY_PREFIX, AsyncPending, Pending
from disque_tx.worker.tasks.serializers import JSON, Raw

ADDRESSES: Final = "DISQUE_ADDRESSES"
_DEFAULT_ADDRESSES: Final = "127.0.0.1:7711"
_NAME_SHOWN_MAX: Final = 100
#: ``True``, or a function of a call's arguments that returns a key.
UniqueKey: TypeAlias = bool | Callable[..., str | bytes]
_P = ParamSpec("_P")
_R = TypeVar("_R")


class Queue:
    """A queue whose jobs are calls of functions.

    ``serializer``: an ``ISerializer``, by default :class:`JSON`. ``retry_s``, ``ttl_s``,
    ``replicate``: of the jobs, unless the task has its own. ``retries_max``: after how many
    nacks and additional deliveries a failing job becomes a dead letter, ``None``: the worker's
    limit.
    """

    def __init__(
        self,
        name: str,
        serializer: Any = None,
        retry_s: int | None = None,
        ttl_s: int | None = None,
        replicate: int | None = None,
        retries_max: int | None = None,
    ) -> None:
        self.name = name
        self.serializer = JSON() if serializer is None else serializer
        self.options = AddOptions(retry_s=retry_s, ttl_s=ttl_s, replicate=replicate)
        self.retries_max = retries_max
        self.tasks: dict[str, Task[..., Any]] = {}
        self.recurring: dict[str, TaskSchedule] = {}
        self._client: Any = None

    def __repr__(self) -> str:
        return f"<Queue {self.name!r}: {', '.join(self.tasks) or 'no tasks'}>"

    def connect(self, client: Any) -> None:
        """Add jobs with this client from now on: a ``Disque``, or a ``DisqueClient``."""
        self._client = client

    @property
    def client(self) -> Any:
        """The client that adds jobs. Without :meth:`connect` it is a blocking client of the nodes
        in the environment variable DISQUE_ADDRESSES (separated by commas), or of the local node."""
        if self._client is None:
            addresses = os.environ.get(ADDRESSES) or _DEFAULT_ADDRESSES
            self._client = Disque(addresses.split(","))
        return self._client

    @overload
    def job(self, function: Callable[_P, _R], /) -> Task[_P, _R]: ...

    @overload
    def job(
        self,
        *,
        name: str | None = None,
        retry_s: int | None = None,
        ttl_s: int | None = None,
        time_limit_s: float | None = None,
        result: bool = False,
        process: bool = False,
        unique: UniqueKey = False,
        unique_for_s: int | None = None,
    ) -> Callable[[Callable[_P, _R]], Task[_P, _R]]: ...

    def job(self, function: Any = None, **words: Any) -> Any:
        """Decorator: the function becomes a task, which can still be called.

        ``name``: the task's name in jobs, by default that of the function. ``retry_s``, ``ttl_s``:
        of its jobs. ``time_limit_s``: how long it may take. ``result``: whether its return value is
        sent back. ``process``: run it in a process of its own, because it may crash or hang.
        ``unique``: add no second job for a call while the first one is not done: ``True`` for calls
        with the same arguments, or a function of the arguments that returns a key, text or bytes.
        ``unique_for_s``: for so long, even if the first one is done. Both need nodes of disque-tx.

        :raises BadHandlers: the name is taken, or the function cannot be a task; or it is to be
            unique and to have results, which only the first caller would get.
        """
        if function is None:
            return lambda function: self._add(function, **words)
        return self._add(function)

    def every(
        self,
        when: str | int,
        *,
        tz: str | None = None,
        missed: str | None = None,
        **words: Any,
    ) -> Callable[[Callable[_P, _R] | Task[_P, _R]], Task[_P, _R]]:
        """Decorator: the function becomes a task that is also called whenever it is due, without
        arguments. The cluster adds those jobs; workers tell it so when they start.

        ``when``: a cron expression, or a number of seconds. ``tz``, ``missed``: see
        ``schedule_set``. ``words``: as for :meth:`job`. The decorator may be used on a task, too.

        :raises BadHandlers: the function needs arguments, or cannot be a task.
        """

        def decorate(function: Callable[_P, _R] | Task[_P, _R]) -> Task[_P, _R]:
            task = function if isinstance(function, Task) else self._add(function, **words)
            body = task.body_without_arguments()
            self.recurring[task.name] = TaskSchedule(when, tz, missed, body, task.job_options)
            return task

        return decorate

    def _add(
        self,
        function: Callable[_P, _R],
        *,
        name: str | None = None,
        retry_s: int | None = None,
        ttl_s: int | None = None,
        time_limit_s: float | None = None,
        result: bool = False,
        process: bool = False,
        unique: UniqueKey = False,
        unique_for_s: int | None = None,
    ) -> Task[_P, _R]:
        name = name or function.__name__
        if unique and result:
            raise BadHandlers("A task that is unique has no results: only the first call is a job.")
        if unique_for_s is not None and not unique:
            raise BadHandlers("unique_for_s needs unique.")
        handler = handler_of(function, time_limit_s)
        if handler.is_batch:
            raise BadHandlers("A batch gets jobs, not arguments: pass it to the worker itself.")
        if process:
            handler = Handler(
                function, HandlerKind.PROCESS, time_limit_s, target=target_of(function)
            )
        if name in self.tasks or (self._is_raw and (self.tasks or result)):
            raise BadHandlers(
                f"Queue {self.name!r} has a task {name!r} already; or its serializer is Raw, which"
                " allows one task, without results."
            )
        times: dict[str, Any] = {"retry_s": retry_s, "ttl_s": ttl_s, "unique_for_s": unique_for_s}
        options = attrs.evolve(self.options, **{k: v for k, v in times.items() if v is not None})
        task = Task(self, name, function, handler, options, result, unique=unique)
        self.tasks[name] = task
        return task

    # -- for the worker ----------------------------------------------------------------------

    @property
    def _is_raw(self) -> bool:
        return isinstance(self.serializer, Raw)

    def size_max(self) -> int:
        """Tasks take one job at a time."""
        return 1

    def call(self, context: Context) -> HandlerCall:
        """The call that a job contains.

        :raises Undecodable: the body is not a call.
        :raises UnknownTask: this queue has no such task.
        """
        if self._is_raw:
            for task in self.tasks.values():
                return HandlerCall(task.handler, (context.body,))
            raise UnknownTask(f"Queue {self.name!r} has no task.")
        value = self._loaded(context.body)
        task, args, kwargs, reply = self._parsed(value)
        dumps = self.serializer.dumps if reply else None
        carrier = {} if tracing.ACTIVE is None else tracing.carried(value)
        return HandlerCall(task.handler, args, kwargs, reply, dumps, carrier)

    def _parsed(
        self, value: dict[str, Any]
    ) -> tuple[Task[..., Any], list[Any], dict[str, Any], str | None]:
        name, args, kwargs = value.get("task"), value.get("args", []), value.get("kwargs", {})
        reply = value.get("reply")
        if not (isinstance(name, str) and isinstance(args, list) and isinstance(kwargs, dict)):
            raise Undecodable("The body has no task with args and kwargs.")
        if not all(isinstance(word, str) for word in kwargs):
            raise Undecodable("A keyword in the body is not text.")
        if reply is not None and not _is_reply(reply):
            raise Undecodable("The reply queue in the body is not a queue for results.")
        task = self.tasks.get(name)
        if task is None:
            shown = name[:_NAME_SHOWN_MAX]
            raise UnknownTask(f"Queue {self.name!r} has no task {shown!r}.", reply)
        return task, args, kwargs, reply

    def _loaded(self, body: bytes) -> dict[str, Any]:
        try:
            value = self.serializer.loads(body)
        except Hopeless:
            raise
        except BaseException as error:
            what = f"{type(error).__name__}: {error}"
            raise Undecodable(f"The body cannot be deserialized: {what}") from error
        if not isinstance(value, dict):
            raise Undecodable("The body is not a call of a task.")
        return value


def _is_reply(name: object) -> bool:
    return (
        isinstance(name, str)
        and name.startswith(REPLY_PREFIX)
        and len(name) <= REPLY_CHARACTERS_MAX
    )


class Task(Generic[_P, _R]):
    """A function whose calls can be jobs. Calling it runs it here."""

    def __init__(
        self,
        queue: Queue,
        name: str,
        function: Callable[_P, _R],
        handler: Handler,
        options: AddOptions,
        has_result: bool,
        *,
        unique: UniqueKey,
    ) -> None:
        update_wrapper(self, function)
        self.unique = unique
        self.queue = queue
        self.name = name
        self.handler = handler
        self.has_result = has_result
        self._function = function
        self._options = options

    def __repr__(self) -> str:
        return f"<Task {self.name!r} of queue {self.queue.name!r}>"

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return self._function(*args, **kwargs)

    @property
    def job_options(self) -> AddOptions:
        """How its jobs are added."""
        return self._options

    def body_without_arguments(self) -> bytes:
        """The body of a job that calls it without arguments, and wants no result.

        :raises BadHandlers: it cannot be called so.
        """
        if isinstance(self.queue.serializer, Raw):
            return b""
        try:
            inspect.signature(self._function).bind()
        except TypeError as error:
            raise BadHandlers(f"Task {self.name!r} cannot recur: {error}.") from error
        return self._body((), {}, None)

    def options(self, **words: Any) -> Task[_P, _R]:
        """A copy of the task with other options for its jobs: ``delay_s``, ``retry_s``, ``ttl_s``,
        ``replicate``, ``maxlen``.

        :raises TypeError: for unknown options.
        """
        options = attrs.evolve(self._options, **words)
        what = (self.queue, self.name, self._function, self.handler)
        return Task(*what, options, self.has_result, unique=self.unique)

    def delay(self, *args: _P.args, **kwargs: _P.kwargs) -> Any:
        """Add a job that calls the function. Returns a :class:`Pending`, or with a Twisted client a
        Deferred of an :class:`AsyncPending`.

        :raises NotSerializable: the arguments cannot be sent.
        :raises ClientError: the job was not added, or the outcome is unknown; see ``add_job``.
        :raises ValueError: the key of a unique task is empty.
        """
        reply = REPLY_PREFIX + secrets.token_hex(16) if self.has_result else None
        client, serializer = self.queue.client, self.queue.serializer
        options, name = self._options, self.queue.name
        if self.unique:
            options = attrs.evolve(options, unique=self._key(args, kwargs))

        def add(carrier: dict[str, str]) -> Any:
            body = self._body(args, kwargs, reply, carrier)
            return client.add_job_with(name, body, options)

        active = tracing.ACTIVE
        added = add({}) if active is None else active.send(name, add)
        if isinstance(added, Deferred):
            return added.addCallback(lambda id_: AsyncPending(client, id_, reply, serializer))
        return Pending(client, added, reply, serializer)

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """The key of a call: of this task of this queue, with these arguments."""
        if callable(self.unique):
            made = self.unique(*args, **kwargs)
            words = made.encode() if isinstance(made, str) else bytes(made)
            if not words:
                raise ValueError(f"The key of a call of {self.name!r} is empty.")
        else:
            words = self._body(args, dict(sorted(kwargs.items())), None)
        whole = b"\0".join((self.queue.name.encode(), self.name.encode(), words))
        return b"task:" + hashlib.sha256(whole).hexdigest().encode()

    def _body(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        reply: str | None,
        carrier: Mapping[str, str] | None = None,
    ) -> bytes:
        serializer = self.queue.serializer
        if isinstance(serializer, Raw):
            (body,) = args
            return serializer.dumps(body)
        call: dict[str, Any] = {"task": self.name, "args": list(args), "kwargs": kwargs}
        if reply is not None:
            call["reply"] = reply
        call.update(carrier or {})
        dumped: bytes = serializer.dumps(call)
        return dumped
