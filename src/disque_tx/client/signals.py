"""SIGINT and SIGTERM while threads are started and waited for.

An exception that a handler raises while the main thread has just acquired a lock leaves that
locked, and whoever starts or awaits threads would wait for it forever.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_NUMBERS: Final = (signal.SIGINT, signal.SIGTERM)
_Handler = Callable[[int, FrameType | None], object]


@contextmanager
def postponed(second: _Handler | None = None) -> Iterator[list[int]]:
    """A signal that arrives within this context takes effect at its end, and is in the list until
    then; a second one takes effect at once, by ``second`` or its own handler. In other threads than
    the main one, where Python runs no handlers, nothing changes."""
    arrived: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield arrived
        return

    def note(number: int, frame: FrameType | None) -> None:
        if arrived:
            (second or handlers[number])(number, frame)
        else:
            arrived.append(number)

    before = {int(number): signal.getsignal(number) for number in _NUMBERS}
    handlers = {number: handler for number, handler in before.items() if callable(handler)}
    try:
        for number in handlers:
            signal.signal(number, note)
        yield arrived
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in arrived:
            handlers[number](number, None)
