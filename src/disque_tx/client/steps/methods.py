"""Methods that are written once, and belong to every client and to the jobs that it delivers.

1. A request becomes a method by :func:`command`, a paged listing by :func:`listing`, and an
   operation of one or more requests by :func:`operation`.
2. A method returns its result where the class is one of :class:`ImmediateMethods`; a Deferred of
   it, which fails with the exceptions that the docstring names, in :class:`DeferredMethods`; and in
   :class:`AwaitedMethods` it is a coroutine.
3. Type checkers see exactly that, and ``help()`` and editors show the docstring and parameters of
   the function that the method was made of.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import update_wrapper
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    ParamSpec,
    Protocol,
    TypeVar,
    cast,
    overload,
)

from disque_tx.client.errors import ClientError, ConnectionLost, ScanInterrupted
from disque_tx.client.requests.encoding import Request
from disque_tx.client.requests.scans import Scan
from disque_tx.client.steps.single import Step, Steps

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

_P = ParamSpec("_P")
_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class Methods:
    """What performs methods. ``_session``: executes requests, and returns values, Deferreds or
    coroutines. ``_shares``: whether one that waits at a node would hold others up."""

    __slots__ = ()
    _session: Any
    _shares: ClassVar[bool] = True

    def _perform(self, steps: Steps[Any]) -> Any:
        """Make the requests of an operation one after the other; returns its result."""
        raise NotImplementedError

    def _pages(self, scan: Scan[Any]) -> Any:
        """The items of all pages, from one node."""
        raise NotImplementedError


class ImmediateMethods(Methods):
    """Methods return their results."""

    __slots__ = ()
    _shares = False

    def _perform(self, steps: Steps[_T]) -> _T:
        try:
            step = next(steps)
            while True:
                try:
                    answer = step(self._session)
                except ClientError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            result: _T = end.value
            return result

    def _pages(self, scan: Scan[_T]) -> Iterator[_T]:
        address, (cursor, items) = self._session.request_located(scan.page(0))
        while True:
            yield from items
            if not cursor:
                return
            try:
                cursor, items = self._session.request_at(address, scan.page(cursor))
            except ConnectionLost as lost:
                raise ScanInterrupted(scan.command, lost) from lost


class _MethodsInTime(Methods):
    """Whatever a session returns is awaited, a Deferred or a coroutine."""

    __slots__ = ()

    async def _finish(self, steps: Steps[_T], step: Step | None = None) -> _T:
        """:meth:`_perform` as a coroutine, from this step on."""
        try:
            if step is None:
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


class DeferredMethods(_MethodsInTime):
    """Methods return Deferreds of their results."""

    __slots__ = ()


class AwaitedMethods(_MethodsInTime):
    """Methods are coroutines."""

    __slots__ = ()

    async def _perform(self, steps: Steps[_T]) -> _T:
        return await self._finish(steps)


class Method(Protocol[_P, _T]):
    """A method whose result depends on the class that has it."""

    @overload
    def __get__(self, instance: ImmediateMethods, owner: Any = None) -> Callable[_P, _T]: ...

    @overload
    def __get__(
        self, instance: DeferredMethods, owner: Any = None
    ) -> Callable[_P, Deferred[_T]]: ...

    @overload
    def __get__(
        self, instance: AwaitedMethods, owner: Any = None
    ) -> Callable[_P, Coroutine[Any, Any, _T]]: ...

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Callable[..., Any]: ...


class ListingMethod(Protocol[_P, _T_co]):
    """A method that iterates over the items of a paged reply."""

    @overload
    def __get__(
        self, instance: ImmediateMethods, owner: Any = None
    ) -> Callable[_P, Iterator[_T_co]]: ...

    @overload
    def __get__(
        self, instance: DeferredMethods | AwaitedMethods, owner: Any = None
    ) -> Callable[_P, AsyncIterator[_T_co]]: ...

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Callable[..., Any]: ...


def command(request: Callable[_P, Request[_T]]) -> Method[_P, _T]:
    """A method that makes this request."""

    def method(self: Methods, /, *args: _P.args, **kwargs: _P.kwargs) -> Any:
        return self._session.request(request(*args, **kwargs))

    return cast("Method[_P, _T]", _like(request, method))


def listing(scan: Callable[_P, Scan[_T]]) -> ListingMethod[_P, _T]:
    """A method that makes the requests for all pages."""

    def method(self: Methods, /, *args: _P.args, **kwargs: _P.kwargs) -> Any:
        return self._pages(scan(*args, **kwargs))

    return cast("ListingMethod[_P, _T]", _like(scan, method, "Iterator[%s]"))


def operation(steps: Callable[Concatenate[Any, _P], Steps[_T]]) -> Method[_P, _T]:
    """A method that performs the steps which it is written as."""

    def method(self: Methods, /, *args: _P.args, **kwargs: _P.kwargs) -> Any:
        return self._perform(steps(self, *args, **kwargs))

    return cast("Method[_P, _T]", _like(steps, method, bound=True))


def _like(
    function: Callable[..., Any],
    method: Callable[..., Any],
    shown: str = "%s",
    bound: bool = False,
) -> Callable[..., Any]:
    """The method with the function's name, docstring and signature, for ``help()``. ``shown``: the
    type of the result. ``bound``: the function has a parameter for the object, too."""
    update_wrapper(method, function, ("__name__", "__qualname__", "__doc__"))
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    declared = inspect.signature(function)
    parameters = list(declared.parameters.values())[bound:]
    # Of Request[int] or Steps[int], programs get the int.
    result = str(declared.return_annotation).partition("[")[2].removesuffix("]")
    described: Any = method
    described.__signature__ = inspect.Signature(
        [itself, *parameters], return_annotation=shown % result
    )
    return method
