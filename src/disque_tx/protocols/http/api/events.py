"""Events of jobs as they happen, as server-sent events."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, Final

from disque_tx.plugins import KIND_NAMES, REASON_NAMES, IHost, JobEvent
from disque_tx.protocols.http.api.base.values import ROOT, text
from disque_tx.protocols.http.api.queues.queues import Pattern
from disque_tx.protocols.http.server.eventstream import EventStream, OpenStreams
from disque_tx.protocols.http.server.exchange import LIST_BYTES, Exchange, Parameter, Reply
from disque_tx.protocols.http.server.problems import bad_request
from disque_tx.protocols.http.server.routes import Route

STREAMS_MAX: Final = 20
#: Events that wait for a slow reader; beyond that they are dropped and counted.
WAITING_MAX: Final = 1_000
_FLUSH_S: Final = 0.1


class JobEvents(EventStream):
    """One reader of events. ``kinds``: of ``IHost.watch``. ``pattern``: for names of queues."""

    comment = "events of this daemon"

    def __init__(
        self,
        exchange: Exchange,
        ended: Callable[[EventStream], None],
        kinds: Collection[int],
        pattern: str,
    ) -> None:
        super().__init__(exchange, ended)
        self._kinds = kinds
        self._pattern = pattern
        self._waiting: deque[JobEvent] = deque()
        self._dropped = 0
        self._watch_ends: Callable[[], None] = lambda: None
        self._follow_ends: Callable[[], None] = lambda: None

    def begin(self) -> None:
        """Send the head and watch."""
        super().begin()
        wants = None if self._pattern == "*" else Pattern(self._pattern).matches
        self._watch_ends = self._host.watch(self._happened, self._kinds, wants)
        if self._host.processes is not None:
            follow = self._host.processes.follow
            self._follow_ends = follow(self._kinds, self._pattern, self._happened_elsewhere)

    def _happened(self, event: JobEvent) -> None:
        if len(self._waiting) >= WAITING_MAX:
            self._dropped += 1
            return
        if not self._waiting:
            self.write_in(_FLUSH_S)
        self._waiting.append(event)

    def _happened_elsewhere(self, events: list[JobEvent], dropped: int) -> None:
        """At another process of the daemon."""
        self._dropped += dropped
        for event in events:
            self._happened(event)

    def pending(self) -> str:
        """The events that wait, and how many were dropped."""
        lines = [_line(event) for event in self._waiting]
        self._waiting.clear()
        if self._dropped:
            lines.append(f'event: dropped\ndata: {{"count":{self._dropped}}}\n\n')
            self._dropped = 0
        return "".join(lines)

    def end(self) -> None:
        """The reader is gone."""
        self._watch_ends()
        self._follow_ends()
        super().end()


def _line(event: JobEvent) -> str:
    values: dict[str, Any] = {
        "at_us": str(event.wall_us),
        "kind": KIND_NAMES[event.kind],
        "queue": text(event.queue),
        "id": text(event.job_id),
    }
    if event.reason:
        values["reason"] = REASON_NAMES[event.reason]
    if event.elapsed_ms >= 0:
        values["elapsed_ms"] = event.elapsed_ms
    return f"data: {json.dumps(values, separators=(',', ':'), allow_nan=False)}\n\n"


class Streams:
    """All readers of events of a listener."""

    def __init__(self) -> None:
        self._open = OpenStreams(STREAMS_MAX)

    def open(self, exchange: Exchange) -> Reply | None:
        """Begin to send events; the request stays open."""
        kinds = {kind for kind in (exchange.word("kinds") or "").split(",") if kind}
        unknown = sorted(kinds - set(KIND_NAMES[1:]))
        if unknown:
            raise bad_request(f"There is no kind of event {unknown[0][:50]!r}.")
        numbers = {KIND_NAMES.index(kind) for kind in kinds}
        pattern = exchange.word("queue") or "*"
        return self._open.open(exchange, lambda ended: JobEvents(exchange, ended, numbers, pattern))


def event_routes(host: IHost) -> list[Route]:
    """The stream of events."""
    return [
        Route(
            "GET", f"{ROOT}/events", Streams().open, "Events of jobs as they happen",
            (
                Parameter("queue", "A glob pattern for names", default="*"),
                Parameter("kinds", "Kinds of events, separated by commas", longest=LIST_BYTES),
            ),
            content_type="text/event-stream", errors=(503,),
        ),
    ]  # fmt: skip
