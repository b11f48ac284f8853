"""A double of a broker of AMQP 0-9-1: one queue, confirms, consumers with a limit ahead."""

from __future__ import annotations

import struct
from typing import Any, Final

from tests.benchmarks.brokers import Broker, Speaker

_METHOD, _HEADER, _BODY, _HEARTBEAT = 1, 2, 3, 8
_GREETING: Final = b"AMQP\0\0\x09\x01"
#: What is answered to each method: class and method, and arguments.
_ANSWERS: Final = {
    (10, 11): (10, 30, struct.pack(">HIH", 2047, 131_072, 60)),
    (10, 40): (10, 41, b"\0"),
    (20, 10): (20, 11, b"\0\0\0\0"),
    (50, 10): (50, 11, b"\x02q0" + b"\0" * 8),
    (85, 10): (85, 11, b""),
    (60, 10): (60, 11, b""),
    (60, 20): (60, 21, b"\x04jobs"),
    (10, 50): (10, 51, b""),
}


class AmqpBroker(Broker):
    """``batch``: so many jobs are confirmed together, the last one before the others. ``denies``:
    nobody may log in. ``nacks``: no job is taken. ``declared``: the arguments of queues.
    ``modes``: the flags and delivery modes of jobs. ``ahead_max``: the most jobs that a consumer
    had at once."""

    def __init__(
        self,
        reactor: Any,
        piece: int,
        batch: int = 1,
        denies: bool = False,
        nacks: bool = False,
    ) -> None:
        super().__init__(piece)
        self._reactor = reactor
        self.batch = batch
        self.denies = denies
        self.nacks = nacks
        self.declared: list[bytes] = []
        self.modes: set[bytes] = set()
        self.ahead_max = 0
        self.consumers: list[AmqpSpeaker] = []

    def buildProtocol(self, addr: object) -> AmqpSpeaker:
        return AmqpSpeaker(self, self._reactor)

    def deliver(self) -> None:
        """Push jobs to consumers, in turn."""
        free = True
        while self.ready and free:
            free = False
            for consumer in self.consumers:
                if self.ready and len(consumer.ahead) < consumer.prefetch:
                    free = True
                    consumer.push(self.ready.popleft())
                    self.ahead_max = max(self.ahead_max, len(consumer.ahead))


class AmqpSpeaker(Speaker):
    """A connection of a client, with one channel. ``ahead``: the jobs that it has, by tag."""

    def __init__(self, broker: AmqpBroker, reactor: Any) -> None:
        super().__init__(broker, reactor)
        self._amqp = broker
        self._greeted = False
        self._published = 0
        self._unconfirmed: list[int] = []
        self._delivered = 0
        self.prefetch = 0
        self.ahead: dict[int, int] = {}

    def heard(self, data: bytes) -> int:
        if not self._greeted:
            self._greeted = len(data) >= len(_GREETING)
            if self._greeted:
                assert data.startswith(_GREETING)
                start = b"\0\x09" + struct.pack(">I", 0) + b"\0\0\0\x05PLAIN\0\0\0\x05en_US"
                self._method(10, 10, start, 0)
                return len(_GREETING)
            return 0
        if len(data) < 7:
            return 0
        kind, _, size = struct.unpack(">BHI", data[:7])
        if len(data) < size + 8:
            return 0
        assert data[size + 7] == 0xCE
        self._frame(kind, data[7 : size + 7])
        return int(size) + 8

    def push(self, number: int) -> None:
        """Deliver a job: its body in two frames, with a sign of life between them."""
        self._delivered += 1
        self.ahead[self._delivered] = number
        body = self._amqp.bodies[number]
        tag = struct.pack(">Q", self._delivered)
        self._method(60, 60, b"\x04jobs" + tag + b"\0" + b"\0" + b"\x02q0")
        self._say_frame(_HEADER, struct.pack(">HHQH", 60, 0, len(body), 0))
        half = len(body) // 2
        self._say_frame(_BODY, body[:half])
        self._say_frame(_HEARTBEAT, b"", 0)
        self._say_frame(_BODY, body[half:])

    def _say_frame(self, kind: int, payload: bytes, channel: int = 1) -> None:
        self.say(struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce")

    def _method(self, group: int, number: int, arguments: bytes, channel: int = 1) -> None:
        self._say_frame(_METHOD, struct.pack(">HH", group, number) + arguments, channel)

    def _frame(self, kind: int, payload: bytes) -> None:
        if kind == _HEADER:
            self._amqp.modes.add(payload[12:])
        elif kind == _BODY:
            self._taken(payload)
        elif kind == _METHOD:
            method = struct.unpack(">HH", payload[:4])
            self._asked(method, payload[4:])

    def _asked(self, method: tuple[int, int], arguments: bytes) -> None:
        if method == (10, 11) and self._amqp.denies:
            text = b"ACCESS_REFUSED"
            self._method(10, 50, struct.pack(">HB", 403, len(text)) + text + b"\0\0\0\0", 0)
            return
        if method in _ANSWERS:
            group, number, answer = _ANSWERS[method]
            self._method(group, number, answer, 0 if group == 10 else 1)
        if method == (50, 10):
            self._amqp.declared.append(arguments)
        elif method == (60, 10):
            (self.prefetch,) = struct.unpack(">H", arguments[4:6])
        elif method == (60, 20):
            self._amqp.consumers.append(self)
            self._amqp.deliver()
        elif method == (60, 80):
            tag, _ = struct.unpack(">QB", arguments)
            self._amqp.done.append(self.ahead.pop(tag))
            self._amqp.deliver()

    def _taken(self, body: bytes) -> None:
        self._published += 1
        if self._amqp.nacks:
            self._method(60, 120, struct.pack(">QB", self._published, 0))
            return
        self._amqp.add(body)
        self._unconfirmed.append(self._published)
        if len(self._unconfirmed) == self._amqp.batch:
            *others, last = self._unconfirmed
            self._unconfirmed.clear()
            self._method(60, 80, struct.pack(">QB", last, 0))
            if others:
                self._method(60, 80, struct.pack(">QB", others[-1], 1))
        self._amqp.deliver()
