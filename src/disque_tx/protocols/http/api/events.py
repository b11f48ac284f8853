"""Events of jobs as they happen, as server-sent events."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, Final

from twisted.internet.interfaces import IDelayedCall, IPushProducer
from zope.interface import implementer

from disque_tx.plugins import KIND_NAMES, REASON_NAMES, IHost, JobEvent
from disque_tx.protocols.http.api.base.values import ROOT, text
from disque_tx.protocols.http.api.queues.queues import Pattern
from disque_tx.protocols.http.server.exchange import LIST_BYTES, Exchange, Parameter, Reply
from disque_tx.protocols.http.server.problems import Problem, bad_request
from disque_tx.protocols.http.server.routes import Route

_CONTENT_TYPE: Final = "text/event-stream; charset=utf-8"
STREAMS_MAX: Final = 20
#: Events that wait for a slow reader; beyond that they are dropped and counted.
WAITING_MAX: Final = 1_000
_FLUSH_S: Final = 0.1
_KEEP_ALIVE_S: Final = 15.0
#: A reader that takes nothing for so long is disconnected.
STALLED_S: Final = 30.0


@implementer(IPushProducer)
class Stream:
    """One reader. ``kinds``: of ``IHost.watch``. ``pattern``: for names of queues. ``ended``:
    called once, with this stream."""

    def __init__(
        self,
        exchange: Exchange,
        kinds: Collection[int],
        pattern: str,
        ended: Callable[[Stream], None],
    ) -> None:
        self._host = exchange.host
        self._request = exchange.request
        self._may_go_on = exchange.may_go_on
        self._connection = exchange.connection
        self._kinds = kinds
        self._pattern = pattern
        self._ended = ended
        self._waiting: deque[JobEvent] = deque()
        self._dropped = 0
        self._paused = False
        self._call: IDelayedCall | None = None
        self._watch_ends: Callable[[], None] = lambda: None
        self._follow_ends: Callable[[], None] = lambda: None

    def begin(self) -> None:
        """Send the head and watch."""
        request = self._request
        request.begin(Reply(content_type=_CONTENT_TYPE))
        request.notifyFinish().addBoth(lambda _: self._end())
        request.registerProducer(self, True)
        self._write(b": events of this daemon\n\n")
        wants = None if self._pattern == "*" else Pattern(self._pattern).matches
        self._watch_ends = self._host.watch(self._happened, self._kinds, wants)
        if self._host.processes is not None:
            follow = self._host.processes.follow
            self._follow_ends = follow(self._kinds, self._pattern, self._happened_elsewhere)
        self._again(_KEEP_ALIVE_S)

    def _happened(self, event: JobEvent) -> None:
        if len(self._waiting) >= WAITING_MAX:
            self._dropped += 1
            return
        if not self._waiting and not self._paused:
            self._again(_FLUSH_S)
        self._waiting.append(event)

    def _happened_elsewhere(self, events: list[JobEvent], dropped: int) -> None:
        """At another process of the daemon."""
        self._dropped += dropped
        for event in events:
            self._happened(event)

    def _again(self, delay_s: float) -> None:
        if self._call is not None and self._call.active():
            self._call.cancel()
        self._call = self._host.reactor.callLater(delay_s, self._flush)

    def _flush(self) -> None:
        if self._paused:
            self._request.channel.transport.abortConnection()
            return
        if not self._may_go_on():  # it logged out, or the password has changed
            self._request.unregisterProducer()
            self._request.finish()
            return
        lines = [_line(event) for event in self._waiting]
        self._waiting.clear()
        if self._dropped:
            lines.append(f'event: dropped\ndata: {{"count":{self._dropped}}}\n\n')
            self._dropped = 0
        self._again(_KEEP_ALIVE_S)
        self._write("".join(lines or [": nothing happened\n\n"]).encode())

    def _write(self, data: bytes) -> None:
        self._connection.sent(len(data))
        self._request.write(data)

    def _end(self) -> None:
        self._watch_ends()
        self._follow_ends()
        if self._call is not None and self._call.active():
            self._call.cancel()
        self._ended(self)

    # -- IPushProducer -----------------------------------------------------------------------

    def pauseProducing(self) -> None:
        """The reader is slow."""
        self._paused = True
        self._again(STALLED_S)

    def resumeProducing(self) -> None:
        """The reader takes bytes again."""
        if self._paused:
            self._paused = False
            self._again(_FLUSH_S)

    def stopProducing(self) -> None:
        """The connection is gone; the end of the request does the work."""


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
    """All readers of a listener."""

    def __init__(self) -> None:
        self._open: set[Stream] = set()

    def open(self, exchange: Exchange) -> Reply | None:
        """Begin to send events; the request stays open."""
        kinds = {kind for kind in (exchange.word("kinds") or "").split(",") if kind}
        unknown = sorted(kinds - set(KIND_NAMES[1:]))
        if unknown:
            raise bad_request(f"There is no kind of event {unknown[0][:50]!r}.")
        numbers = {KIND_NAMES.index(kind) for kind in kinds}
        pattern = exchange.word("queue") or "*"
        if len(self._open) >= STREAMS_MAX:
            raise Problem(503, "STREAMS", f"At most {STREAMS_MAX} streams of events are open.")

        if exchange.request.method == b"HEAD":
            return Reply(content_type=_CONTENT_TYPE)
        stream = Stream(exchange, numbers, pattern, self._open.discard)
        self._open.add(stream)
        stream.begin()
        return None


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
