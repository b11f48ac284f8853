"""A double of NATS with JetStream: one stream, one consumer that jobs are pulled from."""

from __future__ import annotations

from collections import deque
from typing import Any

import attrs

from tests.benchmarks.brokers import Broker, Speaker

_NONE_IN_TIME = b"NATS/1.0 408 Request Timeout\r\n\r\n"


@attrs.define
class _Pull:
    """``left``: how many jobs may still be sent for it."""

    speaker: NatsSpeaker
    inbox: bytes
    left: int


class NatsBroker(Broker):
    """``impatient``: how many pulls are answered with a status instead of jobs. ``refuses``: jobs
    are answered with an error. ``pongs``: of clients, each to a PING before a job is confirmed."""

    def __init__(self, reactor: Any, piece: int, impatient: int = 0, refuses: bool = False) -> None:
        super().__init__(piece)
        self._reactor = reactor
        self.impatient = impatient
        self.refuses = refuses
        self.pongs = 0
        self.streams: list[bytes] = []
        self.subscribed: dict[bytes, tuple[NatsSpeaker, bytes]] = {}
        self.pulls: deque[_Pull] = deque()

    def buildProtocol(self, addr: object) -> NatsSpeaker:
        return NatsSpeaker(self, self._reactor)

    def deliver(self) -> None:
        """Send jobs to those who asked."""
        while self.ready and self.pulls:
            pull, number = self.pulls[0], self.ready.popleft()
            _, sid = self.subscribed[pull.inbox]
            body = self.bodies[number]
            head = b"MSG jobs.q0 %s $JS.ACK.%d %d\r\n" % (sid, number, len(body))
            pull.speaker.say(head + body + b"\r\n")
            pull.left -= 1
            if not pull.left:
                self.pulls.popleft()


class NatsSpeaker(Speaker):
    """A connection of a client."""

    def __init__(self, broker: NatsBroker, reactor: Any) -> None:
        super().__init__(broker, reactor)
        self._nats = broker

    def connectionMade(self) -> None:
        super().connectionMade()
        self.say(b'INFO {"server_name":"double"}\r\n')

    def heard(self, data: bytes) -> int:
        line, end, rest = data.partition(b"\r\n")
        if not end:
            return 0
        words = line.split()
        used = len(line) + 2
        if words[0] == b"PUB":
            size = int(words[-1])
            if len(rest) < size + 2:
                return 0
            self._published(words[1], words[2] if len(words) == 4 else b"", rest[:size])
            used += size + 2
        elif words[0] == b"SUB":
            self._nats.subscribed[words[1]] = (self, words[2])
        elif words[0] == b"PING":
            self.say(b"PONG\r\n")
        elif words[0] == b"PONG":
            self._nats.pongs += 1
        return used

    def _answer(self, inbox: bytes, data: bytes) -> None:
        _, sid = self._nats.subscribed[inbox]
        self.say(b"MSG %s %s %d\r\n%s\r\n" % (inbox, sid, len(data), data))

    def _published(self, subject: bytes, inbox: bytes, data: bytes) -> None:
        nats = self._nats
        if subject.startswith(b"$JS.ACK."):
            nats.done.append(int(subject.rpartition(b".")[2]))
        elif subject.startswith(b"$JS.API.CONSUMER.MSG.NEXT."):
            self._pulled(inbox, int(data.split(b'"batch":')[1].split(b",")[0]))
        elif subject.startswith(b"$JS.API."):
            nats.streams.append(data)
            self._answer(inbox, b"{}")
        elif nats.refuses:
            self._answer(inbox, b'{"error":{"code":503,"description":"no space"}}')
        else:
            number = nats.add(data)
            self.say(b"PING\r\n")
            self._answer(inbox, b'{"stream":"q0","seq":%d}' % (number + 1))
            nats.deliver()

    def _pulled(self, inbox: bytes, batch: int) -> None:
        if self._nats.impatient:
            self._nats.impatient -= 1
            _, sid = self._nats.subscribed[inbox]
            sizes = b"%d %d" % (len(_NONE_IN_TIME), len(_NONE_IN_TIME))
            self.say(b"HMSG %s %s %s\r\n%s\r\n" % (inbox, sid, sizes, _NONE_IN_TIME))
            return
        self._nats.pulls.append(_Pull(self, inbox, batch))
        self._nats.deliver()
