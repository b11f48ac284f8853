"""The append only file of a node as a service: the log of the engine on real files, with the
reactor and its threads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from disque_tx.commands.base.latency import LatencyMonitor
from disque_tx.core.node import Node
from disque_tx.engine.aof.environment import Environment, LogSettings
from disque_tx.engine.aof.log import AppendOnlyLog
from disque_tx.engine.interfaces import IFiles, OperatorLog


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


class AppendOnlyFile(AppendOnlyLog, Service):
    """``defer_to_thread``: runs a function off the reactor. The others: see ``Environment``."""

    name = "aof"

    def __init__(
        self,
        node: Node,
        files: IFiles,
        clock: IReactorTime,
        settings: LogSettings,
        *,
        defer_to_thread: Callable[..., Deferred[Any]],
        fatal: Callable[[str], object],
        reports: OperatorLog,
        monotonic: Callable[[], float] = time.monotonic,
        latency: LatencyMonitor | None = None,
    ) -> None:
        super().__init__(
            Environment(
                node,
                files,
                ReactorScheduler(clock, defer_to_thread),
                settings,
                fatal,
                reports,
                os.getpid(),
                monotonic,
                latency or LatencyMonitor(),
            )
        )

    def load(self) -> Deferred[None]:
        """:meth:`open_and_load` as a Deferred, which fails with the reason."""
        result: Deferred[None] = Deferred()
        self.open_and_load(lambda error: result.errback(error) if error else result.callback(None))
        return result

    def stopService(self) -> None:
        """Write and sync what is left, and close everything."""
        super().stopService()
        self.close()
