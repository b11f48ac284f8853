"""How long jobs waited and how long work took: histograms that are counted with every job."""

from __future__ import annotations

from mypy_extensions import i64

from disque_tx.core.statistics.waits import Histogram
from disque_tx.messages.events import ACKED, DELIVERED, FAST_ACKED, EventSink
from disque_tx.messages.records import JobRecord


class DurationSink(EventSink):
    """Counts the events of one node, in compiled code: this runs for every job.

    ``wait``: from the time a job was queued, which is after its DELAY, to its delivery. ``run``:
    from delivery to acknowledgement.
    """

    def __init__(self) -> None:
        super().__init__()
        self.wait = Histogram()
        self.run = Histogram()

    def added(self, job: JobRecord, ttl_s: i64, reason: i64, client_id: i64, queued: bool) -> None:
        """Ignored: only deliveries and acknowledgements have a duration."""

    def job(self, kind: i64, job: JobRecord, reason: i64, number: i64, elapsed_ms: i64) -> None:
        """Count deliveries and acknowledgements whose duration is known here."""
        if elapsed_ms < 0:
            return
        if kind == DELIVERED:
            self.wait.add(elapsed_ms)
        elif kind in (ACKED, FAST_ACKED):
            self.run.add(elapsed_ms)

    def moved(self, kind: i64, job: JobRecord, node_id: bytes) -> None:
        """Ignored: only deliveries and acknowledgements have a duration."""

    def paused(self, queue: bytes, flags: i64) -> None:
        """Ignored: only deliveries and acknowledgements have a duration."""

    def flushed(self, jobs: i64) -> None:
        """Ignored: only deliveries and acknowledgements have a duration."""
