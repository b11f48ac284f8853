"""Protocols, producers and turns that record what happens to them."""

from __future__ import annotations

from twisted.internet.interfaces import IAddress, IPushProducer
from twisted.internet.protocol import Factory, Protocol
from twisted.python.failure import Failure
from zope.interface import implementer


class Recorder(Protocol):
    """Records its events. ``error``: raised by the next ``dataReceived``."""

    def __init__(self) -> None:
        self.received = b""
        self.lost: list[type[BaseException] | None] = []
        self.error: Exception | None = None

    def dataReceived(self, data: bytes) -> None:
        if self.error is not None:
            raise self.error
        self.received += data

    def connectionLost(self, reason: Failure | None = None) -> None:
        self.lost.append(reason.type if reason is not None else None)


class Refusing(Factory):
    """Refuses every connection."""

    def buildProtocol(self, addr: IAddress | None) -> None:
        return None


@implementer(IPushProducer)
class Producer:
    """Records calls of its methods."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def pauseProducing(self) -> None:
        self.asked.append("pause")

    def resumeProducing(self) -> None:
        self.asked.append("resume")

    def stopProducing(self) -> None:
        self.asked.append("stop")


class StillLog:
    """A log that has nothing to do. ``error``: raised by the next tick."""

    def __init__(self) -> None:
        self.loading = False
        self.write_error = ""
        self.ticks = 0
        self.error: Exception | None = None

    def tick(self) -> None:
        self.ticks += 1
        error, self.error = self.error, None
        if error is not None:
            raise error
