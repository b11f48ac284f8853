"""The log events of a test's code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.logger import LogEvent, LogLevel, formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase


def observe(case: SynchronousTestCase, note: Callable[[LogEvent], None]) -> None:
    """Pass every event to ``note`` until the test ends."""
    observer: Any = note  # the publisher's type wants an interface
    globalLogPublisher.addObserver(observer)
    case.addCleanup(globalLogPublisher.removeObserver, observer)


def warnings(case: SynchronousTestCase) -> list[str]:
    """The warnings from now on, as text, in a list that grows."""
    lines: list[str] = []

    def note(event: LogEvent) -> None:
        if event["log_level"] is LogLevel.warn:
            lines.append(formatEvent(event))

    observe(case, note)
    return lines
