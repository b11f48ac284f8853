"""Events of jobs for plugins."""

from __future__ import annotations

from collections.abc import Callable, Collection

from disque_tx.messages.events import ACKED, ADDED, DELIVERED, QUEUED
from disque_tx.plugins.values import JobEvent
from disque_tx.services.events.sinks import EventSinks
from disque_tx.services.events.watching import Watch
from disque_tx.wire.events.records import EventRecorder
from tests.services.nodebench import FIRST_ID, NodeCase


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
