"""What doubles of other people's servers have in common: one queue in memory, which counts."""

from __future__ import annotations

from collections import deque
from typing import Any

from twisted.internet.protocol import Protocol, ServerFactory


class Broker(ServerFactory):
    """A queue, and what became of its jobs, which are numbered from 0. ``piece``: how many bytes
    its connections send at a time, so that messages arrive in parts."""

    def __init__(self, piece: int) -> None:
        self.piece = piece
        self.ready: deque[int] = deque()
        self.bodies: list[bytes] = []
        self.done: list[int] = []

    def add(self, body: bytes) -> int:
        """Queue a job; returns its number."""
        self.bodies.append(body)
        self.ready.append(len(self.bodies) - 1)
        return len(self.bodies) - 1


class Speaker(Protocol):
    """A connection that sends in pieces, one in each turn of the reactor."""

    def __init__(self, broker: Broker, reactor: Any) -> None:
        self._broker = broker
        self._reactor = reactor
        self._unsent = bytearray()
        self.unread = b""

    def say(self, data: bytes) -> None:
        """Send it, after all that was said before."""
        if not self._unsent:
            self._reactor.callLater(0, self._send)
        self._unsent += data

    def _send(self) -> None:
        if self.transport is not None:
            self.transport.write(bytes(self._unsent[: self._broker.piece]))
        del self._unsent[: self._broker.piece]
        if self._unsent:
            self._reactor.callLater(0, self._send)

    def connectionMade(self) -> None:
        assert self.transport is not None
        self.transport.setTcpNoDelay(True)  # type: ignore[attr-defined]

    def connectionLost(self, reason: Any = None) -> None:
        self._unsent.clear()

    def dataReceived(self, data: bytes) -> None:
        self.unread += data
        while used := self.heard(self.unread):
            self.unread = self.unread[used:]

    def heard(self, data: bytes) -> int:
        """Do what the first request in the data asks for; its length, or 0 if it is not whole."""
        raise NotImplementedError
