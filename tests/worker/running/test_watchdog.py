"""Detection of blocked reactors, and the status that workers report."""

from __future__ import annotations

import sys
import threading
from types import FrameType

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.logger import LogEvent
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.worker.base.status import WorkerStatus, worker_of
from disque_tx.worker.running import watchdog
from disque_tx.worker.running.watchdog import Watchdog
from disque_tx.worker.tasks.handlers import handler_of
from tests.logged import observe
from tests.worker.memory import HangingPool, WorkerTestCase


class WatchdogTests(SynchronousTestCase):
    """``Watchdog``, with a clock that the test advances, and without its thread."""

    def setUp(self) -> None:
        """Create a watchdog for a reactor in the thread of this test."""
        self.clock = Clock()
        self.now_s = 0.0
        self.frame: FrameType | None = None
        self.reports: list[LogEvent] = []
        observe(self, self.note)
        handlers = [handler_of(self.computes), handler_of(self.other)]
        self.looked_at: list[int] = []
        self.dog = Watchdog(self.clock, lambda: handlers, lambda: self.now_s, self.stack)
        self.dog.start(in_thread=False)
        self.addCleanup(self.dog.stop)

    def stack(self, thread: int) -> FrameType | None:
        """The stack of a thread."""
        self.looked_at.append(thread)
        return self.frame

    def note(self, event: LogEvent) -> None:
        """Record the reports of the watchdog."""
        if event.get("log_namespace") == "disque_tx.worker.running.watchdog":
            self.reports.append(event)

    async def computes(self) -> None:
        """A handler that blocks the reactor for a while."""
        self.frame = sys._getframe()
        self.check_at(2.5)

    async def other(self) -> None:
        """A handler that only waits."""

    def check_at(self, now_s: float) -> None:
        """Run the check of the watchdog's thread at this time."""
        self.now_s = now_s
        self.dog.check()

    def pass_s(self, now_s: float) -> None:
        """Let the reactor run until this time."""
        while self.now_s < now_s:
            self.now_s += 0.5
            self.clock.advance(0.5)
            self.dog.check()

    def test_named(self) -> None:
        """The report names the handler that blocks the reactor, with its line, and no other."""
        self.assertRaises(StopIteration, self.computes().send, None)
        (report,) = self.reports
        self.assertIn("computes", report["what"])
        self.assertNotIn("other", report["what"])
        self.assertEqual(2.5, report["s"])
        self.assertIn("self.check_at(2.5)", report["stack"])
        self.assertEqual([threading.get_ident()], self.looked_at)

    def test_healthy(self) -> None:
        """A reactor that is busy but returns in time is not reported."""
        self.pass_s(60)
        self.check_at(61.9)
        self.assertEqual([], self.reports)

    def test_rare(self) -> None:
        """A lasting block is reported at growing intervals, and at its end; repeated blocks are
        reported at most every ten seconds."""
        for tenths in range(600):
            self.check_at(tenths / 10)
        self.assertEqual([2.0, 4.0, 8.0, 16.0, 32.0], [event["s"] for event in self.reports])
        self.pass_s(60.5)
        self.assertIn("runs again", self.reports[-1]["log_format"])
        self.reports.clear()
        for _ in range(20):
            self.check_at(self.now_s + 3)
            self.pass_s(self.now_s + 0.5)
        blocked = [event for event in self.reports if "stack" in event]
        self.assertLessEqual(len(blocked), 8)


class ThreadTests(SynchronousTestCase):
    """``Watchdog``, with its thread, which looks often here."""

    def setUp(self) -> None:
        """Let the reactor, which is the thread of this test, be blocked from the beginning."""
        self.patch(watchdog, "_TICK_S", 0.001)
        self.now_s = 0.0
        self.reported = threading.Event()
        observe(self, self.note)
        self.dog = Watchdog(Clock(), list, lambda: self.now_s)

    def note(self, event: LogEvent) -> None:
        """Record that the watchdog reported something."""
        if event.get("log_namespace") == watchdog.__name__:
            self.reported.set()

    def thread(self) -> threading.Thread:
        """Start the watchdog; returns its thread."""
        before = set(threading.enumerate())
        self.dog.start()
        self.addCleanup(self.dog.stop)
        (started,) = set(threading.enumerate()) - before
        return started

    def test_watches(self) -> None:
        """A reactor that is blocked is reported, again as long as that lasts, although nothing but
        the thread runs; it ends when the worker does."""
        thread = self.thread()
        for now_s in (3.0, 5.0, 9.0):
            self.reported.clear()
            self.now_s = now_s
            self.assertTrue(self.reported.wait(10), now_s)
        self.dog.stop()
        thread.join(10)
        self.assertFalse(thread.is_alive())

    def test_again(self) -> None:
        """A worker that is stopped and started again is watched again, by one thread."""
        first = self.thread()
        self.dog.stop()
        first.join(10)
        second = self.thread()
        before = set(threading.enumerate())
        self.dog.start()
        self.assertEqual(set(), set(threading.enumerate()) - before)
        self.now_s = 3.0
        self.assertTrue(self.reported.wait(10))
        self.dog.stop()
        second.join(10)
        self.assertFalse(second.is_alive())


class WorkerStatusTests(SynchronousTestCase):
    """``WorkerStatus``."""

    def test_worker_of(self) -> None:
        """A connection is a worker's, or somebody's who has named it."""
        name = WorkerStatus("web1/a:7", 3, 2, ("q",)).encoded()
        self.assertEqual(["web1/a:7", "psql"], [worker_of(name), worker_of("psql")])

    @given(
        st.text(st.characters(exclude_categories=["Cs"])),
        st.integers(0, 10_000),
        st.integers(0, 10_000),
        st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1),
    )
    def test_round_trip(self, worker: str, slots: int, held: int, queues: list[str]) -> None:
        """Any names of workers and queues can be encoded for CLIENT SETNAME, and decoded; long
        names and lists are truncated to what a node accepts."""
        name = WorkerStatus(worker, slots, held, tuple(queues)).encoded()
        self.assertTrue(all(33 <= ord(character) <= 126 for character in name), name)
        found = WorkerStatus.decoded(name)
        assert found is not None
        self.assertLessEqual(len(name), 256)
        self.assertEqual((slots, held), (found.slots, found.held))
        self.assertTrue(worker.startswith(found.worker))
        self.assertTrue(worker == found.worker or len(found.worker) >= 100 // 12 - 1)
        whole = found.queues if found.queues[-1] is not None else found.queues[:-1]
        self.assertEqual(tuple(queues[: len(whole)]), whole)

    def test_long(self) -> None:
        """A long name of a worker leaves room for its queues."""
        name = WorkerStatus("ä" * 400, 10**9 - 1, 10**9 - 1, ("q" * 90, "r" * 90)).encoded()
        found = WorkerStatus.decoded(name)
        self.assertEqual(WorkerStatus("ä" * 16, 10**9 - 1, 10**9 - 1, ("q" * 90, None)), found)

    @given(st.text())
    def test_other_names(self, name: str) -> None:
        """Names of other clients are not decoded as workers."""
        self.assertIsNone(WorkerStatus.decoded(name))


class NamedTests(WorkerTestCase):
    """Workers with a node in memory."""

    def test_held(self) -> None:
        """The name contains the number of jobs that the worker holds, soon after it changed."""
        for _ in range(5):
            self.client.put("a")
        worker = self.worker({"a": self.note}, HangingPool, concurrency=3)
        self.pass_s(2.1)
        self.assertEqual(WorkerStatus("w", 3, 3, ("a",)), WorkerStatus.decoded(self.client.name))
        self.pools[0].release()
        self.pass_s(4)
        self.pools[0].release()
        self.pass_s(4)
        self.assertEqual(WorkerStatus("w", 3, 0, ("a",)), WorkerStatus.decoded(self.client.name))
        self.stop(worker)
