"""Coroutine functions as functions that return Deferreds."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

_P = ParamSpec("_P")
_T = TypeVar("_T")


def deferred(
    function: Callable[_P, Coroutine[Deferred[Any], Any, _T]],
) -> Callable[_P, Deferred[_T]]:
    """Decorator: a call runs the coroutine at once, and returns a Deferred of its result."""

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> Deferred[_T]:
        return Deferred.fromCoroutine(function(*args, **kwargs))

    return call


@deferred
async def gather_all(parts: Sequence[Deferred[_T]]) -> list[_T]:
    """All results, in order. If some fail, raises the first failure after all have ended."""
    results: list[_T] = []
    for _, result in await DeferredList(list(parts), consumeErrors=True):
        if isinstance(result, Failure):
            result.raiseException()
        results.append(result)
    return results
