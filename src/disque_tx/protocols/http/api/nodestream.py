"""The nodes that this one knows, for pages that show at once when one is lost, or when this one no
longer answers: an event each second, however little happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from disque_tx.errors import CommandError
from disque_tx.protocols.http.api.base.values import ROOT
from disque_tx.protocols.http.api.node import nodes
from disque_tx.protocols.http.server.eventstream import EventStream, OpenStreams
from disque_tx.protocols.http.server.exchange import Exchange, Reply
from disque_tx.protocols.http.server.routes import Route
from disque_tx.protocols.http.server.streaming import encoded

STREAMS_MAX: Final = 100
BEAT_S: Final = 1.0
_UNCHANGED: Final = "data: {}\n\n"
#: Members of a node whose changes are sent; the others change all the time.
_NOTED: Final = ("id", "address", "flags", "link", "unreached_by")


class NodeList:
    """What the node knows of the others, for all streams of a listener: asked for once a second,
    and when a connection came or went. ``readers``: get what has changed at once."""

    def __init__(self, readers: OpenStreams) -> None:
        self._readers = readers
        self.event = _UNCHANGED
        self._noted: list[list[Any]] = []
        self._asked_s = -BEAT_S
        self._connected: frozenset[str] = frozenset()
        self._asking: Deferred[dict[str, Any]] | None = None
        self._asked_by: Exchange | None = None

    def refresh(self, exchange: Exchange) -> None:
        """Ask with the rights of this client, unless that was done just now. While a node lets its
        clients wait, there is no answer."""
        now_s, connected = exchange.host.reactor.seconds(), exchange.host.view.connected()
        recent = now_s - self._asked_s < BEAT_S and connected == self._connected
        if recent or self._asking is not None:
            return
        self._asked_s, self._connected = now_s, connected
        self._asked_by = exchange
        asking = self._asking = Deferred.fromCoroutine(nodes(exchange))
        asking.addCallback(self._note).addErrback(_unanswered).addBoth(self._asked)

    def _note(self, answer: dict[str, Any]) -> None:
        noted = [[node.get(name) for name in _NOTED] for node in answer["nodes"]]
        if noted != self._noted:
            self._noted = noted
            self.event = f"data: {encoded(answer).decode()}\n\n"
            for stream in self._readers:
                stream.write_in(0)

    def _asked(self, _result: object) -> None:
        self._asking = self._asked_by = None

    def leave(self, exchange: Exchange) -> None:
        """This client is gone: what was asked with its rights is answered no more."""
        if self._asking is not None and self._asked_by is exchange:
            self._asking.cancel()


def _unanswered(failure: Failure) -> None:
    # The node refused, or the client left: the next stream asks again.
    failure.trap(CommandError, CancelledError)


class NodeEvents(EventStream):
    """One reader."""

    quiet_s = BEAT_S
    comment = "the nodes of this cluster"

    def __init__(
        self, exchange: Exchange, ended: Callable[[EventStream], None], shown: NodeList
    ) -> None:
        super().__init__(exchange, ended)
        self._exchange = exchange
        self._shown = shown
        self._sent = _UNCHANGED

    def begin(self) -> None:
        """Send the head, and the nodes as soon as they are there."""
        super().begin()
        self.write_in(0)

    def pending(self) -> str:
        """The nodes, if something has changed; and in any case that this one is there."""
        self._shown.refresh(self._exchange)
        event = self._shown.event
        if event is self._sent:
            return _UNCHANGED
        self._sent = event
        return event

    def end(self) -> None:
        """The reader is gone."""
        self._shown.leave(self._exchange)
        super().end()


class NodeStreams:
    """All readers of the nodes of a listener."""

    def __init__(self) -> None:
        self._open = OpenStreams(STREAMS_MAX)
        self._shown = NodeList(self._open)

    def open(self, exchange: Exchange) -> Reply | None:
        """Begin to send events; the request stays open."""
        return self._open.open(exchange, lambda ended: NodeEvents(exchange, ended, self._shown))


def node_stream_routes() -> list[Route]:
    """The stream of nodes."""
    return [
        Route(
            "GET", f"{ROOT}/nodes/events", NodeStreams().open, "The nodes that this one knows, as"
            " soon as there are others, or a connection came or went, with an event each second",
            content_type="text/event-stream", errors=(503,),
        ),
    ]  # fmt: skip
