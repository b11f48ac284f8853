"""Events of jobs at other processes of a daemon."""

from __future__ import annotations

import json

from disque_tx.messages.events import KIND_NAMES
from disque_tx.plugins.values import JobEvent
from disque_tx.services.processes.channel import PACKET_BYTES_MAX, Message
from disque_tx.services.processes.following import (
    FLUSH_S,
    FORGET_S,
    RENEW_S,
    WAITING_MAX,
    Followed,
    Following,
)
from tests.services.rootbench import RootCase

_ADDED = KIND_NAMES.index("added")


class FollowingTests(RootCase):
    """Process 1 follows what happens at process 2, whose node this is."""

    def setUp(self) -> None:
        super().setUp()
        self.root = self.started()
        self.to_parent: list[Message] = []
        self.following = Following(self.reactor, self.asks)
        self.followed = Followed(self.reactor, self.root.plugin_host, self.answers)
        self.alive = True
        self.events: list[JobEvent] = []
        self.dropped = 0

    def asks(self, message: Message) -> None:
        """The parent passes it on to the other process."""
        kind, *rest = message
        self.assertEqual("follow", kind)
        if self.alive:
            self.followed.followed(1, *rest)

    def answers(self, message: Message) -> None:
        """The parent passes it on to the process that follows."""
        self.to_parent.append(message)
        kind, process, *rest = message
        self.assertEqual(("events", 1), (kind, process))
        self.following.happened(*rest)

    def tell(self, events: list[JobEvent], dropped: int) -> None:
        """The stream."""
        self.events += events
        self.dropped += dropped

    def add(self, queue: bytes) -> bytes:
        """A job."""
        status = self.successResultOf(self.root.node_service.call(b"ADDJOB", queue, b"b", b"0"))
        return bytes(status.text)

    def test_events(self) -> None:
        """A stream gets what it wants of the other process, in one message for many, and nothing
        when it has ended."""
        end = self.following.follow([_ADDED], "q*", self.tell)
        ids = [self.add(b"q\xff"), self.add(b"other"), self.add(b"q")]
        self.reactor.advance(FLUSH_S)
        self.assertEqual([ids[0], ids[2]], [event.job_id for event in self.events])
        self.assertEqual((b"q\xff", _ADDED), (self.events[0].queue, self.events[0].kind))
        self.assertEqual((1, 0), (len(self.to_parent), self.dropped))
        for _ in range(5):
            self.reactor.advance(RENEW_S)
        self.add(b"q")
        self.reactor.advance(FLUSH_S)
        self.assertEqual(3, len(self.events))
        end()
        self.add(b"q")
        self.reactor.advance(FLUSH_S)
        self.assertEqual(3, len(self.events))

    def test_forgotten(self) -> None:
        """A process that follows and is gone costs the others nothing for long."""
        self.following.follow([], "*", self.tell)
        self.alive = False
        for _ in range(4):
            self.reactor.advance(FORGET_S / 3)
        self.add(b"q")
        self.reactor.advance(FLUSH_S)
        self.assertEqual([], self.to_parent)

    def test_again(self) -> None:
        """One that was started again and follows something else gets that."""
        self.following.follow([], "q", self.tell)
        self.following = Following(self.reactor, self.asks)
        self.following.follow([_ADDED], "r", self.tell)
        self.add(b"q")
        job_id = self.add(b"r")
        self.reactor.advance(FLUSH_S)
        self.assertEqual([job_id], [event.job_id for event in self.events])

    def test_many(self) -> None:
        """Of more than fit the rest is dropped and counted, and no message is too long for the
        channel, whatever the queues are called."""
        self.following.follow([_ADDED], "*", self.tell)
        for _ in range(WAITING_MAX + 7):
            self.add(b"\x01" * 1_000)
        self.reactor.advance(FLUSH_S)
        self.assertEqual((WAITING_MAX, 7), (len(self.events), self.dropped))
        for message in self.to_parent:
            self.assertLess(len(json.dumps(message)), PACKET_BYTES_MAX)
