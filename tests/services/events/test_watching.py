"""Events of jobs for plugins."""

from __future__ import annotations

from collections.abc import Callable, Collection

from mypy_extensions import i64

from disque_tx.messages.events import ACKED, ADDED, DELIVERED, QUEUED, EventSink
from disque_tx.messages.records import JobRecord
from disque_tx.plugins.values import JobEvent
from disque_tx.services.events.sinks import EventSinks
from disque_tx.services.events.watching import Watch
from disque_tx.wire.events.records import EventRecorder
from tests.services.nodebench import FIRST_ID, NodeCase


class Kept(EventSink):
    """A sink that keeps all that it gets, with the time."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[object, ...]] = []

    def added(self, job: JobRecord, ttl_s: i64, reason: i64, client_id: i64, queued: bool) -> None:
        self.found.append((self.wall_us, "added", job, ttl_s, reason, client_id, queued))

    def job(self, kind: i64, job: JobRecord, reason: i64, number: i64, elapsed_ms: i64) -> None:
        self.found.append((self.wall_us, "job", kind, job, reason, number, elapsed_ms))

    def noted(
        self, kind: i64, job: JobRecord, reason: i64, number: i64, elapsed_ms: i64, text: bytes
    ) -> None:
        self.found.append((self.wall_us, "noted", kind, job, reason, number, elapsed_ms, text))

    def moved(self, kind: i64, job: JobRecord, node_id: bytes) -> None:
        self.found.append((self.wall_us, "moved", kind, job, node_id))

    def paused(self, queue: bytes, flags: i64) -> None:
        self.found.append((self.wall_us, "paused", queue, flags))

    def flushed(self, jobs: i64) -> None:
        self.found.append((self.wall_us, "flushed", jobs))


class WatchTests(NodeCase):
    """Watchers of a node."""

    def setUp(self) -> None:
        super().setUp()
        self.sinks = EventSinks(self.node)
        self.runtime.turns.eventlog = self.sinks
        self.events: list[JobEvent] = []
        self.failed: list[Watch] = []

    def watch(
        self,
        kinds: Collection[int] = (),
        wants: Callable[[bytes], bool] | None = None,
        take: Callable[[list[JobEvent]], object] | None = None,
    ) -> Watch:
        """A watcher, whose events are in ``events``."""
        watch = Watch(list(kinds), wants, take or self.events.extend, self.failed.append)
        self.sinks.watch(watch)
        return watch

    def test_life(self) -> None:
        """A job's life is reported in order, with the times that people ask for."""
        self.watch()
        self.turn(b"ADDJOB q b 0")
        self.reactor.advance(3)
        self.turn(b"GETJOB FROM q")
        self.reactor.advance(2)
        self.turn(b"ACKJOB " + FIRST_ID)
        told = [(event.kind, event.elapsed_ms) for event in self.events]
        self.assertEqual([(ADDED, -1), (QUEUED, -1), (DELIVERED, 3000), (ACKED, 2000)], told)
        self.assertEqual({(b"q", FIRST_ID)}, {(e.queue, e.job_id) for e in self.events})

    def test_wanted(self) -> None:
        """A watcher gets the kinds and the queues that it asked for, whatever others watch."""
        others: list[JobEvent] = []
        self.watch([QUEUED, DELIVERED], lambda queue: queue.startswith(b"mail"))
        self.watch([ADDED], None, others.extend)
        self.turn(b"ADDJOB mail b 0", b"ADDJOB q b 0", b"ADDJOB mail.2 b 0")
        told = [(event.kind, event.queue) for event in self.events]
        self.assertEqual([(QUEUED, b"mail"), (QUEUED, b"mail.2")], told)
        self.assertEqual({ADDED}, {event.kind for event in others})
        self.assertEqual([b"mail", b"q", b"mail.2"], [event.queue for event in others])

    def test_changed(self) -> None:
        """A watcher that comes later gets the events of queues that nobody wanted before."""
        self.watch([ADDED], lambda queue: False)
        self.turn(b"ADDJOB q b 0")
        self.watch([ADDED])
        self.turn(b"ADDJOB q b 0")
        self.assertEqual([b"q"], [event.queue for event in self.events])

    def test_several_sinks(self) -> None:
        """Each of several sinks gets every kind of event with all of its parts and the time of the
        turn, and one that is removed gets none; without any, nothing is reported."""
        self.assertIsNone(self.node.outbox.events)
        first, second = Kept(), Kept()
        self.sinks.add(first)
        self.assertIs(first, self.node.outbox.events)
        self.sinks.add(second)
        self.sinks.add(third := Kept())
        self.sinks.remove(third)
        self.sinks.remove(third)
        events = self.node.outbox.events
        assert events is not None
        self.assertEqual((self.node.wall_us, self.node.wall_us), (events.wall_us, first.wall_us))
        job = JobRecord(b"D" * 40, b"q", b"b", (), 1, 2, delay_s=3, retry_s=4, repl=5)
        for wall_us in (100, 200):
            events.wall_us = wall_us
            events.added(job, 1, 2, 3, True)
            events.job(ACKED, job, 4, 5, 6)
            events.noted(DELIVERED, job, 7, 8, 9, b"text")
            events.moved(QUEUED, job, b"n" * 40)
            events.paused(b"q", 3)
            events.flushed(11)
        expected = [
            (wall_us, *rest)
            for wall_us in (100, 200)
            for rest in (
                ("added", job, 1, 2, 3, True),
                ("job", ACKED, job, 4, 5, 6),
                ("noted", DELIVERED, job, 7, 8, 9, b"text"),
                ("moved", QUEUED, job, b"n" * 40),
                ("paused", b"q", 3),
                ("flushed", 11),
            )
        ]
        self.assertEqual((expected, expected, []), (first.found, second.found, third.found))
        self.sinks.remove(first)
        self.assertIs(second, self.node.outbox.events)
        self.sinks.remove(second)
        self.assertIsNone(self.node.outbox.events)

    def test_asked_once(self) -> None:
        """A watcher is asked about a queue once, not at each of a million jobs; when watchers
        change, it is asked again."""
        asked: list[bytes] = []

        def wants(queue: bytes) -> bool:
            asked.append(queue)
            return False

        self.watch((), wants)
        self.turn(b"ADDJOB q b 0", b"ADDJOB q b 0", b"ADDJOB other b 0", b"GETJOB FROM q")
        self.assertEqual([b"q", b"other"], asked)
        self.watch([ACKED])
        self.turn(b"ADDJOB q b 0")
        self.assertEqual([b"q", b"other", b"q"], asked)
        self.assertEqual([], self.events)

    def test_not_asked(self) -> None:
        """Events of kinds that nobody wants are not even looked at."""
        asked: list[bytes] = []

        def wants(queue: bytes) -> bool:
            asked.append(queue)
            return True

        self.watch([ACKED], wants)
        self.turn(b"ADDJOB q b 0", b"GETJOB FROM q")
        self.assertEqual([], asked)

    def test_turn(self) -> None:
        """The events of a turn come together when it has ended."""
        batches: list[int] = []
        self.watch(take=lambda events: batches.append(len(events)))
        with self.runtime.turn():
            self.turn(b"ADDJOB q b 0", b"ADDJOB q b 0")
            self.assertEqual([], batches)
        self.assertEqual([4], batches)

    def test_several(self) -> None:
        """The event log and watchers do not disturb each other; without any, nothing is done."""
        recorder = EventRecorder()
        self.sinks.add(recorder)
        self.assertIs(recorder, self.node.outbox.events)
        watch, other = self.watch(), self.watch([ACKED])
        self.turn(b"ADDJOB q b 0", b"PAUSE q in", b"DEBUG FLUSHALL")
        self.assertEqual(2, len(self.events))
        self.sinks.unwatch(watch)
        self.sinks.unwatch(watch)
        self.sinks.unwatch(other)
        self.assertIs(recorder, self.node.outbox.events)
        self.sinks.remove(recorder)
        self.assertIsNone(self.node.outbox.events)

    def test_ended(self) -> None:
        """A watcher that has ended within the turn gets nothing more, of that turn either."""
        watch = self.watch()
        with self.runtime.turn():
            self.turn(b"ADDJOB q b 0")
            self.sinks.unwatch(watch)
        self.assertEqual([], self.events)

    def test_failing(self) -> None:
        """A plugin that fails, at an event or at a queue, costs nobody else anything."""

        def fail(_: object) -> bool:
            raise SystemExit("broken plugin")

        for watch in (self.watch(take=fail), self.watch(wants=fail)):
            self.watch()
            self.assertIn(b"D-", self.turn(b"ADDJOB q b 0"))
            self.turn(b"ADDJOB q b 0")
            self.assertTrue(watch.ended)
        self.assertEqual(2, len(self.failed))
        self.assertGreaterEqual(len(self.events), 8)
