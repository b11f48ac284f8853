"""Server-sent events: an answer that stays open, and what is written to it as it happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, Final

from twisted.internet.interfaces import IDelayedCall, IPushProducer
from zope.interface import implementer

from disque_tx.protocols.http.server.exchange import Exchange, Reply
from disque_tx.protocols.http.server.problems import Problem

CONTENT_TYPE: Final = "text/event-stream; charset=utf-8"
#: A reader that takes nothing for so long is disconnected.
STALLED_S: Final = 30.0


@implementer(IPushProducer)
class EventStream:
    """One reader. ``ended``: called once, with this stream."""

    #: For how long nothing is written at most.
    quiet_s: float = 15.0
    #: What a person sees who opens the stream.
    comment: ClassVar[str]

    def __init__(self, exchange: Exchange, ended: Callable[[EventStream], None]) -> None:
        self._host = exchange.host
        self._request = exchange.request
        self._may_go_on = exchange.may_go_on
        self._connection = exchange.connection
        self._ended = ended
        self._paused = False
        self._call: IDelayedCall | None = None

    def begin(self) -> None:
        """Send the head."""
        request = self._request
        request.begin(Reply(content_type=CONTENT_TYPE))
        request.notifyFinish().addBoth(lambda _: self.end())
        request.registerProducer(self, True)
        self._write(f": {self.comment}\n\n")
        self.write_in(self.quiet_s)

    def pending(self) -> str:
        """What is to be written now."""
        raise NotImplementedError

    def write_in(self, delay_s: float) -> None:
        """Write then what is pending, unless the reader takes nothing."""
        if self._paused:
            return
        self._cancel()
        self._call = self._host.reactor.callLater(delay_s, self._write_pending)

    def _write_pending(self) -> None:
        if not self._may_go_on():  # it logged out, or the password has changed
            self._request.unregisterProducer()
            self._request.finish()
            return
        text = self.pending()
        self.write_in(self.quiet_s)
        self._write(text or ": nothing happened\n\n")

    def _write(self, text: str) -> None:
        data = text.encode()
        self._connection.sent(len(data))
        self._request.write(data)

    def _cancel(self) -> None:
        if self._call is not None and self._call.active():
            self._call.cancel()

    def end(self) -> None:
        """The reader is gone."""
        self._cancel()
        self._ended(self)

    # -- IPushProducer -----------------------------------------------------------------------

    def pauseProducing(self) -> None:
        """The reader is slow."""
        self._paused = True
        self._cancel()
        transport = self._request.channel.transport
        self._call = self._host.reactor.callLater(STALLED_S, transport.abortConnection)

    def resumeProducing(self) -> None:
        """The reader takes bytes again."""
        if self._paused:
            self._paused = False
            self.write_in(0)

    def stopProducing(self) -> None:
        """The connection is gone; the end of the request does the work."""


class OpenStreams:
    """The streams of one kind that a listener has open, ``most`` of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: set[EventStream] = set()

    def __iter__(self) -> Iterator[EventStream]:
        return iter(self._open)

    def open(
        self, exchange: Exchange, make: Callable[[Callable[[EventStream], None]], EventStream]
    ) -> Reply | None:
        """Begin the stream that ``make`` returns, given what to call at its end; the request stays
        open. HEAD opens none.

        :raises Problem: if there are as many as may be.
        """
        if len(self._open) >= self._most:
            raise Problem(503, "STREAMS", f"At most {self._most} streams of this kind are open.")
        if exchange.request.method == b"HEAD":
            return Reply(content_type=CONTENT_TYPE)
        stream = make(self._open.discard)
        self._open.add(stream)
        stream.begin()
        return None
