"""Detects that the reactor is blocked, and logs by what.

A coroutine handler that computes, sleeps or waits for a lock blocks the reactor. Then nothing else
happens: no heartbeat keeps the jobs of this worker from being delivered to others, and no time
limit is enforced. A thread of its own detects this and logs the stack.

The thread sends no heartbeats: a reactor that is blocked forever would hold its jobs forever.
Without heartbeats, other workers get them after their RETRY.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, Final

from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from disque_tx.worker.tasks.handlers import Handler

#: The reactor counts as blocked when it has not run for this long.
BLOCKED_S: Final = 2.0
#: One blockade is reported after 2 s, 4 s, 8 s and so on; another one not sooner than this.
REPORT_INTERVAL_S: Final = 10.0
_TICK_S: Final = 0.5
_log = Logger()


class Watchdog:
    """Watches one reactor. ``running``: returns the handlers that run now. ``now_s``: a clock that
    any thread may read. ``stack``: returns the stack of a thread by its ID; replaced in tests."""

    def __init__(
        self,
        reactor: Any,
        running: Callable[[], Iterable[Handler]],
        now_s: Callable[[], float],
        stack: Callable[[int], FrameType | None] = lambda number: sys._current_frames().get(number),
    ) -> None:
        self._running = running
        self._now_s = now_s
        self._stack = stack
        self._ticks = LoopingCall(self._tick)
        self._ticks.clock = reactor
        self._ended = threading.Event()
        self._watched = 0
        self._ticked_s = 0.0
        self._report_s = 0.0
        self._next_s = BLOCKED_S
        self._blocked = False

    def start(self, in_thread: bool = True) -> None:
        """Start, in the reactor's thread. ``in_thread``: with the thread that watches it."""
        if self._ticks.running:
            return
        self._watched = threading.get_ident()
        self._ended = threading.Event()
        self._ticked_s = self._now_s()
        self._report_s = self._ticked_s - REPORT_INTERVAL_S
        self._ticks.start(_TICK_S)
        if in_thread:
            watch = threading.Thread(
                target=self._watch, args=(self._ended,), name="disque-watchdog", daemon=True
            )
            watch.start()

    def stop(self) -> None:
        """Stop watching."""
        self._ended.set()
        if self._ticks.running:
            self._ticks.stop()

    def _tick(self) -> None:
        now_s = self._now_s()
        blocked_s, self._ticked_s = now_s - self._ticked_s, now_s
        if self._blocked:
            _log.warn("The reactor runs again, after {s:.1f} s", s=blocked_s)
        self._blocked = False
        self._next_s = BLOCKED_S

    def _watch(self, ended: threading.Event) -> None:
        while not ended.wait(_TICK_S):
            self.check()

    def check(self) -> None:
        """Log a report, if the reactor is blocked and a report is due."""
        now_s = self._now_s()
        blocked_s = now_s - self._ticked_s
        if blocked_s < self._next_s:
            return
        self._next_s *= 2
        if not self._blocked and now_s - self._report_s < REPORT_INTERVAL_S:
            return
        self._blocked, self._report_s = True, now_s
        frame = self._stack(self._watched)
        names = [handler.name for handler in self._running() if _is_in(handler, frame)]
        _log.error(
            "{what} has blocked the reactor for {s:.1f} s: no heartbeats are sent, and the jobs of"
            " this worker may be delivered again. Await what takes long, or make it a plain"
            " function, which runs in a thread.\n{stack}",
            what=" or ".join(dict.fromkeys(names)) or "Something",
            s=blocked_s,
            stack="".join(traceback.format_stack(frame)).rstrip(),
        )


def _is_in(handler: Handler, frame: FrameType | None) -> bool:
    """Whether a handler's own code runs in this stack."""
    function: Any = handler.function
    code = getattr(function, "__code__", None)
    if code is None:
        code = getattr(type(function).__call__, "__code__", None)
    while code is not None and frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False
