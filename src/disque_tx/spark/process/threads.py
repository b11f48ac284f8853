"""Several pieces of work at once, in threads of this process, and Ctrl-C meanwhile.

An exception that a handler of a signal raises while the main thread has just acquired a lock leaves
that locked, and whoever starts or awaits threads would wait for it forever.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import Final, TypeVar

_Work = TypeVar("_Work")
_Result = TypeVar("_Result")

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def in_threads(
    do: Callable[[_Work], _Result], work: Sequence[_Work], threads: int
) -> list[_Result]:
    """The result of each piece of work, in their order.

    A signal takes effect when the pieces that were begun are done; the others are done only if its
    handler raises nothing. A second one takes effect at once. After an error, which is raised, no
    more pieces are begun.
    """
    results: dict[int, _Result] = {}
    while missing := [at for at in range(len(work)) if at not in results]:
        failed: list[int] = []
        with _postponed() as arrived, ThreadPoolExecutor(min(threads, len(missing))) as pool:

            def one(at: int, arrived: list[int] = arrived, failed: list[int] = failed) -> None:
                if arrived or failed:
                    return
                try:
                    results[at] = do(work[at])
                except BaseException:
                    failed.append(at)
                    raise

            calls = [pool.submit(one, at) for at in missing]
        for call in calls:
            call.result()
    return [results[at] for at in range(len(work))]


@contextmanager
def _postponed() -> Iterator[list[int]]:
    """The signals that have arrived within this context, and take effect at its end."""
    arrived: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield arrived
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    handlers = {number: handler for number, handler in before.items() if callable(handler)}

    def note(number: int, frame: FrameType | None) -> None:
        if arrived:
            handlers[signal.Signals(number)](number, frame)
        arrived.append(number)

    try:
        for number in handlers:
            signal.signal(number, note)
        yield arrived
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if arrived:
        handlers[signal.Signals(arrived[0])](arrived[0], None)
