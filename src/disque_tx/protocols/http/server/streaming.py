"""Answers that are written piece by piece, as the client takes them.

A short one is sent as a whole. Of a long one there is no more in memory than a slice, besides what
the transport has not sent.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterable
from typing import Any, Final, Protocol

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IPushProducer
from zope.interface import implementer

from disque_tx.protocols.http.server.exchange import Exchange, Reply, exact
from disque_tx.protocols.http.server.slices import SLICE_BYTES

#: A client that takes nothing for so long is disconnected.
STALLED_S: Final = 30.0


class Answering(Protocol):
    """A request of twisted.web that is being answered."""

    channel: Any
    method: bytes

    def answer(self, reply: Reply) -> None:
        """Send the whole answer."""

    def begin(self, reply: Reply) -> None:
        """Set status and headers."""

    def write(self, data: bytes) -> object:
        """Send a piece of the body."""

    def finish(self) -> object:
        """The answer is complete."""

    def registerProducer(self, producer: Any, streaming: bool) -> object:
        """Pause and resume ``producer`` as the client takes bytes."""

    def unregisterProducer(self) -> object:
        """The producer is done."""


@implementer(IPushProducer)
class Flow:
    """Whether the client takes what is written."""

    def __init__(self, request: Answering, exchange: Exchange) -> None:
        self._transport = request.channel.transport
        self._reactor = exchange.host.reactor
        self._paused = False
        self._resumed: Deferred[None] | None = None
        self._call: IDelayedCall | None = None

    async def wait(self) -> None:
        """Until the client takes more."""
        if not self._paused:
            return
        self._resumed = Deferred()
        self._call = self._reactor.callLater(STALLED_S, self._transport.abortConnection)
        try:
            await self._resumed
        finally:
            self._resumed = None
            if self._call.active():
                self._call.cancel()

    def pauseProducing(self) -> None:
        """The socket takes no bytes at present."""
        self._paused = True

    def resumeProducing(self) -> None:
        """The socket takes bytes again."""
        self._paused = False
        if self._resumed is not None:
            self._resumed.callback(None)

    def stopProducing(self) -> None:
        """The connection is gone, and the request is told."""


async def send(request: Answering, exchange: Exchange, reply: Reply) -> None:
    """Send an answer whose body are pieces."""
    pieces = reply.body
    assert isinstance(pieces, AsyncGenerator)
    try:
        data, more = await _slice(pieces)
        if not more:
            request.answer(attrs.evolve(reply, body=data))
            return
        request.begin(reply)
        flow = Flow(request, exchange)
        request.registerProducer(flow, True)
        while True:
            exchange.connection.sent(len(data))
            request.write(data)
            if not more or request.method == b"HEAD":
                break
            await exchange.slices.turn()
            await flow.wait()
            data, more = await _slice(pieces)
        request.unregisterProducer()
        request.finish()
    finally:
        await pieces.aclose()


async def _slice(pieces: AsyncGenerator[bytes, None]) -> tuple[bytes, bool]:
    """Pieces that fit into a slice, as one, and whether there may be more."""
    found: list[bytes] = []
    size = 0
    async for piece in pieces:
        found.append(piece)
        size += len(piece)
        if size >= SLICE_BYTES:
            return b"".join(found), True
    return b"".join(found), False


def encoded(value: Any) -> bytes:
    """A value as JSON."""
    return json.dumps(exact(value), separators=(",", ":")).encode()


async def listing(
    name: str, rows: AsyncIterable[dict[str, Any]], after: dict[str, Any]
) -> AsyncGenerator[bytes, None]:
    """An object in JSON with the rows as the array ``name``, and then these members, which may be
    changed while the rows are made."""
    before = b'{"%s":[' % name.encode()
    async for row in rows:
        yield before + encoded(row)
        before = b","
    if before != b",":
        yield before
    yield b"]," + encoded(after)[1:] if after else b"]}"
