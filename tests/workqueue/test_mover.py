"""A move of items from Redis to Disque, after one that was killed."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from disque_tx.workqueue import MoveRefused
from disque_tx.workqueue.items import Item, job_body
from disque_tx.workqueue.mover import Mover
from disque_tx.workqueue.parking import Parking, parking_options
from disque_tx.workqueue.queue import WorkQueue
from disque_tx.workqueue.scripts import ABANDONED, COUNTS, GIVE_BACK, LEASE
from tests.workqueue.redisdouble import RedisDouble
from tests.workqueue.test_parking import JOB_ID, OneNode, details


class MoveCase(SynchronousTestCase):
    """The notes that the killed move has left: of ``parked`` there is a job, of ``lost`` there is
    none, and ``done`` was handed over already."""

    def setUp(self) -> None:
        self.server = RedisDouble(self.answer)
        self.queue = WorkQueue("P", self.server.redis)
        self.node = OneNode(details(body=job_body(Item("parked", b"data"))))
        client: Any = self.node
        parking = Parking(client, lambda address: client, "q", parking_options())
        self.mover = Mover(self.queue, self.server.redis, parking)

    def answer(self, words: list[bytes]) -> Any:
        """The replies of a server whose lists are empty."""
        if words[0] == b"HGETALL":
            notes = {b"parked": b"?old", b"lost": b"?old", b"done": JOB_ID.encode()}
            return [word for note in notes.items() for word in note]
        if words[0] == b"EVALSHA":
            replies: dict[str, Any] = {LEASE.sha: None, COUNTS.sha: [0, 0], ABANDONED.sha: []}
            return replies.get(words[1].decode(), 1)
        return {b"LRANGE": [], b"SCAN": [b"0", []], b"SET": b"OK"}.get(words[0], 1)

    def run_to_the_end(self) -> int:
        """Run the move; returns how many items it has moved."""
        running = self.mover.run()
        self.server.settle()
        moved: int = self.successResultOf(running)
        return moved

    def place(self, *beginning: bytes) -> int:
        """Where the first request is that begins with these words."""
        requests = [words for _, words in self.server.requests]
        return next(
            at for at, words in enumerate(requests) if words[: len(beginning)] == [*beginning]
        )


class ResumeTests(MoveCase):
    """What becomes of these notes."""

    def test_settled(self) -> None:
        """An item that has a job is moved, one that has none is given back by the session that
        leased it, and the jobs can be delivered."""
        self.assertEqual(1, self.run_to_the_end())
        self.assertEqual([JOB_ID, JOB_ID], self.node.enqueued)
        back = self.place(b"EVALSHA", GIVE_BACK.sha.encode())
        self.assertEqual([b"lost", b"old"], self.server.requests[back][1][-2:])
        for item in (b"parked", b"lost", b"done"):
            self.assertGreater(self.place(b"HDEL", b"P:moving", item), 0)

    def test_note_last(self) -> None:
        """A note is deleted when what it says is done: whoever kills this move as well loses
        nothing that the next one needs."""
        self.run_to_the_end()
        back = self.place(b"EVALSHA", GIVE_BACK.sha.encode())
        self.assertLess(back, self.place(b"HDEL", b"P:moving", b"lost"))
        before = self.server.requests[: self.place(b"HDEL", b"P:moving", b"parked")]
        handed_over = [words for _, words in before if words[-1] == JOB_ID.encode()]
        self.assertEqual(
            [[b"parked", self.queue.session.encode()]], [w[-3:-1] for w in handed_over]
        )

    def test_before_cleaning(self) -> None:
        """All of that is done before a clean returns items: a worker that got one then would do
        what is parked as a job already."""
        self.run_to_the_end()
        cleaned = self.place(b"LRANGE")
        for item in (b"parked", b"lost", b"done"):
            self.assertLess(self.place(b"HDEL", b"P:moving", item), cleaned)

    def test_lock(self) -> None:
        """Only one move runs at a time, and its lock is free when it has ended."""
        self.run_to_the_end()
        session = self.queue.session.encode()
        self.assertEqual(0, self.place(b"SET", b"P:mover", session, b"NX", b"PX"))
        self.assertEqual([b"P", session], self.server.requests[-1][1][-2:])

    def test_handed_over_before(self) -> None:
        """Of an item that a worker completed meanwhile the parked job is dropped, and counts as
        none; its note is gone."""
        answer = self.answer

        def completed(words: list[bytes]) -> Any:
            handed = words[0] == b"EVALSHA" and words[-1] == JOB_ID.encode()
            return 0 if handed else answer(words)

        self.server.answer = completed
        self.assertEqual(0, self.run_to_the_end())
        self.assertEqual(([JOB_ID], [JOB_ID]), (self.node.enqueued, self.node.acked))
        self.assertGreater(self.place(b"HDEL", b"P:moving", b"parked"), 0)

    def test_lock_lost(self) -> None:
        """A move whose lock another one has got moves nothing more, and says what to do."""
        answer = self.answer

        def lost(words: list[bytes]) -> Any:
            handed = words[0] == b"EVALSHA" and words[-1] == JOB_ID.encode()
            return -1 if handed else answer(words)

        self.server.answer = lost
        running = self.mover.run()
        self.server.settle()
        error = self.failureResultOf(running, MoveRefused).value
        self.assertEqual(
            "The move lost its lock in Redis: the server did not answer, or this program was"
            " suspended for too long. Start it again.",
            str(error),
        )
        self.assertEqual((0, False), (self.mover.moved, self.mover.ended))
        self.assertEqual([], self.server.reactor.getDelayedCalls())


class _Target(OneNode):
    """A node to which items are moved. ``added``: the bodies of jobs."""

    def __init__(self) -> None:
        super().__init__(details())
        self.added: list[bytes] = []

    async def add_job_with(self, queue: str, body: bytes, options: object) -> str:
        """Record the body."""
        self.added.append(body)
        return JOB_ID


class MoveTests(SynchronousTestCase):
    """A move of items that wait; ``held``: how many a worker has, which come back in time."""

    def setUp(self) -> None:
        self.server = RedisDouble(self.answer)
        self.queue = WorkQueue("P", self.server.redis)
        self.node = _Target()
        client: Any = self.node
        self.seen: list[tuple[int, int]] = []
        self.mover = Mover(
            self.queue,
            self.server.redis,
            Parking(client, lambda address: client, "q", parking_options()),
            progress=lambda moved, left: self.seen.append((moved, left)),
            at_a_time=1,
        )
        self.waiting = [b"a", b"b"]
        self.held = 0

    def answer(self, words: list[bytes]) -> Any:
        """The replies of a server with these items."""
        if words[0] == b"EVALSHA":
            sha = words[1].decode()
            if sha == LEASE.sha:
                return [self.waiting.pop(0), b"data"] if self.waiting else None
            if sha == COUNTS.sha:
                return [len(self.waiting), self.held]
            return [] if sha == ABANDONED.sha else 1
        empty = {b"HGETALL": [], b"LRANGE": [], b"SCAN": [b"0", []], b"SET": b"OK"}
        return empty.get(words[0], 1)

    def begin(self) -> Any:
        """The move, after all that can be done at this moment."""
        running = self.mover.run()
        self.server.settle()
        return running

    def test_moved(self) -> None:
        """Each item becomes a job, which is delivered; people see how far the move is."""
        self.assertEqual(2, self.successResultOf(self.begin()))
        bodies = [job_body(Item(name, b"data")) for name in ("a", "b")]
        self.assertEqual((bodies, [JOB_ID] * 2), (self.node.added, self.node.enqueued))
        self.assertEqual([(1, 1), (2, 0), (2, 0)], self.seen)
        self.assertEqual((2, True), (self.mover.moved, self.mover.ended))

    def test_leased(self) -> None:
        """An item is leased for a minute, and the same step notes that a move has it: if the move
        is killed then, the next one knows."""
        self.begin()
        lease = next(
            words for _, words in self.server.requests if words[1:2] == [LEASE.sha.encode()]
        )
        self.assertEqual((b"60000", b"P:moving"), (lease[8], lease[-1]))

    def test_held(self) -> None:
        """Items that workers hold are waited for, and the move ends when they are done or moved;
        those whose lease has expired are returned meanwhile."""
        self.held = 1
        running = self.begin()
        self.assertNoResult(running)
        self.assertEqual(((2, 1), False), (self.seen[-1], self.mover.ended))
        before = self.server.commands().count(b"LRANGE")
        self.server.advance(1)
        self.assertNoResult(running)
        self.assertGreater(self.server.commands().count(b"LRANGE"), before)
        self.held, self.waiting = 0, [b"c"]
        self.server.advance(1)
        self.assertEqual((3, True), (self.successResultOf(running), self.mover.ended))
        self.assertEqual([], self.server.reactor.getDelayedCalls())

    def test_lock_renewed(self) -> None:
        """As long as a move waits, it keeps its lock: three times in the time for which it has
        it."""
        self.held = 1
        self.begin()
        for _ in range(6):
            self.server.advance(1)
        session = self.queue.session.encode()
        renewed = [words for _, words in self.server.requests if words[-2:] == [session, b"6000"]]
        self.assertGreaterEqual(len([one for one in renewed if one[0] == b"EVALSHA"]), 3)
        self.mover.stop()
        self.server.advance(1)

    def test_stopped(self) -> None:
        """A move that is stopped ends, and leaves what it has not begun."""
        self.held = 1
        running = self.begin()
        self.waiting = [b"c"]
        self.mover.stop()
        self.server.advance(1)
        self.assertEqual(2, self.successResultOf(running))
        self.assertEqual(([b"c"], False), (self.waiting, self.mover.ended))

    def test_renewal_fails(self) -> None:
        """A move that could not renew its lock moves no more items."""
        self.held = 1
        running = self.begin()
        answer = self.server.answer
        mine = self.queue.session.encode()
        self.server.answer = lambda words: 0 if words[-2:-1] == [mine] else answer(words)
        self.server.advance(2)
        self.waiting = [b"c"]
        self.server.advance(2)
        self.failureResultOf(running, MoveRefused)
        self.assertEqual(2, len(self.node.added))
        self.assertEqual([], self.server.reactor.getDelayedCalls())


class LockTests(MoveCase):
    """Another move holds the lock."""

    def setUp(self) -> None:
        super().setUp()
        self.said: list[str] = []
        self.mover._waiting = self.said.append
        answer, self.held = self.server.answer, True
        self.server.answer = lambda words: (
            None if words[0] == b"SET" and self.held else answer(words)
        )
        self.running = self.mover.run()
        self.server.settle()

    def run_to_the_end(self) -> int:
        """The lock is free now."""
        self.held = False
        self.server.advance(1)
        moved: int = self.successResultOf(self.running)
        return moved

    def test_lock(self) -> None:
        """The lock is asked for once a second, and people read once what is waited for."""
        for _ in range(3):
            self.server.advance(1)
        asked = [words for words in self.server.commands() if words == b"SET"]
        self.assertEqual((4, 4), (len(asked), len(self.server.requests)))
        said = "Another move holds the key P:mover; it may have been killed. Waiting for it, up to"
        self.assertEqual([f"{said} 7.2 s."], self.said)
        self.assertEqual(1, self.run_to_the_end())

    def test_refused(self) -> None:
        """After the time in which the lock of a move that was killed ends, another move must be
        running."""
        for _ in range(7):
            self.server.advance(1)
            self.assertNoResult(self.running)
        self.server.advance(1)
        error = self.failureResultOf(self.running, MoveRefused).value
        self.assertEqual(
            "Another move of the work queue 'P' is running: it holds the key P:mover. Wait until it"
            " ends.",
            str(error),
        )

    def test_stopped(self) -> None:
        """Who does not want to wait stops it, and nothing was changed."""
        self.mover.stop()
        self.server.advance(1)
        self.assertEqual(0, self.successResultOf(self.running))
        self.assertEqual({b"SET"}, set(self.server.commands()))
