"""Cleaning from time to time."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Protocol

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from disque_tx.errors import DisqueError
from disque_tx.workqueue.deferreds import deferred


class Cleanable(Protocol):
    """A work queue, as a cleaning service sees it."""

    def light_clean(self) -> Awaitable[int]:
        """Return items whose lease is over."""
        ...

    def deep_clean(self) -> Awaitable[int]:
        """Return all lost items."""
        ...


class CleaningService(Service):
    """Cleans work queues lightly, every ``every_s``, and deeply, every ``deep_every_s``.

    Runs never overlap: one that takes longer than ``every_s`` skips a turn. A queue whose server
    fails is logged, and tried again with the next turn. ``clock``: the reactor.

    :raises ValueError: when a time is not positive.
    """

    _log = Logger()

    def __init__(
        self,
        queues: Sequence[Cleanable],
        every_s: float,
        deep_every_s: float | None = None,
        *,
        clock: Any,
    ) -> None:
        if not every_s > 0 or (deep_every_s is not None and not deep_every_s > 0):
            raise ValueError("The time between two cleans is not positive. Give it in seconds.")
        self._queues = queues
        self._every_s = every_s
        self._deep_every_s = deep_every_s
        self._clock = clock
        self._next_deep_s = 0.0
        self._loop = LoopingCall(self._turn)
        self._loop.clock = clock
        self._ended: Deferred[Any] | None = None

    def startService(self) -> None:
        """Clean now, and then every ``every_s``; deeply at first after ``deep_every_s``."""
        super().startService()  # type: ignore[no-untyped-call]
        self._next_deep_s = self._clock.seconds() + (self._deep_every_s or 0.0)
        self._ended = self._loop.start(self._every_s)

    def stopService(self) -> Deferred[Any] | None:
        """Begin no more; fires when the run under way has ended."""
        super().stopService()  # type: ignore[no-untyped-call]
        if self._loop.running:
            self._loop.stop()
        return self._ended

    @deferred
    async def _turn(self) -> None:
        deep = self._deep_every_s is not None and self._clock.seconds() >= self._next_deep_s
        if deep:
            self._next_deep_s = self._clock.seconds() + (self._deep_every_s or 0.0)
        for queue in self._queues:
            if self.running:
                await self._clean(queue, deep)

    async def _clean(self, queue: Cleanable, deep: bool) -> None:
        try:
            returned = await (queue.deep_clean() if deep else queue.light_clean())
        except DisqueError as error:
            self._log.warn("Cleaning {queue} failed: {error}", queue=queue, error=error)
        except Exception:
            self._log.failure("Cleaning {queue} failed", queue=queue)
        else:
            if returned:
                self._log.info("{queue}: {n} items returned", queue=queue, n=returned)
