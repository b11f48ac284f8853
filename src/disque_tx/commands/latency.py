"""Events that took long, as a short history per event (client protocol, section 8, LATENCY)."""

from __future__ import annotations

from collections import deque
from typing import Final

from mypy_extensions import i64

SAMPLES_MAX: Final = 160


class LatencySeries:
    """The history of one event. ``samples``: unix second and milliseconds, oldest first, at most
    one per second. ``max_ms``: the longest ever, also of samples no longer kept."""

    __slots__ = ("samples", "max_ms")

    def __init__(self) -> None:
        self.samples: deque[tuple[int, int]] = deque(maxlen=SAMPLES_MAX)
        self.max_ms: i64 = 0

    def add(self, unix_s: i64, duration_ms: i64) -> None:
        """Keep a sample; within one second only the longest stays."""
        self.max_ms = max(self.max_ms, duration_ms)
        samples = self.samples
        if samples and samples[-1][0] == unix_s:
            duration_ms = max(duration_ms, samples[-1][1])
            samples.pop()
        samples.append((unix_s, duration_ms))


class LatencyMonitor:
    """``threshold_ms``: what is worth a sample, 0 for nothing. ``series``: by event."""

    __slots__ = ("threshold_ms", "series")

    def __init__(self) -> None:
        self.threshold_ms: i64 = 0
        self.series: dict[bytes, LatencySeries] = {}

    def sample(self, event: bytes, unix_s: i64, duration_ms: i64) -> None:
        """The event took ``duration_ms``."""
        if self.threshold_ms == 0 or duration_ms < self.threshold_ms:
            return
        series = self.series.get(event)
        if series is None:
            series = self.series[event] = LatencySeries()
        series.add(unix_s, duration_ms)

    def reset(self, events: list[bytes]) -> int:
        """Forget these events, all of them when none is named; how many were known."""
        names = [event.lower() for event in events] if events else list(self.series)
        known = len(self.series)
        for name in names:
            self.series.pop(name, None)
        return known - len(self.series)
