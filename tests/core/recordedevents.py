"""A node's events, recorded for tests to examine."""

from __future__ import annotations

from disque_tx.messages.events import KIND_NAMES, REASON_NAMES, EventSink
from disque_tx.messages.records import JobRecord


class RecordedEvents(EventSink):
    """The events that were reported. ``lines``: kind, reason, number, elapsed time; ``ids``: the
    job of each; ``ttls_s``: the TTLs of new jobs."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[object, ...]] = []
        self.ids: list[bytes] = []
        self.ttls_s: list[int] = []

    def added(self, job: JobRecord, ttl_s: int, reason: int, client_id: int, queued: bool) -> None:
        self.ttls_s.append(ttl_s)
        self.lines.append(("added", REASON_NAMES[reason], client_id, -1))
        self.ids.append(job.id)
        if queued:
            self.lines.append(("queued", "", 0, -1))
            self.ids.append(job.id)

    def job(self, kind: int, job: JobRecord, reason: int, number: int, elapsed_ms: int) -> None:
        self.lines.append((KIND_NAMES[kind], REASON_NAMES[reason], number, elapsed_ms))
        self.ids.append(job.id)

    def noted(
        self, kind: int, job: JobRecord, reason: int, number: int, elapsed_ms: int, text: bytes
    ) -> None:
        self.job(kind, job, reason, number, elapsed_ms)
        if text:
            self.lines[-1] += (text,)

    def moved(self, kind: int, job: JobRecord, node_id: bytes) -> None:
        self.lines.append((KIND_NAMES[kind], node_id))
        self.ids.append(job.id)

    def paused(self, queue: bytes, flags: int) -> None:
        self.lines.append(("paused", queue, flags))

    def flushed(self, jobs: int) -> None:
        self.lines.append(("flushed", jobs))

    def take(self) -> list[tuple[object, ...]]:
        """The events since the last call."""
        lines, self.lines = self.lines, []
        return lines
