"""Histograms of how long jobs waited and how long work took, from the node's events."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from disque_tx.events import ACKED, DELIVERED, FAST_ACKED
from disque_tx.services.interfaces import IHost, JobEvent

#: Upper bounds in seconds.
BOUNDS: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    *(60.0, 300.0, 1800.0, 7200.0),
)


class Histogram:
    """Counts by bound. ``sum_ms``: of all durations."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self.sum_ms = 0

    def add(self, elapsed_ms: int) -> None:
        """One more."""
        self._counts[bisect_left(BOUNDS, elapsed_ms / 1000)] += 1
        self.sum_ms += elapsed_ms

    def buckets(self) -> list[tuple[str, float]]:
        """Bound and number of durations up to it, as Prometheus has them."""
        buckets: list[tuple[str, float]] = []
        total = 0
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), self._counts, strict=True):
            total += count
            buckets.append((bound, float(total)))
        return buckets


class Durations:
    """The histograms of one node. They begin with the first question for metrics: a node that
    nobody asks does not spend time on them.

    ``wait``: from the time a job was queued, which is after its DELAY, to its delivery. ``run``:
    from delivery to acknowledgement.
    """

    def __init__(self, host: IHost) -> None:
        self._host = host
        self._begun = False
        self.wait = Histogram()
        self.run = Histogram()

    def begin(self) -> None:
        """Watch the node's events, if that is not done yet."""
        if not self._begun:
            self._begun = True
            self._host.watch(self._happened)

    def _happened(self, event: JobEvent) -> None:
        if event.elapsed_ms < 0:
            return
        if event.kind == DELIVERED:
            self.wait.add(event.elapsed_ms)
        elif event.kind in (ACKED, FAST_ACKED):
            self.run.add(event.elapsed_ms)
