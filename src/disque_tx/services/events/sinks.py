"""Where the events of a node go: to nothing, to one sink, or to several."""

from __future__ import annotations

from mypy_extensions import i64

from disque_tx.core.node import Node
from disque_tx.messages.events import EventSink
from disque_tx.messages.records import JobRecord
from disque_tx.services.events.watching import Watch, Watchers


class EventSinks:
    """The sinks of one node. Without any, an event costs the node nothing."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._sinks: tuple[EventSink, ...] = ()
        self._watchers = Watchers()

    def add(self, sink: EventSink) -> None:
        """Report events to this one, too."""
        sink.wall_us = self._node.wall_us
        self._change((*self._sinks, sink))

    def remove(self, sink: EventSink) -> None:
        """Report nothing to it any more; it may be gone already."""
        self._change(tuple(other for other in self._sinks if other is not sink))

    def watch(self, watch: Watch) -> None:
        """Report events to this watcher, too."""
        watchers = self._watchers
        if not watchers.watches:
            self.add(watchers)
        watchers.change([*watchers.watches, watch])

    def unwatch(self, watch: Watch) -> None:
        """Report nothing to it any more; it may be gone already."""
        watch.ended = True
        watchers = self._watchers
        watchers.change([other for other in watchers.watches if other is not watch])
        if not watchers.watches:
            self.remove(watchers)

    def turn_ended(self) -> None:
        """Hand over what watchers want of this turn."""
        self._watchers.hand_over()

    def _change(self, sinks: tuple[EventSink, ...]) -> None:
        self._sinks = sinks
        outbox = self._node.outbox
        if len(sinks) > 1:
            outbox.events = _Several(sinks)
            outbox.events.wall_us = self._node.wall_us
        else:
            outbox.events = sinks[0] if sinks else None


class _Several(EventSink):
    """Reports everything to each of several sinks."""

    def __init__(self, sinks: tuple[EventSink, ...]) -> None:
        super().__init__()
        self._sinks = sinks

    def added(self, job: JobRecord, ttl_s: i64, reason: i64, client_id: i64, queued: bool) -> None:
        for sink in self._sinks:
            sink.wall_us = self.wall_us
            sink.added(job, ttl_s, reason, client_id, queued)

    def job(self, kind: i64, job: JobRecord, reason: i64, number: i64, elapsed_ms: i64) -> None:
        for sink in self._sinks:
            sink.wall_us = self.wall_us
            sink.job(kind, job, reason, number, elapsed_ms)

    def noted(
        self, kind: i64, job: JobRecord, reason: i64, number: i64, elapsed_ms: i64, text: bytes
    ) -> None:
        for sink in self._sinks:
            sink.wall_us = self.wall_us
            sink.noted(kind, job, reason, number, elapsed_ms, text)

    def moved(self, kind: i64, job: JobRecord, node_id: bytes) -> None:
        for sink in self._sinks:
            sink.wall_us = self.wall_us
            sink.moved(kind, job, node_id)

    def paused(self, queue: bytes, flags: i64) -> None:
        for sink in self._sinks:
            sink.wall_us = self.wall_us
            sink.paused(queue, flags)

    def flushed(self, jobs: i64) -> None:
        for sink in self._sinks:
            sink.wall_us = self.wall_us
            sink.flushed(jobs)
