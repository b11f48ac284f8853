"""Events that took long, as a short history per event, and as LATENCY GRAPH and LATENCY DOCTOR show
them (client protocol, section 8).
"""

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


_COLUMNS: Final = 80
_ROWS: Final = 4
#: How full the topmost cell of a column is, in thirds.
_LEVELS: Final = b"_o#"
_FULL: Final = b"|"
_EMPTY: Final = b" "

#: Where to look first, by event; what is not here starts with ``aof-`` and is about the disk.
_ADVICE: Final = {
    b"command": "A slow command holds up every client. SLOWLOG GET shows which ones; bodies of "
    "many megabytes, QPEEK and JSCAN with large counts are the usual ones.",
    b"fast-command": "Commands that should take microseconds took long, so something else kept the "
    "process from running: swapping, a busy machine, or too few processors.",
    b"fork": "Starting a rewrite of the log copies the page tables. Rewrite less often "
    "(auto-aof-rewrite-percentage), or keep fewer jobs in memory.",
    b"eviction-cycle": "The node makes room by dropping acknowledged jobs. Raise maxmemory, or "
    "find the queue that nobody empties.",
    b"jobs-processing": "Very many jobs became due at once. Spread DELAY and RETRY, or share the "
    "queue between more nodes.",
}
_DISK_ADVICE: Final = (
    "The disk is slow. Give the log a disk of its own, use appendfsync everysec instead of always, "
    "or set no-appendfsync-on-rewrite."
)


def age_text(age_s: int) -> bytes:
    """An age in its largest whole unit: seconds, minutes, hours or days."""
    for unit_s, letter in ((86400, b"d"), (3600, b"h"), (60, b"m")):
        if age_s >= unit_s:
            return b"%d%s" % (age_s // unit_s, letter)
    return b"%ds" % max(age_s, 0)


def graph(event: bytes, series: LatencySeries, unix_s: int) -> bytes:
    """The samples of an event as columns, oldest on the left, with their ages below."""
    samples = list(series.samples)
    values = [duration_ms for _, duration_ms in samples]
    low, high = min(values), max(values)
    head = b"%s - high %d ms, low %d ms (all time high %d ms)\n" % (
        event,
        high,
        low,
        series.max_ms,
    )
    bands = [
        _band(samples[start : start + _COLUMNS], low, high, unix_s)
        for start in range(0, len(samples), _COLUMNS)
    ]
    return head + b"-" * _COLUMNS + b"\n" + b"\n".join(bands)


def _band(samples: list[tuple[int, int]], low: int, high: int, unix_s: int) -> bytes:
    """Up to 80 samples: four rows of levels, an empty row, and the ages read downwards."""
    columns = [_column(duration_ms, low, high) for _, duration_ms in samples]
    labels = [age_text(unix_s - sample_s) for sample_s, _ in samples]
    depth = max([len(label) for label in labels])
    columns = [
        column + _EMPTY + label.ljust(depth) for column, label in zip(columns, labels, strict=True)
    ]
    rows = [bytes([column[row] for column in columns]) for row in range(_ROWS + 1 + depth)]
    return b"".join([row + b"\n" for row in rows])


def _column(duration_ms: int, low: int, high: int) -> bytes:
    """The column of one sample, from top to bottom; the highest one fills the column."""
    steps = len(_LEVELS) * _ROWS
    step = min((duration_ms - low) * steps // max(high - low, 1), steps - 1)
    below, level = divmod(step, len(_LEVELS))
    return _EMPTY * (_ROWS - 1 - below) + _LEVELS[level : level + 1] + _FULL * below


def doctor(monitor: LatencyMonitor) -> bytes:
    """What the samples mean, and what to do about it."""
    if monitor.threshold_ms == 0 and not monitor.series:
        return (
            b"Latency is not being watched. CONFIG SET latency-monitor-threshold <milliseconds> "
            b"starts it; 100 is a good first value.\n"
        )
    if not monitor.series:
        return b"No event has reached latency-monitor-threshold (%d ms): nothing to report.\n" % (
            monitor.threshold_ms
        )
    return b"\n".join([_diagnosis(event, monitor.series[event]) for event in monitor.series])


def _diagnosis(event: bytes, series: LatencySeries) -> bytes:
    values = [duration_ms for _, duration_ms in series.samples]
    mean_ms = sum(values) // len(values)
    return b"%s: %d samples, mean %d ms, highest %d ms, all time high %d ms.\n  %s\n" % (
        event,
        len(values),
        mean_ms,
        max(values),
        series.max_ms,
        _ADVICE.get(event, _DISK_ADVICE).encode(),
    )
