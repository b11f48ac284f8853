"""Blocked reactors, and what workers say of themselves."""

from __future__ import annotations

import sys
from types import FrameType

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.logger import LogEvent
from twisted.trial.unittest import SynchronousTestCase

from disque_tx.worker.handlers import handler_of
from disque_tx.worker.status import WorkerStatus
from disque_tx.worker.watchdog import Watchdog
from tests.logged import observe
from tests.worker.memory import HangingPool, WorkerTestCase


class WatchdogTests(SynchronousTestCase):
    """``Watchdog``, with a clock that the test turns, and without its thread."""

    def setUp(self) -> None:
        """A watchdog of a reactor that is this test's thread."""
        self.clock = Clock()
        self.now_s = 0.0
        self.frame: FrameType | None = None
        self.reports: list[LogEvent] = []
        observe(self, self.note)
        handlers = [handler_of(self.computes), handler_of(self.other)]
        self.dog = Watchdog(self.clock, lambda: handlers, lambda: self.now_s, lambda _: self.frame)
        self.dog.start(in_thread=False)
        self.addCleanup(self.dog.stop)

    def note(self, event: LogEvent) -> None:
        """Keep its reports."""
        if event.get("log_namespace") == "disque_tx.worker.watchdog":
            self.reports.append(event)

    async def computes(self) -> None:
        """A handler that does not come back for a while."""
        self.frame = sys._getframe()
        self.look_at(2.5)

    async def other(self) -> None:
        """A handler that waits meanwhile."""

    def look_at(self, now_s: float) -> None:
        """The thread's look, at a time."""
        self.now_s = now_s
        self.dog.look()

    def pass_s(self, now_s: float) -> None:
        """The reactor lives until then."""
        while self.now_s < now_s:
            self.now_s += 0.5
            self.clock.advance(0.5)
            self.dog.look()

    def test_named(self) -> None:
        """The report names the handler that blocks the reactor, and the line, not others."""
        self.assertRaises(StopIteration, self.computes().send, None)
        (report,) = self.reports
        self.assertIn("computes", report["what"])
        self.assertNotIn("other", report["what"])
        self.assertEqual(2.5, report["s"])
        self.assertIn("self.look_at(2.5)", report["stack"])

    def test_healthy(self) -> None:
        """A reactor that is busy and comes back in time is no news."""
        self.pass_s(60)
        self.look_at(61.9)
        self.assertEqual([], self.reports)

    def test_rare(self) -> None:
        """One that stays blocked is reported ever more rarely, and when it goes on; one that is
        blocked again and again, every ten seconds at most."""
        for tenths in range(600):
            self.look_at(tenths / 10)
        self.assertEqual([2, 4, 8, 16, 32], [round(event["s"]) for event in self.reports])
        self.pass_s(60.5)
        self.assertIn("runs again", self.reports[-1]["log_format"])
        self.reports.clear()
        for _ in range(20):
            self.look_at(self.now_s + 3)
            self.pass_s(self.now_s + 0.5)
        blocked = [event for event in self.reports if "stack" in event]
        self.assertLessEqual(len(blocked), 8)


class WorkerStatusTests(SynchronousTestCase):
    """``WorkerStatus``."""

    @given(
        st.text(st.characters(exclude_categories=["Cs"])),
        st.integers(0, 10_000),
        st.integers(0, 10_000),
        st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1),
    )
    def test_round_trip(self, worker: str, slots: int, held: int, queues: list[str]) -> None:
        """Whatever a worker and its queues are called, it is a name that CLIENT SETNAME takes, and
        reports them; long lists are cut."""
        name = WorkerStatus(worker, slots, held, tuple(queues)).encoded()
        self.assertTrue(all(33 <= ord(character) <= 126 for character in name), name)
        found = WorkerStatus.decoded(name)
        assert found is not None
        self.assertEqual((worker, slots, held), (found.worker, found.slots, found.held))
        whole = found.queues if found.queues[-1] is not None else found.queues[:-1]
        self.assertEqual(tuple(queues[: len(whole)]), whole)

    @given(st.text())
    def test_strangers(self, name: str) -> None:
        """Other names are no worker's."""
        self.assertIsNone(WorkerStatus.decoded(name))


class NamedTests(WorkerTestCase):
    """Workers on a node in memory."""

    def test_held(self) -> None:
        """The name contains how many jobs the worker has, soon after that changed."""
        for _ in range(5):
            self.client.put("a")
        worker = self.worker({"a": self.note}, HangingPool, concurrency=3)
        self.turn(2.1)
        self.assertEqual(WorkerStatus("w", 3, 3, ("a",)), WorkerStatus.decoded(self.client.name))
        self.pools[0].release()
        self.turn(4)
        self.pools[0].release()
        self.turn(4)
        self.assertEqual(WorkerStatus("w", 3, 0, ("a",)), WorkerStatus.decoded(self.client.name))
        self.stop(worker)
