"""Work of the engine on a reactor and its threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure


class ReactorScheduler:
    """The engine's ``Scheduler``. ``defer_to_thread``: runs a function off the reactor."""

    def __init__(self, clock: IReactorTime, defer_to_thread: Callable[..., Deferred[Any]]) -> None:
        self._clock = clock
        self._defer_to_thread = defer_to_thread

    def soon(self, work: Callable[[], object]) -> Callable[[], object]:
        """In the next turn of the reactor."""
        return self._clock.callLater(0, work).cancel

    def in_background(
        self, work: Callable[[], object], done: Callable[[Exception | None], object]
    ) -> None:
        """In the thread pool."""

        def failed(failure: Failure) -> object:
            error = failure.value
            return done(error if isinstance(error, Exception) else RuntimeError(str(error)))

        self._defer_to_thread(work).addCallbacks(lambda _result: done(None), failed)
