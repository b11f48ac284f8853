"""The commands of Disque as methods, which all clients have.

Each request of :mod:`disque_tx.client.requests.encoding` becomes a method here: in
:class:`ImmediateCommands` it returns the result; in :class:`DeferredCommands` it returns a Deferred
of the result, which fails with the exceptions that the docstring names; in
:class:`AwaitedCommands` it is a coroutine.

When a connection is lost, commands that are ``REPEATABLE`` go to another node by themselves; the
others raise ``OutcomeUnknown`` if they have been sent. Any method may raise the exceptions of
:mod:`disque_tx.client.errors`; docstrings name those that a program will want to handle.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar, cast, overload

from disque_tx.client.errors import ClientError, ConnectionLost, ScanInterrupted
from disque_tx.client.requests import adding, counting, moving, policies, scans, schedules
from disque_tx.client.requests import encoding as requests
from disque_tx.client.requests.encoding import Request
from disque_tx.client.requests.scans import Scan
from disque_tx.client.steps import channels
from disque_tx.client.steps.channels import Steps

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

_P = ParamSpec("_P")
_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)
#: How long one GETJOB may wait at a node; a node that stopped answering is noticed after that time.
WAIT_MS_MAX: Final = 10_000
#: How many jobs are asked for in one round trip when they are wanted in the order of their queues.
IN_ORDER_AT_ONCE: Final = 16


class Method(Protocol[_P, _T]):
    """A method whose result depends on the kind of client."""

    @overload
    def __get__(self, client: ImmediateCommands, owner: Any = None) -> Callable[_P, _T]: ...

    @overload
    def __get__(
        self, client: DeferredCommands, owner: Any = None
    ) -> Callable[_P, Deferred[_T]]: ...

    @overload
    def __get__(
        self, client: AwaitedCommands, owner: Any = None
    ) -> Callable[_P, Coroutine[Any, Any, _T]]: ...

    @overload
    def __get__(self, client: None, owner: Any = None) -> Callable[..., Any]: ...


class ListingMethod(Protocol[_P, _T_co]):
    """A method that iterates over the items of a paged reply."""

    @overload
    def __get__(
        self, client: ImmediateCommands, owner: Any = None
    ) -> Callable[_P, Iterator[_T_co]]: ...

    @overload
    def __get__(
        self, client: DeferredCommands | AwaitedCommands, owner: Any = None
    ) -> Callable[_P, AsyncIterator[_T_co]]: ...

    @overload
    def __get__(self, client: None, owner: Any = None) -> Callable[..., Any]: ...


def _command(request: Callable[_P, Request[_T]]) -> Method[_P, _T]:
    def method(self: Commands, /, *args: _P.args, **kwargs: _P.kwargs) -> Any:
        return self._session.request(request(*args, **kwargs))

    return cast("Method[_P, _T]", _like(request, method))


def _exchange(steps: Callable[_P, Steps[_T]]) -> Method[_P, _T]:
    """A method that makes several requests."""

    def method(self: Commands, /, *args: _P.args, **kwargs: _P.kwargs) -> Any:
        return self._perform_steps(steps(*args, **kwargs))

    return cast("Method[_P, _T]", _like(steps, method))


def _listing(scan: Callable[_P, Scan[_T]]) -> ListingMethod[_P, _T]:
    def method(self: Commands, /, *args: _P.args, **kwargs: _P.kwargs) -> Any:
        return self._pages(scan(*args, **kwargs))

    return cast("ListingMethod[_P, _T]", _like(scan, method))


def _like(function: Callable[..., Any], method: Callable[..., Any]) -> Callable[..., Any]:
    """The method with the function's name, docstring and signature, for ``help()``."""
    update_wrapper(method, function, ("__name__", "__qualname__", "__doc__"))
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    parameters = [itself, *inspect.signature(function).parameters.values()]
    described: Any = method
    described.__signature__ = inspect.Signature(parameters)
    return method


class Commands:
    """The commands that all clients have; see :mod:`disque_tx.client.requests.encoding`.

    ``_session``: executes requests, and returns values, Deferreds or coroutines as its client does.
    """

    _session: Any

    add_job = _command(adding.add_job)
    add_job_with = _command(adding.add_job_with)
    add_once = _command(adding.add_once)
    enqueue = _command(adding.enqueue)
    ack_jobs = _command(requests.ack_jobs)
    fast_ack = _command(requests.fast_ack)
    nack = _command(requests.nack)
    working = _command(requests.working)
    enqueue_jobs = _command(requests.enqueue_jobs)
    dequeue_jobs = _command(requests.dequeue_jobs)
    delete_jobs = _command(requests.delete_jobs)
    show = _command(requests.show)
    job_scan = _listing(scans.job_scan)

    queue_length = _command(requests.queue_length)
    queue_peek = _command(requests.queue_peek)
    queue_stat = _command(requests.queue_stat)
    queue_scan = _listing(scans.queue_scan)
    pause = _command(requests.pause)
    queue_move = _command(moving.queue_move)
    queue_counts = _command(counting.queue_counts)
    list_queues = _command(counting.list_queues)
    flush_queue = _command(counting.flush_queue)
    wait_job = _command(counting.wait_job)

    policy_set = _command(policies.policy_set)
    policy_del = _command(policies.policy_del)
    policy_repair = _command(policies.policy_repair)
    policy_list = _command(policies.policy_list)
    policy_get = _command(policies.policy_get)

    schedule_set = _command(schedules.schedule_set)
    schedule_list = _command(schedules.schedule_list)
    schedule_get = _command(schedules.schedule_get)
    schedule_del = _command(schedules.schedule_del)
    schedule_repair = _command(schedules.schedule_repair)
    schedule_pause = _command(schedules.schedule_pause)
    schedule_resume = _command(schedules.schedule_resume)
    schedule_run = _command(schedules.schedule_run)

    subscribe = _exchange(channels.subscribe)
    unsubscribe = _exchange(channels.unsubscribe)
    publish = _exchange(channels.publish)

    hello = _command(requests.hello)
    info = _command(requests.info)
    ping = _command(requests.ping)
    execute = _command(requests.execute)
    cluster_info = _command(requests.cluster_info)
    cluster_nodes = _command(requests.cluster_nodes)
    cluster_my_id = _command(requests.cluster_my_id)
    cluster_meet = _command(requests.cluster_meet)
    cluster_forget = _command(requests.cluster_forget)
    cluster_leaving = _command(requests.cluster_leaving)
    cluster_reset = _command(requests.cluster_reset)
    cluster_save_config = _command(requests.cluster_save_config)

    def _perform_steps(self, steps: Steps[Any]) -> Any:
        """Make the requests of an operation one after the other; returns its result."""
        raise NotImplementedError

    def _pages(self, scan: Scan[Any]) -> Any:
        """The items of all pages, from one node."""
        raise NotImplementedError


class ImmediateCommands(Commands):
    """Methods return their results."""


class _CommandsInTime(Commands):
    """Whatever a session returns is awaited, a Deferred or a coroutine."""

    async def _stepped(self, steps: Steps[_T]) -> _T:
        """:meth:`_perform_steps` as a coroutine."""
        try:
            step = next(steps)
            while True:
                try:
                    answer = await step(self._session)
                except ClientError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            result: _T = end.value
            return result

    async def _pages(self, scan: Scan[_T]) -> AsyncIterator[_T]:
        address, (cursor, items) = await self._session.request_located(scan.page(0))
        while True:
            for item in items:
                yield item
            if not cursor:
                return
            try:
                cursor, items = await self._session.request_at(address, scan.page(cursor))
            except ConnectionLost as lost:
                raise ScanInterrupted(scan.command, lost) from lost


class DeferredCommands(_CommandsInTime):
    """Methods return Deferreds of their results."""


class AwaitedCommands(_CommandsInTime):
    """Methods are coroutines."""

    async def _perform_steps(self, steps: Steps[_T]) -> _T:
        return await self._stepped(steps)


def whole_ms(timeout_s: float | None) -> int:
    """A timeout in the form of GETJOB, where 0 means forever: a short one becomes 1 ms."""
    return 0 if timeout_s is None else max(1, int(timeout_s * 1000))


class Wait:
    """A wait for jobs, made of GETJOBs that wait for :data:`WAIT_MS_MAX` at most.

    ``timeout_ms``: of the whole, 0 forever.
    """

    __slots__ = ("_deadline_s", "_now_s")

    def __init__(self, now_s: Callable[[], float], timeout_ms: int) -> None:
        self._now_s = now_s
        self._deadline_s = now_s() + timeout_ms / 1000 if timeout_ms else None

    def next_ms(self) -> int:
        """How long the next GETJOB waits; 0 after the deadline."""
        if self._deadline_s is None:
            return WAIT_MS_MAX
        left_ms = round((self._deadline_s - self._now_s()) * 1000)
        return max(0, min(left_ms, WAIT_MS_MAX))
