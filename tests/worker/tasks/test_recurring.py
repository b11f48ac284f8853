"""Tasks that recur: what a worker tells the cluster about them when it starts."""

from __future__ import annotations

import json
from typing import Any

from twisted.logger import LogEvent, formatEvent

from disque_tx.client import ConnectionLost, Refused
from disque_tx.worker import BadHandlers, NoSchedules, Queue, Raw
from disque_tx.worker.tasks.recurring import keep_in_step
from tests.logged import observe
from tests.worker.memory import NODE, WorkerTestCase


class RecurringTests(WorkerTestCase):
    """A queue with tasks that recur."""

    def setUp(self) -> None:
        super().setUp()
        self.queue = Queue("reports", retry_s=60)
        self.ticks: list[int] = []

        @self.queue.every("*/5 * * * *", tz="Europe/Berlin", missed="one", ttl_s=300)
        def tidy() -> None:
            """Recurs by cron."""

        @self.queue.every(30)
        @self.queue.job
        def tick(count: int = 1) -> None:
            """Recurs at equal intervals, and can be called with an argument."""
            self.ticks.append(count)

    def known(self) -> dict[bytes, Any]:
        """The schedules of the cluster, with the words they were set with."""
        schedules = self.client.schedules
        assert schedules is not None
        return dict(schedules)

    def test_set_at_start(self) -> None:
        """The jobs that the cluster adds call the tasks, with their options."""
        worker = self.worker([self.queue])
        known = self.known()
        self.assertEqual([b"task:reports:tidy", b"task:reports:tick"], list(known))
        words = known[b"task:reports:tidy"]
        self.assertEqual(("*/5 * * * *", "TZ", "Europe/Berlin", "MISSED", "one"), words[:5])
        self.assertEqual(("QUEUE", b"reports"), words[5:7])
        self.assertEqual({"task": "tidy", "args": [], "kwargs": {}}, json.loads(words[7]))
        self.assertEqual(("RETRY", 60, "TTL", 300), words[8:])
        self.assertEqual(("EVERY", 30), known[b"task:reports:tick"][:2])
        self.stop(worker)

    def test_removes_its_own(self) -> None:
        """A task that does not recur any more is not called forever; schedules of other queues and
        of operators are left alone."""
        others: dict[bytes, tuple[object, ...]] = {
            b"task:reports:gone": (),
            b"task:reports2:tidy": (),
            b"night": (),
        }
        self.client.schedules = {**others}
        self.stop(self.worker([self.queue]))
        names = {b"night", b"task:reports2:tidy", b"task:reports:tidy", b"task:reports:tick"}
        self.assertEqual(names, set(self.known()))

    def test_tried_again(self) -> None:
        """Schedules are set as soon as a node can be reached."""
        lost = ConnectionLost(NODE, "it is down", False)
        self.client.broken = lambda command: lost if command == "SCHEDULE" else None
        worker = self.worker([self.queue])
        self.pass_s(20)
        self.assertEqual({}, self.known())
        self.client.broken = lambda command: None
        self.pass_s(20)
        self.assertEqual(2, len(self.known()))
        self.stop(worker)

    def test_stopped(self) -> None:
        """A worker that stops before a node could be reached leaves nothing behind."""
        self.client.broken = lambda command: ConnectionLost(NODE, "it is down", False)
        self.stop(self.worker([self.queue]))

    def test_original(self) -> None:
        """With originals a clear error is logged, and jobs are done all the same."""
        self.client.schedules = None
        worker = self.worker([self.queue])
        self.client.put("reports", json.dumps({"task": "tick", "args": [7]}).encode())
        self.pass_s(1)
        self.assertEqual([7], self.ticks)
        step = keep_in_step(self.client, "reports", self.queue.recurring)
        with self.assertRaises(NoSchedules) as caught:
            step.send(None)
        self.assertIn("tidy, tick", str(caught.exception))
        self.stop(worker)

    def test_original_without_schedules(self) -> None:
        """Who has no tasks that recur notices nothing of that."""
        self.client.schedules = None
        step = keep_in_step(self.client, "q", {})
        with self.assertRaises(StopIteration):
            step.send(None)

    def test_refused(self) -> None:
        """A schedule that the node refuses does not stop the worker."""
        refusal = Refused("SCHEDULE", NODE, "ERR", "'x' is no cron expression")
        self.client.broken = lambda command: refusal if command == "SCHEDULE" else None
        worker = self.worker([self.queue])
        self.pass_s(20)
        self.assertEqual({}, self.known())
        self.stop(worker)

    def test_logged(self) -> None:
        """An operator reads which schedules a worker has set and deleted, and why it could not; a
        worker without tasks that recur says nothing."""
        said: list[tuple[str, str]] = []

        def note(event: LogEvent) -> None:
            if "chedule" in formatEvent(event):
                said.append((event["log_level"].name, formatEvent(event)))

        observe(self, note)
        self.stop(self.worker([Queue("other")]))
        self.client.schedules = {b"task:reports:gone": ()}
        self.stop(self.worker([self.queue]))
        lost = ConnectionLost(NODE, "it is down", False)
        refusal = Refused("SCHEDULE", NODE, "ERR", "no")
        for error in (lost, refusal):
            self.client.broken = lambda command, error=error: (  # type: ignore[misc]
                error if command == "SCHEDULE" else None
            )
            self.stop(self.worker([self.queue]))
        begin = "Schedules of queue reports"
        expected = [
            ("info", f"{begin}: ['tidy', 'tick'] set, ['task:reports:gone'] deleted"),
            ("warn", f"{begin}: {lost}"),
            ("error", f"{begin} are not set: {refusal}"),
        ]
        self.assertEqual(expected, said)

    def test_raw(self) -> None:
        """A task of a raw queue gets an empty body."""
        queue = Queue("raw", Raw())

        @queue.every(5)
        def tick(body: bytes) -> None:
            """Gets bodies."""

        self.assertEqual(b"", queue.recurring["tick"].body)

    def test_pattern(self) -> None:
        """A task that recurs in all queues of a pattern would have no queue for its jobs: the
        worker says so before it fetches any."""
        mails = Queue("mail:*")

        @mails.every(5)
        def tick() -> None:
            """Recurs."""

        with self.assertRaisesRegex(BadHandlers, "need a queue, and mail:\\* is a pattern"):
            self.worker([self.queue, mails])

    def test_needs_arguments(self) -> None:
        """A function that needs arguments cannot be called by the clock."""

        def needs(customer: str) -> None:
            """Cannot recur."""

        self.assertRaises(BadHandlers, self.queue.every("@daily"), needs)
