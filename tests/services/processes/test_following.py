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

    def test_renewed(self) -> None:
        """The parent is told of an open stream every second, once, and of none that has ended."""
        asked: list[Message] = []
        following = Following(self.reactor, asked.append)
        ends = [following.follow([2, 1], "q", self.tell), following.follow([], "r", self.tell)]
        both = [["follow", 1, [1, 2], "q"], ["follow", 2, [], "r"]]
        self.assertEqual(both, asked)
        self.reactor.advance(RENEW_S)
        self.assertEqual(both * 2, asked)
        ends[0]()
        ends[0]()
        self.reactor.advance(RENEW_S)
        self.assertEqual([*both * 2, both[1]], asked)
        ends[1]()
        for _ in range(3):
            self.reactor.advance(RENEW_S)
        self.assertEqual([*both * 2, both[1]], asked)
        following.follow([], "s", self.tell)
        self.reactor.advance(RENEW_S)
        self.assertEqual([["follow", 3, [], "s"]] * 2, asked[5:])

    def test_kept(self) -> None:
        """A stream that is renewed goes on for as long as that, without events in between, and ends
        three seconds after the last time."""
        self.followed.followed(1, 1, [_ADDED], "*")
        for _ in range(4):
            self.reactor.advance(FORGET_S - 0.5)
            self.followed.followed(1, 1, [_ADDED], "*")
        self.add(b"q")
        self.reactor.advance(FLUSH_S)
        self.assertEqual(1, len(self.to_parent))
        self.reactor.advance(FORGET_S - FLUSH_S)
        self.add(b"q")
        self.reactor.advance(FLUSH_S)
        self.assertEqual(1, len(self.to_parent))

    def test_row(self) -> None:
        """An event has all its parts after its way through the parent."""
        self.following.follow([_ADDED], "*", self.tell)
        self.following.follow([], "other", self.tell)
        job_id = self.add(b"q\xff")
        self.reactor.advance(FLUSH_S)
        (row,) = self.to_parent[0][4]
        (event,) = self.events
        self.assertEqual([_ADDED, event.wall_us, "q\xff", job_id.decode()], row[:4])
        self.assertEqual((event.reason, event.elapsed_ms), tuple(row[4:]))
        self.assertEqual(["events", 1, 1, 0], self.to_parent[0][:4])
        self.assertEqual(1, len(self.to_parent))

    def test_others(self) -> None:
        """Another process, or another stream of the same one, is apart from the first."""
        self.followed.followed(1, 1, [_ADDED], "*")
        self.followed.followed(1, 2, [_ADDED], "*")
        self.add(b"q")
        self.reactor.advance(FLUSH_S)
        numbers = [message[1:3] for message in self.to_parent]
        self.assertEqual([[1, 1], [1, 2]], numbers)

    def test_started_again(self) -> None:
        """A stream of a process that was started again lasts as long as any: the time of the one
        that it replaces does not count."""
        self.followed.followed(1, 1, [], "q")
        self.reactor.advance(FORGET_S - 0.5)
        self.followed.followed(1, 1, [_ADDED], "r")
        self.reactor.advance(1)
        self.add(b"r")
        self.reactor.advance(FLUSH_S)
        self.assertEqual(1, len(self.to_parent))

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
