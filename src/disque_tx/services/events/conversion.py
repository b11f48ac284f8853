"""Runs the program that converts rotated segments into lines of JSON, one process at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessDone
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from disque_tx.services.machine.log import DaemonLog

_PROGRAM: Final = ("-m", "disque_tx.services.events.convert")
#: Segments per process, which bounds how long one runs.
_PER_RUN: Final = 16
_ERROR_BYTES_MAX: Final = 1_000
#: Delay before a failed run is repeated.
_RETRY_S: Final = 60.0


class _Run(ProcessProtocol):
    """One process. ``ended``: called with its error output, and whether it succeeded."""

    def __init__(self, ended: Callable[[str, bool], None]) -> None:
        self._ended = ended
        self._errors = b""

    def errReceived(self, data: bytes) -> None:
        """Error output."""
        self._errors = (self._errors + data)[-_ERROR_BYTES_MAX:]

    def processEnded(self, reason: Failure) -> None:
        """The process has ended."""
        errors = self._errors.decode("utf-8", "replace").strip()
        self._ended(errors, reason.check(ProcessDone) is not None)


class Conversion:
    """Converts segments in the order in which they were added. ``waiting``: their paths;
    ``converted``: how many were."""

    def __init__(self, reactor: Any, log: DaemonLog) -> None:
        self.waiting: list[str] = []
        self.converted = 0
        self._reactor = reactor
        self._log = log
        self._running: list[str] = []
        self._again: Any = None
        self._idle: list[Deferred[None]] = []

    @property
    def pending(self) -> int:
        """Segments that are not converted yet."""
        return len(self.waiting) + len(self._running)

    def add(self, paths: list[str]) -> None:
        """Convert these, too, unless they are to be converted anyway."""
        self.waiting += [path for path in paths if path not in {*self.waiting, *self._running}]
        self._begin()

    def when_idle(self) -> Deferred[None]:
        """Fires when nothing is left to do, or cannot be done now."""
        done: Deferred[None] = Deferred()
        self._idle.append(done)
        self._check_idle()
        return done

    def _begin(self) -> None:
        if self._running or not self.waiting or self._again is not None:
            return
        self._running, self.waiting = self.waiting[:_PER_RUN], self.waiting[_PER_RUN:]
        self._reactor.spawnProcess(
            _Run(self._ended), sys.executable, [sys.executable, *_PROGRAM, *self._running], None
        )

    def _ended(self, errors: str, ok: bool) -> None:
        paths, self._running = self._running, []
        if errors:
            self._log.warning(f"Event log: {errors}")
        if ok:
            self.converted += len(paths)
        else:
            # Converted segments have been removed; repeating the list skips them.
            self.waiting = paths + self.waiting
            self._again = self._reactor.callLater(_RETRY_S, self._retry)
        self._begin()
        self._check_idle()

    def _retry(self) -> None:
        self._again = None
        self._begin()

    def _check_idle(self) -> None:
        if self._running or (self.waiting and self._again is None):
            return
        idle, self._idle = self._idle, []
        for done in idle:
            if not done.called:
                done.callback(None)

    def stop(self) -> None:
        """Begin no more runs; one that runs ends by itself."""
        if self._again is not None and self._again.active():
            self._again.cancel()
        self._again = None
        self.waiting.clear()
